"""Results and waiting: waiters are notified when a job is done."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime import stores
from duetime.app import wait
from duetime.model.instant import SECOND
from duetime.stores.memory import MemoryStore
from tests.app.conftest import MakeApp
from tests.app.waiting import eventually, soon

WORKER = """
import asyncio, sys
import duetime as dt

app = dt.App(sys.argv[1])

@app.task("echo")
async def echo(ctx: dt.Context, text: str) -> str:
    if text == "fail":
        raise ValueError("no")
    return text

async def main():
    async with app.running(lease="5s"):
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

asyncio.run(main())
"""


class Counting:
    """A store that counts what is asked of it."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.store, name)
        if not callable(value):
            return value

        def counted(*arguments: Any, **named: Any) -> Any:
            self.calls[name] += 1
            return value(*arguments, **named)

        return counted


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    url: str = (
        f"sqlite:///{tmp_path}/duetime.db"
        if request.param == "sqlite"
        else request.getfixturevalue("migrated_url")
    )
    return url


@pytest.fixture
async def elsewhere(shared_url: str) -> AsyncIterator[str]:
    """The URL of a store that has its worker in another process."""
    await dt.App(shared_url).migrate()
    command = [sys.executable, "-c", WORKER, shared_url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert await asyncio.to_thread(worker.stdout.readline) == "ready\n"
        yield shared_url
        worker.communicate(timeout=60)


@pytest.mark.slow
async def test_a_worker_in_another_process_is_waited_for_without_polling(
    elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without polling it would hang if no notification came."""
    monkeypatch.setattr(wait, "POLL_INTERVAL", 3600 * SECOND)
    store = Counting(stores.from_url(elsewhere))
    app = dt.App(store)
    await app.open()
    for number in range(5):
        job = await app.submit("echo", text=f"number {number}", delay="200ms")
        before = store.calls.copy()
        assert (await job.wait("60s")).result == f"number {number}"
        asked = store.calls - before
        # Before the wait, to have the end announced, and after it; the first subscription wakes it once more
        assert asked["get_job"] <= (5 if number == 0 else 3), asked
        assert asked.total() - asked["subscribe"] <= 5, asked
    await app.close()


async def test_many_callers_wait_for_many_jobs(elsewhere: str) -> None:
    app = dt.App(elsewhere)
    await app.open()
    jobs = await app.submit_many([dt.NewJob("echo", {"text": str(n)}, delay="100ms") for n in range(50)])
    done = await asyncio.gather(*(job.wait("60s") for job in jobs))
    assert [job.result for job in done] == [str(n) for n in range(50)]
    await app.close()


async def test_lost_notification_delays_a_wait_by_one_poll_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mute(MemoryStore):
        def subscribe(self, listener: Callable[[Any], None]) -> Callable[[], None]:
            return lambda: None

    monkeypatch.setattr(wait, "POLL_INTERVAL", SECOND // 10)
    app = dt.App(Mute())
    await app.open()
    job = await app.submit("work", delay="1h")
    waited = asyncio.create_task(job.wait("60s"))
    await eventually(lambda: _is_waiting(app))
    await app.cancel_job(job.id)
    assert (await waited).state == "cancelled"
    await app.close()


async def _is_waiting(app: dt.App) -> bool:
    return app.context.shared.waiter.size > 0


async def test_cancelling_a_pending_job_ends_its_waits(app: dt.App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait, "POLL_INTERVAL", 3600 * SECOND)
    await app.open()
    job = await app.submit("work", delay="1h")
    waited = asyncio.create_task(job.wait("60s"))
    await eventually(lambda: _is_waiting(app))
    await app.cancel_job(job.id, "not wanted")
    assert (await waited).error == "not wanted"


async def test_wait_continues_through_retries(make_app: MakeApp) -> None:
    node, client = make_app(), make_app()

    @node.task("twice", retry=dt.Retry(max_attempts=2, first_delay="0s"))
    async def twice(ctx: dt.Context) -> int:
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return ctx.attempt

    await client.open()
    async with node.running():
        job = await client.submit("twice", delay="100ms")
        assert (await job.wait("60s")).result == 2


async def test_ended_waits_are_forgotten(app: dt.App) -> None:
    await app.open()
    job = await app.submit("work", delay="1h")
    waited = asyncio.create_task(job.wait())
    await eventually(lambda: _is_waiting(app))
    waited.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waited
    with pytest.raises(dt.WaitTimeout):
        await job.wait("10ms")
    assert app.context.shared.waiter.size == 0


async def test_waiting_for_a_job_of_another_tenant_finds_none(make_app: MakeApp) -> None:
    ours, theirs = make_app(tenant="ours"), make_app(tenant="theirs")
    await ours.open()
    await theirs.open()
    job = await ours.submit("work", delay="1h")
    with pytest.raises(dt.JobNotFound):
        await theirs.wait_for(job.id, "1s")


async def test_wait_raises_job_failed_if_asked(app: dt.App) -> None:
    @app.task("fail", retry=dt.Retry(max_attempts=1))
    async def fail() -> None:
        raise ValueError("the printer is on fire")

    async with app.running():
        job = await fail.submit()
        with pytest.raises(dt.JobFailed, match=r"is dead: ValueError: the printer is on fire") as failed:
            await job.wait("60s", raise_on_failure=True)
        assert (failed.value.job_id, failed.value.state) == (job.id, "dead")
        assert "Traceback" in (failed.value.error or "")
        assert (await job.wait("60s")).state == "dead"
        cancelled = await app.submit("other", delay="1h")
        await cancelled.cancel("not wanted")
        with pytest.raises(dt.JobFailed, match="is cancelled: not wanted"):
            await cancelled.wait(raise_on_failure=True)


async def test_work_whose_result_cannot_be_stored_is_done_once(app: dt.App) -> None:
    sent: list[str] = []
    seen: list[Any] = []

    @app.task("mail", retry=dt.Retry(max_attempts=3, delays=["0s"]))
    async def mail(to: str) -> object:
        sent.append(to)
        return object() if to == "ann" else {"to": to}

    @app.task("quiet", store_result=False)
    async def quiet() -> object:
        return object()

    @app.task("later", store_result=False)
    async def later(ctx: dt.Context) -> object:
        return dt.Snooze("0s") if ctx.attempt == 1 else 5

    @app.after_attempt
    def after(ctx: dt.Context, result: object) -> None:
        seen.append(type(result))

    async with app.running():
        jobs = await app.submit_many([dt.NewJob(mail, {"to": name}) for name in ("ann", "bob")])
        ann, bob = [await job.wait("60s", raise_on_failure=True) for job in jobs]
        assert (ann.state, ann.result, ann.attempt) == ("succeeded", None, 1)
        assert (ann.error or "").startswith("succeeded without a result: the task returned something")
        assert (bob.result, bob.error) == ({"to": "bob"}, None)
        assert sorted(sent) == ["ann", "bob"]
        for task in (quiet, later):
            done = await (await task.submit()).wait("60s")
            assert (done.state, done.result, done.error) == ("succeeded", None, None)
        assert object in seen


async def test_wait_for_a_success_raises_nothing(app: dt.App) -> None:
    @app.task("work")
    async def work() -> int:
        return 5

    async with app.running():
        assert (await (await work.submit()).wait("60s", raise_on_failure=True)).result == 5


async def test_progress_and_checkpoint_are_shown(app: dt.App) -> None:
    told, release = asyncio.Event(), asyncio.Event()

    @app.task("work")
    async def work(ctx: dt.Context) -> None:
        await ctx.progress(3, 10, "rows read")
        await ctx.checkpoint({"row": 3})
        told.set()
        await release.wait()

    async with app.running():
        job = await work.submit()
        await soon(told)
        await job.refresh()
        assert job.checkpoint == {"row": 3}
        assert job.progress == dt.Progress(3, 10, "rows read")
        release.set()
        await job.wait("60s")
    fresh = await app_opened(app, "never.run")
    assert (fresh.progress, fresh.checkpoint) == (None, None)


async def app_opened(app: dt.App, task: str) -> dt.JobHandle:
    await app.open()
    return await (await app.submit(task, delay="1h")).refresh()


async def test_task_retention_limits_how_long_results_are_kept(tmp_path: Path) -> None:
    """The leader is told the retention of each task that has one of its own."""
    told: list[Any] = []

    class Told(MemoryStore):
        async def prune(self, old: Any, targets: Any = None) -> int:
            told.append((old, targets))
            return 0

    app = dt.App(Told())

    @app.task("short", retention="1h")
    async def short() -> None: ...

    @app.task("usual")
    async def usual() -> None: ...

    async with app.running(retention="30d"):

        async def pruned() -> bool:
            return bool(told)

        await eventually(pruned)
    before, targets = told[0]
    assert set(targets) == {"short"}
    assert targets["short"] - before == (30 * 24 - 1) * 3600 * SECOND


@pytest.mark.parametrize("retention", ["0s", "soon", 5])
def test_a_wrong_retention_is_refused(memory_app: dt.App, retention: Any) -> None:
    with pytest.raises(dt.InvalidInput, match="retention"):
        memory_app.task("work", retention=retention)
