"""Messages as bytes: what we write is read as it was, and nothing else is taken for a message of ours."""

from __future__ import annotations

from uuid import UUID

import pytest

from duetime.queue import MAX_TICKETS, Message, Ticket
from duetime.queues.wire import from_bytes, to_bytes

ID = "01935c2e-7b3a-7000-8000-000000000000"
ONE = f'["{ID}", 0]'


def body(
    version: object = 1, queue: object = '"mail"', priority: object = 5, jobs: str = f'[["{ID}", 0]]'
) -> bytes:
    return f'{{"v": {version}, "queue": {queue}, "priority": {priority}, "jobs": {jobs}}}'.encode()


def test_message_is_read_as_it_was_written() -> None:
    message = Message("mäil", 9, tuple(Ticket(UUID(int=number), number) for number in range(MAX_TICKETS)))
    assert from_bytes(to_bytes(message)) == message


def test_ids_with_and_without_hyphens_are_read() -> None:
    expected = Message("mail", 5, (Ticket(UUID(ID), 0),))
    assert from_bytes(body()) == from_bytes(body(jobs=f'[["{ID.replace("-", "")}", 0]]')) == expected


@pytest.mark.parametrize(
    "foreign",
    [
        b"",
        b"not json",
        b"[]",
        b"\xff\xfe",
        b'{"v": 1}',
        body(version=2),
        body(queue=7),
        body(priority=10),
        body(priority=-1),
        body(priority="true"),
        body(jobs="[]"),
        body(jobs='[["not an id", 0]]'),
        body(jobs=f'[["{ID}", true]]'),
        body(jobs=f'[["{ID}", -1]]'),
        body(jobs=f'[["{ID}", 99999999999999999999]]'),
        body(jobs=f'[["{ID}"]]'),
        body(jobs=f"[{', '.join([ONE] * (MAX_TICKETS + 1))}]"),
    ],
)
def test_anything_else_is_foreign(foreign: bytes) -> None:
    assert from_bytes(foreign) is None
