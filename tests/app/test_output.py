"""The output of jobs, on every store: what ctx.log, other loggers and child processes write is kept for each
attempt."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import pytest

import duetime as dt
from duetime.engine.submit.submission import JobRequest
from duetime.invokers.command import CommandHandler
from duetime.model.command import COMMAND, CommandTarget
from duetime.model.output import KIND
from duetime.model.views import OutputView
from tests.app.conftest import MakeApp
from tests.app.waiting import eventually

library = logging.getLogger("some.library")


def texts(view: OutputView) -> list[str]:
    return [line.text for line in view.lines]


async def records(app: dt.App) -> int:
    return len(await app.store.list_records(KIND, None, 100))


async def test_output_of_each_attempt_is_kept(app: dt.App) -> None:
    @app.task("work", retry=dt.Retry(max_attempts=2, first_delay="1ms"))
    async def work(ctx: dt.Context) -> None:
        ctx.log("begins", rows=3)
        ctx.log.warning("attempt %d", ctx.attempt)
        ctx.log("postgresql://anna:s3cret@db", level="error")
        if ctx.attempt == 1:
            raise ValueError("no")

    async with app.running():
        job = await (await work.submit()).wait()
        first, last = await job.output(attempt=1), await job.output()
    assert [(line.number, line.stream, line.level, line.text) for line in first.lines] == [
        (1, "log", "info", "begins rows=3"),
        (2, "log", "warning", "attempt 1"),
        (3, "log", "error", "postgresql://anna:***@db"),
    ]
    assert (first.attempt, first.total, first.last, first.ended) == (1, 3, 3, True)
    assert (last.attempt, texts(last)[1]) == (2, "attempt 2")
    assert all(job.fire_time <= line.at for line in first.lines)


@pytest.mark.slow
async def test_output_is_readable_while_the_attempt_runs(make_app: MakeApp) -> None:
    app, reader = make_app(), make_app()
    go_on = asyncio.Event()

    @app.task("work")
    async def work(ctx: dt.Context) -> None:
        ctx.log("first")
        await go_on.wait()
        ctx.log("second")

    await reader.open()
    async with app.running():
        job = await work.submit()

        async def shown() -> bool:
            return texts(await reader.job_output(job.id)) == ["first"]

        await eventually(shown)
        assert not (await reader.job_output(job.id)).ended
        go_on.set()
        await job.wait()
        rest = await reader.job_output(job.id, after=1)
    assert (texts(rest), rest.total, rest.last, rest.ended) == (["second"], 2, 2, True)


async def test_attempt_that_logs_nothing_writes_nothing(app: dt.App) -> None:
    @app.task("quiet")
    async def quiet(ctx: dt.Context) -> None:
        ctx.log.debug("not even this")

    @app.task("off", output=False)
    async def off(ctx: dt.Context) -> None:
        ctx.log("not kept")

    async with app.running():
        for task in (quiet, off):
            job = await (await task.submit()).wait(raise_on_failure=True)
            assert (await job.output()).total == 0
        assert await records(app) == 0


async def test_a_flood_of_lines_keeps_the_first_and_the_last(app: dt.App) -> None:
    @app.task("loud")
    def loud(ctx: dt.Context) -> None:
        for number in range(20_000):
            ctx.log("line", number=number)

    async with app.running():
        job = await (await loud.submit()).wait()
        output = await job.output()
    assert output.total == 20_000
    assert (output.lines[0].number, output.lines[-1].number) == (1, 20_000)
    assert 500 < len(output.lines) < 4_000
    assert size_of(output) <= 128 * 1024


def size_of(output: OutputView) -> int:
    return sum(len(line.text) for line in output.lines)


async def test_output_is_kept_when_the_task_uses_a_transaction(app: dt.App) -> None:
    @app.task("work")
    async def work(ctx: dt.Context) -> None:
        ctx.log("before")
        if app.store.capabilities.transactions:  # other stores keep it as always
            await ctx.connection.execute("SELECT 1")
        ctx.log("after")

    async with app.running():
        job = await (await work.submit()).wait(raise_on_failure=True)

        async def complete() -> (
            bool
        ):  # the end of the attempt is committed with its writes, before its output
            return texts(await job.output()) == ["before", "after"]

        await eventually(complete)


async def test_output_of_other_tenants_is_not_shown(app: dt.App) -> None:
    @app.task("work")
    async def work(ctx: dt.Context) -> None:
        ctx.log("mine")

    async with app.running():
        job = await (await work.submit()).wait()
        with pytest.raises(dt.JobNotFound):
            await app.for_tenant("other").job_output(job.id)


# -- in one process, whatever the store --------------------------------------------------------------------
async def test_other_loggers_are_kept_for_tasks_that_ask_for_it(
    memory_app: dt.App, caplog: pytest.LogCaptureFixture
) -> None:
    app = memory_app

    @app.task("threaded", output="logging")
    def threaded(ctx: dt.Context) -> None:
        library.warning("from a library in %s", "a thread")
        ctx.log.warning("my own")

    @app.task("async", output="logging")
    async def on_loop() -> None:
        try:
            raise ValueError("no")
        except ValueError:
            library.exception("from the loop")

    @app.task("plain")
    async def plain() -> None:
        library.warning("not kept")

    async with app.running():
        jobs = [await (await task.submit()).wait() for task in (threaded, on_loop, plain)]
        outputs = [texts(await job.output()) for job in jobs]
    assert outputs[0] == ["from a library in a thread", "my own"]
    assert outputs[1][0].startswith("from the loop\nTraceback")
    assert outputs[1][0].endswith("ValueError: no")
    assert outputs[2] == []


async def test_output_is_short_lived_if_asked(memory_app: dt.App) -> None:
    @memory_app.task("work")
    async def work(ctx: dt.Context) -> None:
        ctx.log("here")

    async with memory_app.running(output_retention="0s"):
        job = await (await work.submit()).wait()
        assert (await job.output()).total == 0
    async with memory_app.running(output_retention="1h"):
        await (await work.submit()).wait()
        [record] = await memory_app.store.list_records(KIND, None, 10)
        assert record.expires_at is not None
        assert record.expires_at - await memory_app.now() <= 3_600_000_000


async def test_output_goes_with_the_jobs_of_its_task(memory_app: dt.App) -> None:
    @memory_app.task("work", retention="10m")
    async def work(ctx: dt.Context) -> None:
        ctx.log("here")

    async with memory_app.running():
        await (await work.submit()).wait()
        [record] = await memory_app.store.list_records(KIND, None, 10)
        assert record.expires_at is not None
        assert record.expires_at - await memory_app.now() <= 600_000_000


async def test_attempt_that_has_ended_keeps_nothing_more(memory_app: dt.App) -> None:
    held: list[dt.Context] = []

    @memory_app.task("work")
    async def work(ctx: dt.Context) -> None:
        held.append(ctx)
        ctx.log("in time")

    async with memory_app.running():
        job = await (await work.submit()).wait()
        held[0].log("too late")
        assert texts(await job.output()) == ["in time"]


async def test_output_of_a_command_is_kept(memory_app: dt.App) -> None:
    code = "import sys; print('to stdout'); print('to stderr', file=sys.stderr); sys.exit(3)"
    target = CommandTarget.from_json({"type": "command", "argv": [sys.executable, "-c", code]})
    memory_app.use_target(COMMAND, lambda now: CommandHandler())
    async with memory_app.running():
        request = JobRequest(dt.NewJob(COMMAND), target.to_spec(), True)
        stored = await memory_app.jobs.submit_request(request)
        job = await (await memory_app.get_job(stored.id)).wait()
        output = await job.output()
    assert job.state == "dead"
    assert {(line.stream, line.text) for line in output.lines} == {
        ("stdout", "to stdout"),
        ("stderr", "to stderr"),
    }


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"attempt": 0}, "attempt"),
        ({"after": -1}, "after"),
        ({"after": True}, "after"),
    ],
)
async def test_wrong_numbers_are_refused(memory_app: dt.App, arguments: dict[str, Any], field: str) -> None:
    @memory_app.task("work")
    async def work(ctx: dt.Context) -> None:
        ctx.log("here")

    async with memory_app.running():
        job = await (await work.submit()).wait()
        with pytest.raises(dt.InvalidInput) as refused:
            await job.output(**arguments)
        with pytest.raises(dt.JobNotFound, match="has had 1 attempt"):
            await job.output(attempt=2)
    assert refused.value.field == field


def test_unknown_output_choice_is_refused(memory_app: dt.App) -> None:
    with pytest.raises(dt.InvalidInput, match="output: 'all' is not valid"):
        memory_app.task("work", output="all")  # type: ignore[arg-type]
