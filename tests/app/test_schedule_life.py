"""The life of a schedule: fires, pause, resume, trigger, edit, removal and bounded runs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

import duetime as dt
from tests.app.conftest import MakeApp
from tests.app.waiting import eventually, soon

LOOKAHEAD = "2s"
CLOCKS = timedelta(milliseconds=2)  # the store's and ours are read at different instants


async def jobs_of(app: dt.App, schedule: str, count: int, state: str | None = None) -> list[dt.JobHandle]:
    """The schedule's jobs by fire time, once there are so many."""

    async def enough() -> bool:
        return len(await app.jobs(schedule=schedule, state=state)) >= count

    await eventually(enough)
    return sorted(await app.jobs(schedule=schedule, state=state), key=lambda job: job.fire_time)


@pytest.fixture
def ticks(app: dt.App) -> list[tuple[datetime, datetime]]:
    """Fire time and start of every run of task "tick"."""
    seen: list[tuple[datetime, datetime]] = []

    @app.task("tick")
    async def tick(ctx: dt.Context) -> None:
        seen.append((ctx.fire_time, datetime.now(UTC)))

    return seen


async def test_each_fire_becomes_one_job_and_none_starts_early(
    app: dt.App, ticks: list[tuple[datetime, datetime]]
) -> None:
    async with app.running(lookahead=LOOKAHEAD):
        await app.schedule("often", "tick", dt.Every("100ms"), missed="all")
        jobs = await jobs_of(app, "often", 5, state="succeeded")
        await app.remove("often")
    times = sorted(fire_time for fire_time, _ in ticks)
    assert len(times) == len(set(times))
    assert all(later - earlier == timedelta(milliseconds=100) for earlier, later in pairwise(times))
    assert all(started >= fire_time - CLOCKS for fire_time, started in ticks)
    assert [job.schedule for job in jobs] == ["often"] * len(jobs)


async def test_planned_fires_have_the_options_of_their_schedule(app: dt.App) -> None:
    async with app.running(lookahead="30s"):
        await app.schedule(
            "ahead",
            "elsewhere",
            dt.Every("5s"),
            payload={"n": 1},
            queue="slow",
            priority=1,
            jitter="2s",
            labels={"a": "b"},
        )
        jobs = await jobs_of(app, "ahead", 5)
    assert {
        (job.task, job.queue, job.priority, job.state, *job.payload.items(), *job.labels.items())
        for job in jobs
    } == {("elsewhere", "slow", 1, dt.State.PENDING, ("n", 1), ("a", "b"))}
    assert all(job.fire_time.second % 5 == 0 and job.fire_time.microsecond == 0 for job in jobs)


@pytest.mark.slow
async def test_view_shows_past_and_next_fires_while_the_planner_is_ahead(app: dt.App) -> None:
    async with app.running(lookahead="30s"):
        await app.schedule("ahead", "elsewhere", dt.Every("5s"))
        await jobs_of(app, "ahead", 5)

        async def fired() -> bool:
            return (await app.get_schedule("ahead")).last_fire_time is not None

        await eventually(fired)
        before = datetime.now(UTC)
        view = await app.get_schedule("ahead")
        after = datetime.now(UTC)
    assert view.next_fire_time is not None
    assert view.last_fire_time is not None
    assert view.next_fire_time - view.last_fire_time == timedelta(seconds=5)
    assert view.last_fire_time - timedelta(seconds=5) < after
    assert before < view.next_fire_time + timedelta(seconds=5)
    assert view.runs >= 1


async def test_planned_fire_does_not_count_as_fired(app: dt.App) -> None:
    async with app.running(lookahead="6h"):
        await app.schedule(
            "ahead", "elsewhere", dt.Every("1h", anchor=datetime.now(UTC) + timedelta(minutes=30))
        )
        await jobs_of(app, "ahead", 5)
        assert [(view.runs, view.last_fire_time) for view in await app.schedules()] == [(0, None)]


async def test_jitter_spreads_within_its_bounds_and_keeps_the_fire_time(app: dt.App) -> None:
    async with app.running(lookahead="60s"):
        await app.schedule("spread", "elsewhere", dt.Every("1s"), jitter="3s")
        jobs = await jobs_of(app, "spread", 50)
    delays = [(job.due_at - job.fire_time).total_seconds() for job in jobs]
    assert min(delays) >= 0
    assert max(delays) <= 3
    assert len(set(delays)) > 40


async def test_max_runs_ends_a_schedule(app: dt.App, ticks: list[tuple[datetime, datetime]]) -> None:
    async with app.running(lookahead=LOOKAHEAD):
        await app.schedule("thrice", "tick", dt.Every("100ms"), max_runs=3, missed="all")
        await jobs_of(app, "thrice", 3, state="succeeded")
        view = await app.get_schedule("thrice")
    assert (view.runs, view.next_fire_time) == (3, None)
    assert len(ticks) == 3


@pytest.mark.slow
async def test_end_at_ends_a_schedule(app: dt.App, ticks: list[tuple[datetime, datetime]]) -> None:
    async with app.running(lookahead=LOOKAHEAD):
        end = datetime.now(UTC) + timedelta(seconds=2)
        await app.schedule("bounded", "tick", dt.Every("100ms"), end_at=end, missed="all")

        async def over() -> bool:
            return (await app.get_schedule("bounded")).next_fire_time is None and await app.jobs(
                state="pending"
            ) == []

        await eventually(over)
    assert ticks
    assert all(fire_time <= end for fire_time, _ in ticks)


async def test_pausing_withdraws_planned_fires(app: dt.App) -> None:
    async with app.running(lookahead="30s"):
        await app.schedule("ahead", "elsewhere", dt.Every("5s"))
        await jobs_of(app, "ahead", 5)
        view = await app.pause("ahead", note="maintenance")
        assert (view.paused, view.pause_note, view.next_fire_time) == (True, "maintenance", None)
        left = [job for job in await app.jobs(schedule="ahead") if job.fire_time > datetime.now(UTC)]
        assert left == []
        resumed = await app.resume("ahead")
        assert (resumed.paused, resumed.pause_note) == (False, None)
        assert resumed.next_fire_time is not None
        again = await jobs_of(app, "ahead", 5)
    assert len({job.fire_time for job in again}) == len(again)


async def test_resuming_a_running_schedule_changes_nothing(memory_app: dt.App) -> None:
    await memory_app.open()
    view = await memory_app.schedule("name", "work", dt.Every("1h"))
    assert (await memory_app.resume("name")).version == view.version


async def test_fires_during_a_pause_are_not_made_up_for(app: dt.App) -> None:
    await app.open()
    await app.schedule("name", "work", dt.Every("100ms"))
    await app.pause("name")
    before = datetime.now(UTC)
    view = await app.resume("name")
    assert view.next_fire_time is not None
    assert view.next_fire_time > before


async def test_trigger_runs_now_in_addition_to_the_fires(
    app: dt.App, ticks: list[tuple[datetime, datetime]]
) -> None:
    async with app.running():
        await app.schedule("rare", "tick", dt.Cron("0 0 1 1 *"))
        await app.pause("rare")
        job = await (await app.trigger("rare")).wait("60s")
        view = await app.get_schedule("rare")
    assert (job.state, job.schedule, view.runs) == ("succeeded", "rare", 0)
    assert len(ticks) == 1


async def test_edit_withdraws_future_fires_and_plans_new_ones(app: dt.App) -> None:
    async with app.running(lookahead="30s"):
        await app.schedule("name", "elsewhere", dt.Every("5s"), payload={"v": 1})
        await jobs_of(app, "name", 4)
        await app.schedule("name", "elsewhere", dt.Every("3s"), payload={"v": 2}, on_conflict="replace")
        jobs = await jobs_of(app, "name", 8)
    future = [job for job in jobs if job.fire_time > datetime.now(UTC)]
    assert {job.payload["v"] for job in future} == {2}
    assert all(int(job.fire_time.timestamp()) % 3 == 0 for job in future)
    assert len({job.fire_time for job in jobs}) == len(jobs)


async def test_removing_lets_the_running_job_finish_and_keeps_history(app: dt.App) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    @app.task("work")
    async def work() -> str:
        started.set()
        await release.wait()
        return "done"

    async with app.running():
        await app.schedule("name", work, dt.Every("1h"))
        job = await app.trigger("name")
        await soon(started)
        await app.remove("name")
        with pytest.raises(dt.ScheduleNotFound):
            await app.get_schedule("name")
        release.set()
        await job.wait("60s")
        assert (job.state, job.result, job.schedule) == ("succeeded", "done", "name")
        assert [found.id for found in await app.jobs(schedule="name")] == [job.id]


class Overlapping:
    """A task that runs until it is let go, once per run."""

    def __init__(self, app: dt.App) -> None:
        self.started: asyncio.Queue[int] = asyncio.Queue()
        self.release = asyncio.Event()
        self.at_once = 0
        self.most_at_once = 0

        @app.task("long")
        async def long() -> None:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self.started.put_nowait(self.at_once)
            try:
                await self.release.wait()
            finally:
                self.at_once -= 1

    async def next_start(self) -> int:
        async with asyncio.timeout(60):
            return await self.started.get()


@pytest.fixture
def work(app: dt.App) -> Overlapping:
    return Overlapping(app)


async def overlapping(
    app: dt.App, work: Overlapping, policy: dt.Overlap
) -> tuple[dt.JobHandle, dt.JobHandle]:
    """A first job that runs and a second one of the same schedule."""
    await app.schedule("name", "long", dt.Cron("0 0 1 1 *"), overlap=policy)
    first = await app.trigger("name")
    await work.next_start()
    return first, await app.trigger("name")


async def test_overlap_allow_runs_both(app: dt.App, work: Overlapping) -> None:
    """I-6."""
    async with app.running():
        first, second = await overlapping(app, work, dt.Overlap.ALLOW)
        assert await work.next_start() == 2
        work.release.set()
        assert [(await job.wait("60s")).state for job in (first, second)] == ["succeeded", "succeeded"]


async def test_overlap_skip_records_the_second_with_its_reason(app: dt.App, work: Overlapping) -> None:
    """I-6, I10."""
    async with app.running():
        first, second = await overlapping(app, work, dt.Overlap.SKIP)
        await second.wait("60s")
        assert second.state == "skipped"
        assert "overlap" in (second.error or "")
        work.release.set()
        assert (await first.wait("60s")).state == "succeeded"


async def test_overlap_queue_runs_one_after_the_other(app: dt.App, work: Overlapping) -> None:
    """I-6."""
    async with app.running():
        first, second = await overlapping(app, work, dt.Overlap.QUEUE)
        with pytest.raises(dt.WaitTimeout):
            await second.wait("300ms")
        work.release.set()
        assert [(await job.wait("60s")).state for job in (first, second)] == ["succeeded", "succeeded"]
    assert work.most_at_once == 1


async def test_overlap_cancel_previous_stops_the_first(app: dt.App, work: Overlapping) -> None:
    """I-6."""
    async with app.running():
        first, second = await overlapping(app, work, dt.Overlap.CANCEL_PREVIOUS)
        assert (await first.wait("60s")).state == "cancelled"
        assert await work.next_start() == 1
        work.release.set()
        assert (await second.wait("60s")).state == "succeeded"
    assert work.most_at_once == 1


@pytest.mark.slow
async def test_only_one_of_two_nodes_runs_a_fire(make_app: MakeApp) -> None:
    seen: list[datetime] = []
    apps = [make_app(), make_app()]
    for app in apps:

        @app.task("tick")
        async def tick(ctx: dt.Context) -> None:
            seen.append(ctx.fire_time)

    async with apps[0].running(lookahead=LOOKAHEAD), apps[1].running(lookahead=LOOKAHEAD):
        for app in apps:
            await app.schedule("often", "tick", dt.Every("100ms"), max_runs=8, missed="all")
        await jobs_of(apps[0], "often", 8, state="succeeded")
    assert len(seen) == len(set(seen)) == 8
