"""Job handles: refresh, wait, cancel, and what they show at each moment."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

import duetime as dt
from tests.app.conftest import MakeApp
from tests.app.waiting import eventually, soon


class Held:
    """A task that says when it has started and ends when it is let go."""

    def __init__(self, app: dt.App) -> None:
        self.started, self.release, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

        @app.task("held")
        async def held() -> str:
            self.started.set()
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.stopped.set()
                raise
            return "let go"


@pytest.fixture
def held(app: dt.App) -> Held:
    return Held(app)


async def test_new_handle_knows_only_its_id(client: dt.App) -> None:
    job = await client.submit("work", delay="1h")
    assert (job.state, job.attempt, job.failures, job.result, job.error) == ("pending", 0, 0, None, None)
    for name in (
        "payload",
        "queue",
        "priority",
        "task",
        "schedule",
        "fire_time",
        "due_at",
        "started_at",
        "finished_at",
        "labels",
    ):
        with pytest.raises(dt.NotOpen, match="refresh"):
            getattr(job, name)
    assert repr(job) == f"<Job {job.id} pending>"


async def test_handle_shows_a_job_from_pending_to_succeeded(app: dt.App, held: Held) -> None:
    async with app.running():
        before = datetime.now(UTC)
        job = await app.submit("held")
        await soon(held.started)
        await job.refresh()
        assert (job.state, job.attempt, job.result, job.finished_at) == ("running", 1, None, None)
        held.release.set()
        assert await job.wait("60s") is job
    assert (job.state, job.attempt, job.failures, job.result, job.error) == (
        "succeeded",
        1,
        0,
        "let go",
        None,
    )
    assert job.started_at is not None
    assert job.finished_at is not None
    assert before - timedelta(seconds=1) <= job.started_at <= job.finished_at


async def test_wait_times_out_and_the_job_continues(app: dt.App, held: Held) -> None:
    async with app.running():
        job = await app.submit("held")
        await soon(held.started)
        with pytest.raises(dt.WaitTimeout, match="still running after 100ms"):
            await job.wait("100ms")
        with pytest.raises(TimeoutError):
            await job.wait("0s")
        held.release.set()
        assert (await job.wait("60s")).state == "succeeded"


async def test_wait_for_a_final_job_returns_immediately(app: dt.App, held: Held) -> None:
    held.release.set()
    async with app.running():
        job = await (await app.submit("held")).wait("60s")
        assert (await (await app.get_job(job.id)).wait("0s")).result == "let go"


@pytest.mark.parametrize("call", ["get_job", "read_job", "wait_for", "read_attempts", "job_output"])
async def test_calls_take_the_id_of_a_job_as_text_and_refuse_other_text(
    app: dt.App, held: Held, call: str
) -> None:
    held.release.set()
    async with app.running():
        job = await (await app.submit("held")).wait("60s")
        await getattr(app, call)(str(job.id))
        with pytest.raises(dt.JobNotFound, match="'nope' is not a job id"):
            await getattr(app, call)("nope")


async def test_many_callers_can_wait_for_one_job(app: dt.App, held: Held) -> None:
    async with app.running():
        job = await app.submit("held")
        others = [await app.get_job(job.id) for _ in range(5)]
        waiting = [asyncio.create_task(other.wait("60s")) for other in others]
        await soon(held.started)
        held.release.set()
        assert {done.result for done in await asyncio.gather(*waiting)} == {"let go"}


async def test_client_without_a_worker_can_wait(make_app: MakeApp) -> None:
    node, client = make_app(), make_app()
    held = Held(node)
    await client.open()
    async with node.running():
        job = await client.submit("held")
        await soon(held.started)
        held.release.set()
        assert (await job.wait("60s")).result == "let go"


@pytest.mark.parametrize(
    ("reason", "kept"),
    [("no \udcff.csv", "no ?.csv"), ("nul \0 inside", "nul \ufffd inside")],
    ids=["surrogate", "nul"],
)
async def test_a_reason_that_no_store_could_hold_is_made_storable(
    app: dt.App, reason: str, kept: str
) -> None:
    await app.open()
    job = await app.submit("work", delay="1h")
    assert await job.cancel(reason) == "cancelled"
    assert (await job.refresh()).error == kept


async def test_a_pending_job_is_cancelled_at_once(app: dt.App) -> None:
    await app.open()
    job = await app.submit("work", delay="1h")
    assert await job.cancel("not wanted") == "cancelled"
    assert (job.state, job.error, job.attempt) == ("cancelled", "not wanted", 0)
    with pytest.raises(dt.JobFinished):
        await job.cancel()


async def test_a_running_job_is_stopped(app: dt.App, held: Held) -> None:
    async with app.running():
        job = await app.submit("held")
        await soon(held.started)
        assert await job.cancel("wrong month") == "requested"
        await job.wait("60s")
        assert (job.state, held.stopped.is_set(), job.result) == ("cancelled", True, None)
        assert job.error == "wrong month"
        with pytest.raises(dt.JobFinished):
            await app.cancel_job(job.id)


async def test_running_job_shows_when_it_started(app: dt.App, held: Held) -> None:
    async with app.running():
        job = await app.submit("held")
        await soon(held.started)
        running = await (await app.get_job(job.id)).refresh()
        assert running.state == "running"
        assert running.started_at is not None
        [listed] = await app.jobs(state="running")
        assert running.fire_time <= running.started_at == listed.started_at
        await job.cancel()
        await job.wait("60s")


async def test_a_job_that_runs_elsewhere_is_stopped_too(make_app: MakeApp) -> None:
    node, client = make_app(), make_app()
    held = Held(node)
    await client.open()
    async with node.running():
        job = await client.submit("held")
        await soon(held.started)
        assert await job.cancel() == "requested"
        assert (await job.wait("60s")).state == "cancelled"


async def test_a_task_that_fails_while_it_is_cancelled_is_not_retried(app: dt.App) -> None:
    """I-7."""
    started = asyncio.Event()

    @app.task("work", retry=dt.Retry(max_attempts=5, first_delay="0s"))
    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("while tidying up") from None

    async with app.running():
        job = await work.submit()
        await soon(started)
        await job.cancel()
        await job.wait("60s")
    assert (job.state, job.attempt) == ("cancelled", 1)


async def test_a_plain_function_cannot_be_stopped_but_its_job_ends(memory_app: dt.App) -> None:
    started, release = threading.Event(), threading.Event()

    @memory_app.task("work")
    def work() -> None:
        started.set()
        release.wait(120)

    async with memory_app.running():
        job = await work.submit()
        assert await asyncio.to_thread(started.wait, 60)
        await job.cancel()
        await job.wait("60s")
        release.set()
    assert job.state == "cancelled"


async def test_a_prefetched_job_is_cancelled_before_it_starts(app: dt.App) -> None:
    """Claimed a little ahead of time, it counts as running, and must still not start."""
    ran: list[int] = []

    @app.task("work")
    async def work() -> None:
        ran.append(1)

    async with app.running():
        job = await work.submit(delay="150ms")

        async def claimed() -> bool:
            # On a busy machine it may have ended by now.
            return (await job.refresh()).state in ("running", "succeeded")

        await eventually(claimed)
        with suppress(dt.JobFinished):
            await job.cancel()
        await job.wait("60s")
    assert (job.state, ran) in (("cancelled", []), ("succeeded", [1]))
