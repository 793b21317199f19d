"""What a task can do with its context: checkpoints, marks, the connection, and the blocking twins in
threads."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from duetime.errors import Conflict, InvalidInput, InvalidPayload, StoreUnavailable
from duetime.invoker import Context, TaskConnection
from tests.unit.engine.fake_store import FakeStore, job, make_writer, play


def test_the_last_checkpoint_is_the_earlier_attempt_s_until_there_is_a_new_one() -> None:
    async def scene() -> None:
        store = FakeStore()
        context = Context(job(checkpoint=b'{"row": 7}'), make_writer(store))
        assert context.last_checkpoint == {"row": 7}
        await context.checkpoint({"row": 8})
        assert context.last_checkpoint == {"row": 8}
        assert Context(job(), make_writer(store)).last_checkpoint is None

    play(scene)


def test_a_checkpoint_that_was_not_written_is_not_the_last_one() -> None:
    async def scene() -> None:
        store = FakeStore()
        store.problems = [StoreUnavailable("away")]
        context = Context(job(checkpoint=b"1"), make_writer(store, trusted=lambda: False))
        with pytest.raises(StoreUnavailable):
            await context.checkpoint(2)
        assert context.last_checkpoint == 1

    play(scene)


@pytest.mark.parametrize("value", [object(), float("nan"), "x" * 300_000])
def test_a_checkpoint_that_cannot_be_stored_is_refused_by_name(value: Any) -> None:
    async def scene() -> None:
        with pytest.raises(InvalidInput) as refused:
            await Context(job(), make_writer(FakeStore())).checkpoint(value)
        assert refused.value.field == "checkpoint"

    play(scene)


def test_progress_that_is_no_number_json_knows_is_refused() -> None:
    async def scene() -> None:
        with pytest.raises(InvalidPayload, match=r"progress\.done"):
            await Context(job(), make_writer(FakeStore())).progress(float("inf"))

    play(scene)


@pytest.mark.parametrize("key", ["", "x" * 513, "a\nb", 7, None])
def test_a_mark_needs_a_readable_key(key: Any) -> None:
    async def scene() -> None:
        with pytest.raises(InvalidInput, match="key"):
            await Context(job(), make_writer(FakeStore())).once(key)

    play(scene)


def test_once_is_true_once() -> None:
    async def scene() -> None:
        store = FakeStore()
        desk = make_writer(store)
        first, second = (Context(job(attempt=attempt), desk) for attempt in (1, 2))
        assert await first.once("mail")
        assert not await second.once("mail")
        assert set(store.markers) == {(UUID(int=3), "mail")}

    play(scene)


def test_two_first_statements_at_once_begin_one_transaction() -> None:
    async def scene() -> None:
        store = FakeStore()
        store.takes = 1.0
        connection = Context(job(), make_writer(store)).connection
        await asyncio.gather(connection.execute("one"), connection.execute("two"))
        assert store.begun == 1
        assert sorted(store.transaction.connection.statements) == ["one", "two"]

    play(scene)


def test_the_driver_s_own_attributes_are_there_once_it_has_begun() -> None:
    async def scene() -> None:
        store = FakeStore()
        connection: Any = Context(job(), make_writer(store)).connection
        with pytest.raises(AttributeError, match=r"await ctx\.connection"):
            _ = connection.plain
        assert await connection is store.transaction.connection
        assert connection.plain == store.transaction.connection.plain
        assert connection.is_in_transaction()

    play(scene)


def test_an_outage_at_the_first_statement_is_waited_out() -> None:
    async def scene() -> None:
        store = FakeStore()
        store.problems = [StoreUnavailable("away")]
        await Context(job(), make_writer(store)).connection.execute("one")
        assert store.begun == 1

    play(scene)


async def test_a_thread_has_blocking_twins() -> None:
    store = FakeStore()
    context = Context(job(), make_writer(store))

    def task() -> tuple[bool, bool, str]:
        context.sync.checkpoint(5)
        context.sync.progress(1, 2)
        first, second = context.sync.once("mail"), context.sync.once("mail")
        return first, second, context.sync.connection.execute("UPDATE balance", 1)

    assert await asyncio.to_thread(task) == (True, False, "UPDATE balance (1,)")
    assert context.last_checkpoint == 5
    assert store.transaction.connection.statements == ["UPDATE balance"]


async def test_a_blocking_twin_called_on_the_event_loop_says_so_instead_of_hanging() -> None:
    context = Context(job(), make_writer(FakeStore()))
    with pytest.raises(Conflict, match="await the same call"):
        context.sync.checkpoint(5)


def test_a_block_of_its_own_is_entered_lazily() -> None:
    entered: list[str] = []

    class Driver:
        def transaction(self, **options: Any) -> Driver:
            return self

        async def __aenter__(self) -> None:
            entered.append("in")

        async def __aexit__(self, *problem: object) -> None:
            entered.append("out")

    class Begun:
        connection = Driver()

    async def scene() -> None:
        async def begin() -> Any:
            return Begun()

        connection = TaskConnection(begin)
        block = connection.transaction()
        assert not connection.begun
        async with block:
            assert entered == ["in"]
        assert entered == ["in", "out"]

    play(scene)
