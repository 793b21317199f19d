"""Concurrent calls are served by the same statements, and an error reaches only its cause."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import asyncpg
import pytest

from duetime.errors import Conflict, StoreError, StoreUnavailable
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.batching import MAX_BATCH, Batcher, by_statement, columns
from duetime.stores.postgres.connection import PostgresConnection
from duetime.testing.conformance.drafts import put, schedule


class FakeConnection:
    """Runs work on itself, and records the calls."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.atomic: set[bool] = set()
        self.gone = False

    async def run(self, work: Callable[[Any, bool], Awaitable[Any]], *, atomic: bool = False) -> Any:
        self.atomic.add(atomic)
        if self.gone:
            raise StoreUnavailable("gone")
        return await work(self, False)

    async def fetch(
        self, statement: str, tenants: Sequence[str], ids: Sequence[int], *values: Sequence[Any]
    ) -> list[dict[str, Any]]:
        self.sizes.append(len(ids))
        await asyncio.sleep(0)
        assert list(ids) == sorted(set(ids))
        if 13 in ids:
            raise StoreError("a statement was refused")
        rows = zip(tenants, ids, *values, strict=True)
        return [
            {"tenant": tenant, "id": number, "seen": f"{statement} {rest}"}
            for tenant, number, *rest in rows
            if number != 404
        ]


def batcher_on(connection: FakeConnection, **options: Any) -> Batcher:
    return Batcher(cast(PostgresConnection, connection), by_statement("good", "id"), **options)


def submitted(batcher: Batcher, number: int, *values: Any) -> asyncio.Task[Any]:
    return asyncio.ensure_future(batcher.submit(("t", number), *values))


async def test_concurrent_calls_share_a_statement() -> None:
    connection = FakeConnection()
    batcher = batcher_on(connection, atomic=True)
    numbers = [number + 1_000 for number in range(MAX_BATCH + 3)]
    replies = await asyncio.gather(
        *(submitted(batcher, number, number, None) for number in reversed(numbers))
    )
    assert [reply["seen"] for reply in replies] == [f"good [{number}, None]" for number in reversed(numbers)]
    assert connection.sizes == [MAX_BATCH, 3]
    assert (await submitted(batcher, 7))["seen"] == "good []"
    assert connection.sizes == [MAX_BATCH, 3, 1]
    assert connection.atomic == {True}


async def test_calls_about_the_same_subject_are_served_in_order() -> None:
    connection = FakeConnection()
    batcher = batcher_on(connection)
    replies = await asyncio.gather(
        *(submitted(batcher, number, at) for at, number in enumerate([5, 5, 6, 5]))
    )
    assert [reply["seen"] for reply in replies] == ["good [0]", "good [1]", "good [2]", "good [3]"]
    assert connection.sizes == [2, 1, 1]


async def test_failing_call_fails_alone_and_missing_row_is_none() -> None:
    batcher = batcher_on(FakeConnection())
    replies: list[Any] = await asyncio.gather(
        *(submitted(batcher, number) for number in (1, 13, 404, 2)), return_exceptions=True
    )
    assert [reply and reply["seen"] for reply in (replies[0], *replies[2:])] == ["good []", None, "good []"]
    assert isinstance(replies[1], StoreError)


async def test_exception_as_a_reply_is_raised_for_its_call() -> None:
    def work_of(batch: Any) -> Any:
        async def work(_: Any, _is_retry: bool) -> dict[Any, Any]:
            return {
                one.subject: Conflict("taken") if one.subject[1] == 2 else columns(batch)[1] for one in batch
            }

        return work

    batcher = Batcher(cast(PostgresConnection, FakeConnection()), work_of)
    replies = await asyncio.gather(
        *(submitted(batcher, number) for number in (3, 2, 1)), return_exceptions=True
    )
    assert (replies[0], replies[2]) == ((1, 2, 3), (1, 2, 3))
    assert isinstance(replies[1], Conflict)


async def test_outage_fails_all_calls_and_the_next_call_tries_again() -> None:
    connection = FakeConnection()
    batcher = batcher_on(connection)
    connection.gone = True
    replies = await asyncio.gather(
        *(submitted(batcher, number) for number in range(3)), return_exceptions=True
    )
    assert [type(reply) for reply in replies] == [StoreUnavailable] * 3
    assert connection.sizes == []
    connection.gone = False
    assert (await submitted(batcher, 1))["seen"] == "good []"


async def test_cancelled_call_does_not_cancel_others() -> None:
    batcher = batcher_on(FakeConnection())
    first, second = submitted(batcher, 1), submitted(batcher, 2)
    await asyncio.sleep(0)
    first.cancel()
    assert (await second)["seen"] == "good []"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_schedules_created_concurrently_are_committed_together(postgres_database: str) -> None:
    store = PostgresStore.from_url(postgres_database)
    await store.open()
    now = await store.time()
    await asyncio.gather(*(put(store, schedule(f"schedule {number}"), now) for number in range(50)))
    await store.close()
    connection = await asyncpg.connect(postgres_database)
    made, transactions = await connection.fetchrow(
        "SELECT count(*), count(DISTINCT xmin::text) FROM duetime.schedules"
    )
    await connection.close()
    assert made == 50
    assert transactions < 10
