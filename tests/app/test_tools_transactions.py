"""ctx.connection: what a task writes is committed together with its job's success, or not at all."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.errors import Conflict
from duetime.model.events import AttemptsSettled, SettlementsRefused
from duetime.model.settle import Cancel, RetryAfter, Snooze
from tests.app.conftest import MakeApp
from tests.app.waiting import soon

AT_ONCE = dt.Retry(max_attempts=2, first_delay="0s")
TABLE = "CREATE TABLE IF NOT EXISTS ledger (entry text NOT NULL)"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def app_url(request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{shutil.copyfile(sqlite_template, tmp_path / 'duetime.db')}"
    url: str = request.getfixturevalue("migrated_url")
    return url


@pytest.fixture
async def ledger(app: dt.App) -> AsyncIterator[dt.App]:
    """An app with a table of the user's own and a node that runs."""

    @app.task("prepare")
    async def prepare(ctx: dt.Context) -> None:
        await ctx.connection.execute(TABLE)
        await ctx.connection.execute("DELETE FROM ledger")

    @app.task("entries")
    async def entries(ctx: dt.Context) -> list[str]:
        return [row["entry"] for row in await ctx.connection.fetch("SELECT entry FROM ledger ORDER BY entry")]

    @app.task("write", retry=AT_ONCE)
    async def write(ctx: dt.Context, how: str) -> Any:
        await ctx.connection.execute("INSERT INTO ledger VALUES ($1)", f"{how} {ctx.attempt}")
        match how:
            case "fails first" if ctx.attempt == 1:
                raise ValueError
            case "snoozes first" if ctx.attempt == 1:
                return Snooze("10ms")
            case "retries first" if ctx.attempt == 1:
                raise RetryAfter("10ms")
            case "cancels":
                return Cancel()
            case "not json":
                return object()
            case "breaks the transaction" if ctx.attempt == 1:
                with pytest.raises(Exception, match="no_such_table"):
                    await ctx.connection.execute("INSERT INTO no_such_table VALUES (1)")
        return how

    async with app.running():
        assert (await (await prepare.submit()).wait("60s")).state == "succeeded"
        yield app


async def entries_of(app: dt.App) -> list[str]:
    job = await (await app.submit("entries")).wait("60s")
    assert job.state == "succeeded", job.error
    return list(job.result)


@pytest.mark.parametrize(
    ("how", "state", "left"),
    [
        ("succeeds", "succeeded", ["succeeds 1"]),
        ("fails first", "succeeded", ["fails first 2"]),
        ("snoozes first", "succeeded", ["snoozes first 2"]),
        ("retries first", "succeeded", ["retries first 2"]),
        ("cancels", "cancelled", []),
        ("not json", "succeeded", ["not json 1"]),
    ],
)
async def test_only_success_commits_the_transaction(
    ledger: dt.App, how: str, state: str, left: list[str]
) -> None:
    job = await (await ledger.submit("write", how=how)).wait("60s")
    assert job.state == state, job.error
    assert await entries_of(ledger) == left


async def test_an_error_that_was_swallowed_ends_in_a_known_state(ledger: dt.App) -> None:
    """PostgreSQL refuses to commit after it, and the attempt has failed; SQLite undoes the statement
    alone."""
    job = await (await ledger.submit("write", how="breaks the transaction")).wait("60s")
    assert job.state == "succeeded", job.error
    assert await entries_of(ledger) == [f"breaks the transaction {job.attempt}"]
    assert job.failures == job.attempt - 1


async def test_a_savepoint_undoes_its_block_alone(ledger: dt.App) -> None:
    @ledger.task("nested")
    async def nested(ctx: dt.Context) -> None:
        await ctx.connection.execute("INSERT INTO ledger VALUES ('outer')")
        with suppress(ValueError):
            async with ctx.connection.transaction():
                await ctx.connection.execute("INSERT INTO ledger VALUES ('inner')")
                raise ValueError("inner")

    job = await _run_on_another_node(ledger, nested)
    assert job.state == "succeeded", job.error
    assert await entries_of(ledger) == ["outer"]


async def _run_on_another_node(app: dt.App, task: dt.Task[..., Any]) -> dt.JobHandle:
    """A task declared after the first node had started is known to nodes that start later."""
    async with app.running():
        return await (await task.submit()).wait("60s")


async def test_a_plain_function_writes_through_its_blocking_twin(ledger: dt.App) -> None:
    @ledger.task("plain")
    def plain(ctx: dt.Context) -> list[Any]:
        connection = ctx.sync.connection
        connection.executemany("INSERT INTO ledger VALUES ($1)", [("a",), ("b",)])
        with suppress(ValueError), connection.transaction():
            connection.execute("INSERT INTO ledger VALUES ('c')")
            raise ValueError("inner")
        rows = connection.fetch("SELECT entry FROM ledger ORDER BY entry")
        row = connection.fetchrow("SELECT count(*) AS many FROM ledger")
        return [[row["entry"] for row in rows], row["many"], connection.fetchval("SELECT 7")]

    job = await _run_on_another_node(ledger, plain)
    assert job.state == "succeeded", job.error
    assert job.result == [["a", "b"], 2, 7]
    assert await entries_of(ledger) == ["a", "b"]


async def test_a_plain_function_cannot_forget_to_await(ledger: dt.App) -> None:
    @ledger.task("forgetful", retry=dt.Retry(max_attempts=1))
    def forgetful(ctx: dt.Context) -> None:
        ctx.connection.execute("INSERT INTO ledger VALUES ('never')")  # type: ignore[unused-coroutine]

    job = await _run_on_another_node(ledger, forgetful)
    assert job.state == "dead", "the write would be missing without notice"
    assert job.error is not None
    assert "a plain function cannot await: write ctx.sync.connection.execute()" in job.error


async def test_a_job_that_was_taken_away_cannot_commit(ledger: dt.App) -> None:
    """The zombie finishes its work, and its writes are rolled back with its completion."""
    begun, go_on = asyncio.Event(), asyncio.Event()
    nodes = []

    @ledger.task("zombie")
    async def zombie(ctx: dt.Context) -> int:
        nodes.append(ctx.attempt)
        if ctx.attempt == 1:
            begun.set()
            await go_on.wait()
        await ctx.connection.execute("INSERT INTO ledger VALUES ($1)", f"attempt {ctx.attempt}")
        return ctx.attempt

    async with ledger.running() as node:
        job = await zombie.submit()
        await soon(begun)
        assert node.id is not None
        await ledger.store.leave(node.id)
        async with ledger.running():
            await job.wait("60s")
        go_on.set()
    assert (job.state, job.result) == ("succeeded", 2)
    assert await entries_of(ledger) == ["attempt 2"]


@pytest.mark.parametrize("app_url", [pytest.param("postgres", marks=pytest.mark.server)], indirect=True)
async def test_a_follow_up_is_submitted_with_the_success_or_not_at_all(ledger: dt.App) -> None:
    """The next job rides in the same transaction, on the driver's own connection."""

    @ledger.task("first", retry=AT_ONCE)
    async def first(ctx: dt.Context) -> None:
        await ledger.submit("write", how=f"follow-up of {ctx.attempt}", connection=await ctx.connection)
        if ctx.attempt == 1:
            raise ValueError

    job = await _run_on_another_node(ledger, first)
    assert (job.state, job.attempt) == ("succeeded", 2), job.error
    follow_ups = [found for found in await ledger.jobs() if found.task == "write"]
    assert [found.payload for found in follow_ups] == [{"how": "follow-up of 2"}]


async def test_a_checkpoint_inside_the_transaction_is_refused_with_the_remedy(ledger: dt.App) -> None:
    @ledger.task("both", retry=dt.Retry(max_attempts=1))
    async def both(ctx: dt.Context) -> str:
        await ctx.checkpoint(1)
        await ctx.connection.execute("INSERT INTO ledger VALUES ('x')")
        with pytest.raises(Conflict, match="before the first statement"):
            await ctx.checkpoint(2)
        return "ok"

    job = await _run_on_another_node(ledger, both)
    assert (job.state, job.result) == ("succeeded", "ok"), job.error


async def test_the_settlement_written_twice_is_no_refusal(make_app: MakeApp) -> None:
    """Once inside the transaction, and once more with the others: the store knows it as its own."""
    events: list[Any] = []
    app = make_app(observers=[events.append])

    @app.task("write")
    async def write(ctx: dt.Context) -> str:
        return str(await ctx.connection.fetchval("SELECT 7"))

    async with app.running():
        job = await (await write.submit()).wait("60s")
    assert (job.state, job.result) == ("succeeded", "7")
    assert [event for event in events if isinstance(event, SettlementsRefused)] == []
    assert any(isinstance(event, AttemptsSettled) for event in events)


async def test_many_transactions_run_concurrently(ledger: dt.App) -> None:
    jobs = await ledger.submit_many([dt.NewJob("write", {"how": "fails first"}) for _ in range(30)])
    for job in jobs:
        await job.wait("60s")
    assert {(job.state, job.attempt) for job in jobs} == {("succeeded", 2)}
    assert await entries_of(ledger) == ["fails first 2"] * 30


async def test_store_without_transactions_is_refused(memory_app: dt.App) -> None:
    @memory_app.task("write", retry=dt.Retry(max_attempts=1))
    async def write(ctx: dt.Context) -> None:
        await ctx.connection.execute("SELECT 1")

    async with memory_app.running():
        job = await (await write.submit()).wait("60s")
    assert job.state == "dead"
    assert "sqlite:///" in (job.error or "")


async def test_two_apps_share_one_store_with_transactions(make_app: MakeApp) -> None:
    """Each node's tasks have connections of their own; what one commits the other sees."""
    one, other = make_app(), make_app()

    @one.task("write")
    async def write(ctx: dt.Context) -> None:
        await ctx.connection.execute(TABLE)
        await ctx.connection.execute("DELETE FROM ledger")
        await ctx.connection.execute("INSERT INTO ledger VALUES ('from one')")

    @other.task("read")
    async def read(ctx: dt.Context) -> Any:
        return await ctx.connection.fetchval("SELECT entry FROM ledger")

    async with one.running(), other.running():
        await (await write.submit()).wait("60s")
        assert (await (await read.submit()).wait("60s")).result == "from one"


async def test_a_follow_up_belongs_to_the_tasks_own_transaction(app: dt.App) -> None:
    """Submitted with ctx.connection: there when the task has succeeded, and never else."""

    @app.task("first", retry=dt.Retry(max_attempts=1))
    async def first(ctx: dt.Context, fail: bool) -> None:
        await second.submit(fail=fail, connection=ctx.connection)
        if fail:
            raise ValueError("after all")

    @app.task("second", queue="second")
    async def second(fail: bool) -> bool:
        return fail

    async with app.running():
        for fail in (True, False):
            await (await first.submit(fail=fail)).wait("60s")
        assert [job.payload for job in await app.jobs(queue="second")] == [{"fail": False}]
