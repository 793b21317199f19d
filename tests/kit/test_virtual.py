"""Virtual time applies to the whole app: schedules, retries, timeouts, limits and sleeping tasks. It is
exact, fast and repeatable."""

from __future__ import annotations

import asyncio
import os
import threading
import time as wall
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Annotated, Any

import pytest

import duetime as dt
from duetime import testing
from duetime.errors import InvalidInput
from duetime.model.limit import Limit
from duetime.testing.kit.virtual_clock import Stuck

Seen = list[tuple[str, Any]]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_schedule_fires_exactly_in_its_time_zone(app: dt.App) -> None:
    """Across the end of summer time: 09:00 in Berlin is 07:00 UTC before, 08:00 after."""
    fired: list[datetime] = []

    @app.task("report")
    async def report(ctx: dt.Context) -> None:
        fired.append(ctx.fire_time)
        assert time.now == ctx.fire_time

    async with testing.virtual(app, start="2026-10-23T12:00Z") as time:
        await app.schedule("daily", report, dt.Cron("0 9 * * *", tz="Europe/Berlin"))
        assert await time.run_until("Monday 09:00", tz="Europe/Berlin") == at("2026-10-26T08:00Z")
        assert fired == [at("2026-10-24T07:00Z"), at("2026-10-25T08:00Z"), at("2026-10-26T08:00Z")]


async def test_a_year_of_fires_takes_seconds(app: dt.App) -> None:
    days: list[datetime] = []

    @app.task("tick")
    async def tick(ctx: dt.Context) -> None:
        await asyncio.sleep(60)
        days.append(ctx.fire_time)

    began = wall.process_time()
    async with testing.virtual(app, start="2026-01-01T00:00Z") as time:
        await app.schedule("daily", tick, dt.Cron("30 2 * * *"))
        await time.advance("365d")
    assert days == [at("2026-01-01T02:30Z") + timedelta(days=number) for number in range(365)]
    assert wall.process_time() - began < 10


async def test_retries_back_off_until_the_job_is_dead(app: dt.App) -> None:
    starts: list[datetime] = []

    @app.task("fails", retry=dt.Retry(max_attempts=4, first_delay="1h", multiplier=10, max_delay="30d"))
    async def fails() -> None:
        starts.append(time.now)
        raise ValueError("never")

    async with testing.virtual(app) as time:
        job = await fails.submit()
        await time.run_until_idle()
        await job.refresh()
        assert (job.state, job.failures) == (dt.State.DEAD, 4)
    waits = [later - sooner for sooner, later in pairwise(starts)]
    assert len(waits) == 3
    assert all(timedelta(0) < wait <= timedelta(hours=10**number) for number, wait in enumerate(waits))


async def test_timeout_happens_exactly_on_time(app: dt.App) -> None:
    @app.task("sleeps", timeout="10m", retry=dt.Retry(max_attempts=1))
    async def sleeps() -> None:
        await asyncio.sleep(3600)

    async with testing.virtual(app) as time:
        began = time.now
        job = await (await sleeps.submit()).wait()
        assert job.state is dt.State.DEAD
        assert "timed out" in (job.error or "")
        assert time.now - began == timedelta(minutes=10)


async def test_time_stands_still_while_test_code_runs(app: dt.App) -> None:
    ran: list[int] = []

    @app.task("note")
    async def note(number: int) -> None:
        ran.append(number)

    async with testing.virtual(app, start="2026-11-16T08:00Z") as time:
        await note.submit(number=1)
        await note.submit(number=2, delay="15m")
        assert (time.now, ran) == (at("2026-11-16T08:00Z"), [])
        await time.advance("14m59s")
        assert ran == [1]
        await time.advance("1s")
        assert ran == [1, 2]
        await asyncio.sleep(60)
        assert time.now == at("2026-11-16T08:16Z")


async def test_wait_moves_time_only_to_the_end_of_the_job(app: dt.App) -> None:
    @app.task("slow")
    async def slow() -> str:
        await asyncio.sleep(90)
        return "done"

    async with testing.virtual(app) as time:
        began = time.now
        job = await slow.submit(delay="3d")
        with pytest.raises(dt.WaitTimeout, match="still pending after 1d"):
            await job.wait(timeout="1d")
        await job.wait()
        assert (job.result, time.now - began) == ("done", timedelta(days=3, seconds=90))


async def test_run_until_stops_when_the_condition_is_true(app: dt.App) -> None:
    ran: list[datetime] = []

    @app.task("tick")
    async def tick(ctx: dt.Context) -> None:
        ran.append(ctx.fire_time)

    async with testing.virtual(app, start="2026-01-01T00:00Z") as time:
        await app.schedule("hourly", tick, dt.Every("1h"))
        await time.run_until(lambda: len(ran) == 5)
        assert time.now == ran[-1]
        assert len(ran) == 5


async def test_sync_tasks_run_in_order_on_the_thread_of_the_test(app: dt.App) -> None:
    seen: list[tuple[int, int]] = []

    @app.task("sync_task")
    def sync_task(number: int) -> int:
        seen.append((number, threading.get_ident()))
        return asyncio.run(asyncio.sleep(0, number * 2))

    async with testing.virtual(app) as time:
        jobs = [await sync_task.submit(number=number) for number in range(20)]
        await time.run_until_idle()
        assert [(await job.refresh()).result for job in jobs] == [number * 2 for number in range(20)]
    assert seen == [(number, threading.get_ident()) for number in range(20)]


async def test_sync_tasks_save_checkpoints_progress_and_once_marks(app: dt.App) -> None:
    @app.task("sync_task")
    def sync_task(ctx: dt.Context) -> list[bool]:
        ctx.sync.checkpoint({"page": 3})
        ctx.sync.progress(3, 10, "pages")
        return [ctx.sync.once("mail"), ctx.sync.once("mail"), ctx.last_checkpoint == {"page": 3}]

    async with testing.virtual(app):
        job = await (await sync_task.submit()).wait()
        assert job.result == [True, False, True]
        assert job.checkpoint == {"page": 3}
        assert job.progress == (3, 10, "pages")


async def test_jobs_submitted_by_a_task_run(app: dt.App) -> None:
    ran: list[int] = []

    @app.task("chain")
    async def chain(left: int) -> None:
        ran.append(left)
        if left:
            await chain.submit(left=left - 1, delay="1d")

    async with testing.virtual(app) as time:
        began = time.now
        await chain.submit(left=3)
        await time.run_until_idle()
        assert (ran, time.now - began) == ([3, 2, 1, 0], timedelta(days=3))


async def test_task_can_wait_for_a_job_it_submitted(app: dt.App) -> None:
    @app.task("child")
    async def child() -> int:
        await asyncio.sleep(3600)
        return 7

    @app.task("parent")
    async def parent() -> Any:
        return (await (await child.submit()).wait()).result + 1

    async with testing.virtual(app):
        assert (await (await parent.submit()).wait()).result == 8


async def test_rate_limit_holds_in_virtual_time(app: dt.App) -> None:
    starts: list[timedelta] = []

    @app.task("call", limit=Limit(rate="1/1h"))
    async def call() -> None:
        starts.append(time.now - began)

    async with testing.virtual(app) as time:
        began = time.now
        for _ in range(3):
            await call.submit()
        await time.run_until_idle()
    assert len(starts) == 3
    assert [round(start / timedelta(hours=1), 3) for start in starts] == [0, 1, 2]


async def test_run_until_idle_fails_if_a_job_snoozes_endlessly(app: dt.App) -> None:
    @app.task("never")
    async def never() -> Any:
        return dt.Snooze("1d")

    async with testing.virtual(app) as time:
        await never.submit()
        with pytest.raises(AssertionError, match=r"still unfinished after 31d:\n  never .*\(pending\)"):
            await time.run_until_idle()


async def test_wait_for_a_job_in_a_paused_queue_raises_stuck(app: dt.App) -> None:
    @app.task("held", queue="held")
    async def held() -> None: ...

    async with testing.virtual(app) as time:
        await app.pause_queue("held")
        job = await held.submit()
        with pytest.raises(Stuck, match="of held will stay pending: nothing more"):
            await job.wait()
        await time.run_until_idle()
        await app.resume_queue("held")
        await job.wait()
        assert job.state is dt.State.SUCCEEDED


async def test_time_in_the_past_is_refused(app: dt.App) -> None:
    async with testing.virtual(app, start="2026-11-16T08:00Z") as time:
        with pytest.raises(InvalidInput, match="time only moves forward"):
            await time.run_until("2026-11-16T07:59Z")


async def test_same_seed_gives_the_same_run(app: dt.App) -> None:
    """Ids, jitter and instants are equal; another seed gives another run."""

    @app.task("flaky", retry=dt.Retry(first_delay="1h"))
    async def flaky(ctx: dt.Context, number: int) -> None:
        seen.append((str(ctx.job_id), (number, ctx.attempt, time.now)))
        await asyncio.sleep(number)
        if ctx.attempt < 3:
            raise ValueError("not yet")

    histories: list[Seen] = []
    for seed in (1, 1, 2):
        seen: Seen = []
        async with testing.virtual(app, seed=seed) as time:
            for number in range(10):
                await flaky.submit(number=number)
            await time.run_until_idle()
        histories.append(seen)
    assert len(histories[0]) == 30
    assert histories[0] == histories[1]
    assert histories[0] != histories[2]


async def test_app_is_restored_afterwards(app: dt.App) -> None:
    @app.task("note")
    async def note() -> None: ...

    before = dict(vars(app))

    async def fail_under_test() -> None:
        async with testing.virtual(app):
            await note.submit()
            assert app.store is not before["context"].shared.store
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_under_test()
    assert vars(app) == before
    assert not app.is_open
    with pytest.raises(dt.NotOpen):
        await note.submit()


async def test_app_running_uses_the_node_of_the_kit(app: dt.App) -> None:
    """As in a web application that runs a worker in its lifespan."""

    @app.task("note")
    async def note() -> str:
        return "ran"

    async with testing.virtual(app) as time, app.running():
        job = await note.submit(delay="1h")
        await time.advance("1h")
        assert (await job.refresh()).result == "ran"
        assert len(await app.nodes()) == 1


async def test_resources_are_opened_and_closed_or_replaced(app: dt.App) -> None:
    steps: list[str] = []

    @app.resource
    async def mailbox() -> Any:
        steps.append("open")
        yield "real"
        steps.append("closed")

    @app.task("send")
    async def send(box: Annotated[str, dt.Use(mailbox)] = dt.INJECTED) -> str:
        return box

    async with testing.virtual(app):
        assert (await (await send.submit()).wait()).result == "real"
    assert steps == ["open", "closed"]
    async with testing.virtual(app, resources={mailbox: "fake"}):
        assert (await (await send.submit()).wait()).result == "fake"
    assert steps == ["open", "closed"]


async def test_task_gets_an_answer_from_a_real_socket(app: dt.App) -> None:
    """The answer arrives before the timeout, although virtual time could jump to the timeout immediately."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    @app.task("ask", timeout="5s", retry=dt.Retry(max_attempts=1))
    async def ask() -> str:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        writer.write(b"hello\n")
        line = await reader.readline()
        writer.close()
        await writer.wait_closed()
        return line.decode().strip()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, testing.virtual(app) as time:
        began = time.now
        job = await (await ask.submit()).wait()
        assert (job.result, job.error) == ("hello", None)
        assert time.now - began < timedelta(seconds=5)


def test_sync_tests_can_use_time_sync(app: dt.App) -> None:
    @app.task("slow")
    async def slow() -> str:
        await asyncio.sleep(30)
        return "done"

    with testing.virtual(app, start="2026-11-16T08:00Z") as time:
        job = app.sync.submit(slow, delay="1h")
        assert time.sync.advance("1h") == at("2026-11-16T09:00Z")
        assert job.refresh().state is dt.State.RUNNING
        assert time.sync.run_until("09:01") == at("2026-11-16T09:01Z")
        assert job.refresh().result == "done"
        assert app.sync.submit(slow).wait().result == "done"
        time.sync.run_until_idle()
    assert not app.is_open


def test_virtual_time_works_in_asyncio_run(app: dt.App) -> None:
    @app.task("sleeps")
    async def sleeps() -> str:
        await asyncio.sleep(3600)
        return "done"

    async def scenario() -> tuple[Any, timedelta]:
        async with testing.virtual(app) as time:
            began = time.now
            job = await (await sleeps.submit()).wait()
            return job.result, time.now - began

    assert asyncio.run(scenario()) == ("done", timedelta(hours=1))


def test_run_returns_the_result_of_the_scenario(app: dt.App) -> None:
    ran: list[datetime] = []

    @app.task("tick")
    async def tick(ctx: dt.Context) -> None:
        ran.append(ctx.fire_time)

    async def scenario(time: testing.VirtualTime) -> str:
        await app.schedule("hourly", tick, dt.Cron("0 * * * *"))
        await time.advance("1h")
        assert len(ran) == 1
        return "played"

    assert testing.run(app, scenario, start="2026-11-16T08:30Z", until="12:00") == "played"
    assert ran == [datetime(2026, 11, 16, hour, tzinfo=UTC) for hour in (9, 10, 11, 12)]


async def test_moved_is_called_with_each_instant(app: dt.App) -> None:
    instants: list[datetime] = []

    @app.task("note")
    async def note() -> datetime:
        return instants[-1]

    async with testing.virtual(app, start="2026-11-16T08:00Z", moved=instants.append) as time:
        job = await (await note.submit(delay="1h")).wait()
        assert job.result == "2026-11-16T09:00:00Z"
        assert instants[-1] == time.now
    assert instants == sorted(instants)


async def test_task_that_polls_the_time_sees_it_move(app: dt.App) -> None:
    """It never waits, and must not hang the test."""

    @app.task("restless")
    async def restless() -> None:
        while time.now < until:
            await asyncio.sleep(0)

    async with testing.virtual(app) as time:
        until = time.now + timedelta(milliseconds=20)
        await (await restless.submit()).wait()
        assert until <= time.now < until + timedelta(seconds=1)


async def test_isolated_task_runs_in_the_process_of_the_test(app: dt.App) -> None:
    task = app.task("isolated", isolate=True)(process_id)
    async with testing.virtual(app):
        assert (await (await task.submit()).wait()).result == os.getpid()


def process_id() -> int:
    return os.getpid()


async def test_second_loop_for_one_virtual_time_is_refused(app: dt.App) -> None:
    async with testing.virtual(app):
        with pytest.raises(dt.Conflict, match="one app at a time"):
            async with testing.virtual(dt.App("memory://")):
                pass


def test_second_virtual_time_on_one_loop_is_refused(app: dt.App) -> None:
    with testing.virtual(app) as time:
        time.sync.advance("1h")
        with pytest.raises(dt.Conflict, match="another event loop"):
            asyncio.run(time.advance("1h"))
