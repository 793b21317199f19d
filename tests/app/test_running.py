"""A node at work: order, isolation between jobs, a blocked loop, unknown tasks, several nodes."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections import Counter
from contextvars import ContextVar
from typing import Any

import pytest

import duetime as dt
from duetime.model.instant import SECOND
from duetime.model.job import JobFilter
from tests.app.conftest import MakeApp
from tests.app.waiting import eventually, soon

var: ContextVar[str] = ContextVar("var", default="clean")


async def test_urgent_jobs_start_first_and_equals_in_order(app: dt.App) -> None:
    order: list[int] = []

    @app.task("work")
    async def work(n: int) -> None:
        order.append(n)

    await app.open()
    for n, priority in enumerate([0, 9, 5, 5, 9, 3]):
        await work.submit(n=n, priority=priority)
    async with app.running(concurrency=1):

        async def all_ran() -> bool:
            return len(order) == 6

        await eventually(all_ran)
    assert order == [1, 4, 2, 3, 5, 0]


async def test_concurrency_is_never_exceeded(memory_app: dt.App) -> None:
    at_once: list[int] = []
    now = 0
    release = asyncio.Event()

    @memory_app.task("work")
    async def work() -> None:
        nonlocal now
        now += 1
        at_once.append(now)
        await release.wait()
        now -= 1

    async with memory_app.running(concurrency=3):
        jobs = await memory_app.submit_many([dt.NewJob("work")] * 10)

        async def full() -> bool:
            return len(at_once) == 3

        await eventually(full)
        with pytest.raises(dt.WaitTimeout):
            await jobs[-1].wait("200ms")
        assert len(at_once) == 3
        release.set()
        for job in jobs:
            await job.wait("60s")
    assert max(at_once) == 3


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
async def test_context_variables_do_not_leak_from_job_to_job(memory_app: dt.App, plain: bool) -> None:
    def work() -> str:
        before = var.get()
        var.set("dirty")
        return before

    async def work_async() -> str:
        return work()

    task = memory_app.task("work")(work if plain else work_async)
    async with memory_app.running(concurrency=1):
        jobs = [await task.submit() for _ in range(5)]
        assert {(await job.wait("60s")).result for job in jobs} == {"clean"}
    assert var.get() == "clean"


async def test_context_variable_that_cannot_be_compared_disturbs_no_job(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Incomparable:
        def __eq__(self, other: object) -> bool:
            raise ValueError("the truth value is ambiguous")

        __hash__ = None  # type: ignore[assignment]  # like an array's

    strange: ContextVar[Any] = ContextVar("strange")
    strange.set(Incomparable())
    app = dt.App("memory://")

    @app.task("work")
    async def work() -> None:
        strange.set(Incomparable())

    async with app.running(concurrency=2):
        jobs = [await work.submit() for _ in range(6)]
        assert [(await job.wait("60s")).state for job in jobs] == ["succeeded"] * 6
    gc.collect()  # a runner that died is told of when it is collected
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


@pytest.mark.slow
async def test_a_task_that_blocks_the_event_loop_keeps_its_lease(make_app: MakeApp) -> None:
    """A second node, in a thread of its own, would take the job over if the heart stood still."""
    app, other = make_app(), make_app()
    watching, enough = threading.Event(), threading.Event()

    @app.task("block")
    async def block() -> str:
        time.sleep(3.2)  # less than the time after which a verb of the store gives up
        return "blocked"

    async def watch() -> None:
        async with other.running(lease="2500ms", roles=["worker"]):
            watching.set()
            await asyncio.to_thread(enough.wait, 120)

    thread = threading.Thread(target=lambda: asyncio.run(watch()))
    thread.start()
    try:
        assert await asyncio.to_thread(watching.wait, 60)
        async with app.running(lease="2500ms") as node:
            first = node.id
            job = await (await block.submit()).wait("60s")
            assert (job.state, job.result, job.attempt, node.id) == ("succeeded", "blocked", 1, first)
    finally:
        enough.set()
        await asyncio.to_thread(thread.join, 60)


async def test_a_job_waits_for_a_node_that_knows_its_task(make_app: MakeApp) -> None:
    ignorant, knowing, client = make_app(), make_app(), make_app()

    @ignorant.task("other")
    async def other() -> None: ...

    @knowing.task("special")
    async def special() -> str:
        return "done"

    await client.open()
    async with ignorant.running():
        job = await client.submit("special")
        with pytest.raises(dt.WaitTimeout):
            await job.wait("300ms")
        await job.refresh()
        assert (job.state, job.attempt, job.failures) == ("pending", 0, 0)
        async with knowing.running():
            await job.wait("60s")
    assert (job.state, job.result, job.attempt) == ("succeeded", "done", 1)


async def test_two_nodes_share_the_jobs_without_running_any_twice(make_app: MakeApp) -> None:
    ran: Counter[int] = Counter()
    by: Counter[int] = Counter()
    apps = [make_app(), make_app()]
    for number, app in enumerate(apps):

        @app.task("work")
        async def work(n: int, number: int = number) -> None:
            ran[n] += 1
            by[number] += 1
            await asyncio.sleep(0.002)

    async with apps[0].running(concurrency=4), apps[1].running(concurrency=4):
        jobs = await apps[0].submit_many(dt.NewJob("work", {"n": n}) for n in range(300))
        for job in jobs:
            await job.wait("60s")
    assert set(ran.values()) == {1}
    assert len(ran) == 300
    assert min(by[0], by[1]) > 0


async def test_one_app_may_be_two_nodes(app: dt.App) -> None:
    @app.task("work")
    async def work(n: int) -> int:
        return n

    async with app.running(name="left") as left, app.running(name="right") as right:
        assert left.id != right.id
        jobs = await app.submit_many(dt.NewJob("work", {"n": n}) for n in range(50))
        assert [(await job.wait("60s")).result for job in jobs] == list(range(50))
    assert not app.is_open


async def test_a_worker_of_one_queue_leaves_the_others(make_app: MakeApp) -> None:
    app, rest = make_app(), make_app()
    for each in (app, rest):

        @each.task("work")
        async def work() -> None: ...

    async with app.running(queues=["fast"]):
        fast, slow = await app.submit("work", queue="fast"), await app.submit("work", queue="slow")
        assert (await fast.wait("60s")).state == "succeeded"
        with pytest.raises(dt.WaitTimeout):
            await slow.wait("200ms")
        async with rest.running():
            assert (await slow.wait("60s")).state == "succeeded"


async def test_a_planner_without_a_worker_runs_nothing(app: dt.App) -> None:
    @app.task("work")
    async def work() -> None: ...

    async with app.running(roles=["planner"]):
        job = await work.submit()
        with pytest.raises(dt.WaitTimeout):
            await job.wait("200ms")


async def test_shutdown_waits_for_running_jobs_and_releases_the_rest(app: dt.App) -> None:
    started, release = asyncio.Event(), asyncio.Event()
    ran: list[int] = []

    @app.task("work")
    async def work(n: int) -> str:
        ran.append(n)
        started.set()
        await release.wait()
        return "finished"

    await app.open()
    async with app.running(concurrency=1, grace="10s"):
        first = await work.submit(n=1)
        await soon(started)
        rest = await app.submit_many([dt.NewJob("work", {"n": n}) for n in range(2, 20)])
        asyncio.get_running_loop().call_later(0.3, release.set)
    await first.refresh()
    assert (first.state, first.result, ran) == ("succeeded", "finished", [1])
    assert {((await job.refresh()).state, job.failures) for job in rest} == {(dt.State.PENDING, 0)}


async def test_shutdown_releases_prefetched_jobs(app: dt.App) -> None:
    """Claimed and not started, so others may have it at once."""
    ran: list[int] = []

    @app.task("work")
    async def work() -> None:
        ran.append(1)

    await app.open()
    async with app.running():
        job = await work.submit(delay="190ms")

        async def claimed() -> bool:
            return (await job.refresh()).state != "pending"

        await eventually(claimed)
    await job.refresh()
    assert (job.state, job.failures, ran) in (("pending", 0, []), ("succeeded", 0, [1]))


async def test_job_that_outlasts_the_grace_period_runs_elsewhere(make_app: MakeApp) -> None:
    """Interrupted by us, so not the task's failure."""
    first, second = make_app(), make_app()
    started = asyncio.Event()

    @first.task("work")
    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    @second.task("work")
    async def quick(ctx: dt.Context) -> int:
        return ctx.attempt

    async with second.running(roles=["planner"]):
        async with first.running(grace="100ms"):
            job = await first.submit("work")
            await soon(started)
        handle = await (await second.get_job(job.id)).refresh()
        assert (handle.state, handle.failures) == ("pending", 0)
    async with second.running():
        assert (await handle.wait("60s")).result == 2


async def test_second_interrupt_ends_the_node_without_waiting(app: dt.App) -> None:
    started = asyncio.Event()

    @app.task("work")
    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    await app.open()
    async with app.running(grace="1h") as node:
        job = await endless.submit()
        await soon(started)
        asyncio.get_running_loop().call_later(0.2, node.interrupt)
    assert (await job.refresh()).state == "pending"


@pytest.mark.slow
async def test_a_task_that_ignores_the_end_does_not_hold_up_the_node(
    memory_app: dt.App, caplog: pytest.LogCaptureFixture
) -> None:
    started = asyncio.Event()
    release = asyncio.Event()

    @memory_app.task("work")
    async def stubborn() -> None:
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async with asyncio.timeout(60), memory_app.running(grace="100ms"):
        job = await stubborn.submit()
        await soon(started)
    release.set()
    assert f"task work of job {job.id} ignores its cancellation: the node ends without it" in caplog.text
    assert "in stubborn" in caplog.text


async def test_node_ends_when_the_block_raises(memory_app: dt.App) -> None:
    with pytest.raises(ZeroDivisionError):
        async with memory_app.running():
            raise ZeroDivisionError
    assert not memory_app.is_open


async def test_run_async_ends_when_cancelled(memory_app: dt.App) -> None:
    ran = asyncio.Event()

    @memory_app.task("work")
    async def work() -> None:
        ran.set()

    await memory_app.open()
    await work.submit()
    life = asyncio.create_task(memory_app.run_async(concurrency=2))
    await soon(ran)
    life.cancel()
    with pytest.raises(asyncio.CancelledError):
        await life


@pytest.mark.slow
async def test_heartbeat_counts_the_other_workers(make_app: MakeApp) -> None:
    """Claims depend on it: see the tests of the claimer."""
    one, other = make_app(), make_app()

    def peers(node: Any) -> int:
        found: int = node.heartbeat.peers
        return found

    async with one.running(lease="2.5s") as here:

        async def alone() -> bool:
            return peers(here) == 0

        async with other.running(lease="2.5s") as there:

            async def in_company() -> bool:
                return peers(here) == peers(there) == 1

            await eventually(in_company)
        await eventually(alone)


@pytest.mark.slow
async def test_node_plans_its_segments_until_its_last_job_has_ended(memory_app: dt.App) -> None:
    """It is alive, so the other planners leave its segments to it."""
    started, release = asyncio.Event(), asyncio.Event()

    @memory_app.task("work")
    async def work() -> None:
        started.set()
        await release.wait()

    @memory_app.task("tick")
    async def tick() -> None: ...

    async with memory_app.running(grace="60s", lookahead="1s") as node:
        await work.submit()
        await soon(started)
        node.stop()
        stopped_at = await memory_app.store.time()
        await memory_app.schedule("tick", "tick", dt.Every("1s"))

        async def planned() -> bool:
            wanted = JobFilter("default", schedule="tick", fire_after=stopped_at + 3 * SECOND)
            return bool(await memory_app.store.list_jobs(wanted, 1))

        await eventually(planned)
        release.set()
        await node.ended.wait()
