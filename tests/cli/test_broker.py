"""`duetime broker`, on a store and over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import monotonic

import pytest

import duetime as dt
from duetime.queue import Message, Ticket
from duetime.queues import queue_for
from tests.cli.conftest import Duetime, Ran
from tests.cli.served import served
from tests.servers.brokers import RedisServer


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    pytest.importorskip("redis")
    with RedisServer() as server:
        yield server


def fill(store: str, broker: str) -> None:
    """Two messages for a queue that the store knows."""

    async def push() -> None:
        app, queue = dt.App(store), queue_for(broker)
        await app.open()
        job = await app.submit("report", queue="billing")
        await queue.open()
        await queue.push([Message("billing", 9, (Ticket(job.id, 0),)) for _ in range(2)])
        await queue.close()
        await app.close()

    asyncio.run(push())


def down(duetime: Duetime, *words: str) -> Ran:
    """A service asks its broker now and then: it may not know yet."""
    give_up_at = monotonic() + 20
    while (found := duetime(*words)).json["up"] and monotonic() < give_up_at:
        pass
    assert not found.json["up"]
    return found


def test_broker_shows_its_messages_and_that_it_is_down(duetime: Duetime, redis: RedisServer) -> None:
    duetime("migrate")
    fill("sqlite:///duetime.db", redis.url)
    sides = [["broker", "--queue", redis.url]]
    with served("sqlite:///duetime.db", queue=redis.url) as address:
        sides.append(["--server", address, "broker"])
        for side in sides:
            shown = duetime(*side)
            assert shown.status == 0, shown.err
            assert f"redis://worker:***@127.0.0.1:{redis.port}  answers" in shown.out
            assert [line.split() for line in shown.out.splitlines()[1:]] == [
                ["QUEUE", "PRIORITY", "MESSAGES"],
                ["billing", "9", "2"],
            ]
        redis.stop()
        for side in sides:
            found = down(duetime, *side, "--json")
            assert (found.status, found.err) == (1, "")
            assert found.json["remark"].startswith(
                "the broker does not answer: workers claim jobs from the store"
            )


def test_store_without_a_broker_names_the_flag(duetime: Duetime) -> None:
    duetime("migrate")
    found = duetime("broker")
    assert (found.status, "no broker: give its address with --queue" in found.out) == (0, True), found.out
