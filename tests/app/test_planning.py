"""Plans of edits: a plan matches what the edit then does to the store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import duetime as dt
from duetime.app.previews import SchedulePlan
from duetime.engine.node.timer import NodeClock
from duetime.errors import NeverFires
from duetime.model.edit_plan import MAX_FIRES
from duetime.model.ids import SEGMENTS
from duetime.model.instant import SECOND, Micros, to_datetime, to_micros
from duetime.model.job import FINAL, Job, JobFilter, State
from duetime.model.lease import NodeDraft
from duetime.model.schedule import Schedule, plan_fires
from duetime.store import ClaimRequest, DueSchedules, Lane
from duetime.stores.memory import MemoryStore

BEGAN = to_micros(datetime(2026, 3, 28, 23, 17, 5, tzinfo=UTC))  # the night in which clocks change in Berlin
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
HORIZON = 30 * HOUR
LIVE = frozenset(State) - FINAL


@dataclass
class World:
    """An app whose time stands still unless it is moved, and a planner that comes when it is called."""

    now: Micros = BEGAN
    store: MemoryStore = field(init=False)
    app: dt.App = field(init=False)

    async def begin(self) -> None:
        self.store = MemoryStore(lambda: self.now)
        self.app = dt.App(self.store)
        self.app._clock = NodeClock(monotonic=lambda: self.now)
        self.app.use_store(self.store)
        await self.app.open()

    async def plan_until(self, horizon: Micros) -> None:
        while schedules := await self.store.list_schedules(DueSchedules(range(SEGMENTS), horizon), 10):
            await self.store.fire([plan_fires(one, self.now, horizon) for one in schedules])

    async def start_last(self) -> None:
        """The job planned furthest ahead runs now, before its time."""
        ahead = [job for job in await self.ahead() if job.state is State.PENDING]
        if ahead:
            await self.store.reschedule_job("default", ahead[0].id, self.now, None)
            node = await self.store.join(NodeDraft("node", ("worker",), "1"), HOUR)
            await self.store.claim(ClaimRequest(node, (Lane("default", 5, 0),), ("work",), 1, 0))

    async def ahead(self, until: Micros | None = None) -> list[Job]:
        wanted = JobFilter(
            "default", LIVE, fire_after=self.now + 1, fire_before=None if until is None else until + 1
        )
        return await self.store.list_jobs(wanted, 100_000)

    async def known(self) -> Schedule:
        found = await self.store.get_schedule("default", "tick")
        assert found is not None
        return found


def moment(offset: Micros) -> datetime:
    return to_datetime(BEGAN + offset)


WHENS = st.sampled_from(
    [
        dt.Every("7m"),
        dt.Every("1h"),
        dt.Every("90m", anchor=moment(MINUTE)),
        dt.Cron("*/10 * * * *"),
        dt.Cron("0 * * * *", "Europe/Berlin"),
        dt.Cron("30 2 * * *", "Europe/Berlin"),
        dt.Cron("30 3 * * *", "Europe/Berlin"),
        dt.Cron("*/20 2 * * *", "Europe/Berlin"),
        dt.At(moment(2 * HOUR)),
        dt.At(moment(5 * HOUR)),
        dt.RRule("FREQ=HOURLY;INTERVAL=5"),
    ]
)
OFFSETS = st.sampled_from([None, 20 * MINUTE, 90 * MINUTE, 6 * HOUR, 100 * HOUR])
LIMITS = st.sampled_from([None, 3, 20, 1])
BOUNDS = st.fixed_dictionaries({"max_runs": LIMITS}, optional={"start_at": OFFSETS, "end_at": OFFSETS})


@dataclass(frozen=True)
class Story:
    when: Any
    options: Mapping[str, Any]
    lookahead: Micros
    lived: Micros  # until the planner came last
    neglected: Micros  # since then
    paused: bool
    started: bool  # one job was run before its time
    changes: Mapping[str, Any]


STORIES = st.builds(
    Story,
    WHENS,
    BOUNDS,
    st.sampled_from([3 * HOUR, 15 * MINUTE, 0]),
    st.sampled_from([0, 30 * MINUTE, 4 * HOUR]),
    st.sampled_from([0, 30 * MINUTE]),
    st.booleans(),
    st.booleans(),
    st.fixed_dictionaries(
        {},
        optional={
            "when": WHENS,
            "paused": st.booleans(),
            "priority": st.sampled_from([5, 7]),
            "payload": st.sampled_from([{}, {"n": 1}]),
            "start_at": OFFSETS,
            "end_at": OFFSETS,
            "max_runs": LIMITS,
        },
    ),
)


def instants(options: Mapping[str, Any]) -> dict[str, Any]:
    """Offsets as the instants they stand for."""
    return {
        name: moment(value) if name in ("start_at", "end_at") and value is not None else value
        for name, value in options.items()
    }


async def told(story: Story) -> World | None:
    """The world up to the edit; None when the schedule itself is refused."""
    world = World()
    await world.begin()
    try:
        await world.app.schedule("tick", "work", story.when, **instants(story.options))
    except NeverFires:
        return None
    world.now += story.lived
    await world.plan_until(world.now + story.lookahead)
    if story.started:
        await world.start_last()
    if story.paused:
        await world.app.pause("tick")
    world.now += story.neglected
    return world


async def waiting(world: World) -> set[Micros]:
    """Fire times that will come, when the planner does its work up to the horizon."""
    until = world.now + HORIZON
    await world.plan_until(until)
    return {job.fire_time for job in await world.ahead(until) if job.attempt == 0}


async def compare(story: Story) -> None:
    world, untouched = await told(story), await told(story)
    if world is None or untouched is None or not story.changes:
        return
    changes = instants(story.changes)
    known = await world.known()
    try:
        plan = await world.app.previews.edit("tick", changes, horizon=timedelta(microseconds=HORIZON))
    except NeverFires:
        with pytest.raises(NeverFires):
            await world.app.schedules.edit("tick", changes)
        return
    planned = {job.id for job in await world.ahead()}
    edited = await world.app.schedules.edit("tick", changes, version=plan.version)
    left = {job.id for job in await world.ahead()}
    before, after = await waiting(untouched), await waiting(world)
    check(plan, before, after)
    assert plan.jobs_withdrawn == len(planned - left)
    assert (edited.version > known.version) == bool(plan.diff)


def check(plan: SchedulePlan, before: set[Micros], after: set[Micros]) -> None:
    fires = plan.fires
    moved_from, moved_to = ([to_micros(pair[side]) for pair in fires.moved] for side in (0, 1))
    assert plan.complete
    assert fires.kept == len(before & after)
    assert sorted([*map(to_micros, fires.added), *moved_to]) == sorted(after - before)
    assert sorted([*map(to_micros, fires.withdrawn), *moved_from]) == sorted(before - after)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(STORIES)
def test_plan_matches_the_effect_of_the_edit(story: Story) -> None:
    asyncio.run(compare(story))


@pytest.fixture
async def world() -> World:
    made = World()
    await made.begin()
    return made


async def test_plan_shows_a_daily_fire_as_moved(world: World) -> None:
    await world.app.schedule("tick", "work", dt.Cron("30 2 * * *", "Europe/Berlin"))
    plan = await world.app.previews.edit(
        "tick", {"when": dt.Cron("30 4 * * *", "Europe/Berlin")}, horizon="3d"
    )
    assert (plan.fires.kept, plan.fires.added, plan.fires.withdrawn) == (0, (), ())
    day = datetime(2026, 3, 29, tzinfo=UTC)
    assert plan.fires.moved == (
        (day.replace(hour=1), day.replace(hour=2, minute=30)),  # 02:30 does not exist that day: 03:00
        (day.replace(day=30, hour=0, minute=30), day.replace(day=30, hour=2, minute=30)),
        (day.replace(day=31, hour=0, minute=30), day.replace(day=31, hour=2, minute=30)),
    )
    assert plan.words == (
        "at 02:30, every day, Europe/Berlin time",
        "at 04:30, every day, Europe/Berlin time",
    )
    assert [change.field for change in plan.diff] == ["when"]
    assert plan.warnings == ()


async def test_plan_shows_a_weekly_fire_as_moved_to_another_day(world: World) -> None:
    await world.app.schedule("tick", "work", dt.Cron("0 9 * * MON"))
    plan = await world.app.previews.edit("tick", {"when": dt.Cron("0 9 * * THU")}, horizon="13d")
    assert [(old.day, new.day) for old, new in plan.fires.moved] == [(30, 2), (6, 9)]


async def test_plan_of_a_shorter_interval_adds_fires_and_moves_none(world: World) -> None:
    await world.app.schedule("tick", "work", dt.Every("1h"))
    plan = await world.app.previews.edit("tick", {"when": dt.Every("30m")}, horizon="1d")
    assert (plan.fires.kept, len(plan.fires.added), plan.fires.withdrawn, plan.fires.moved) == (
        24,
        24,
        (),
        (),
    )


async def test_plan_of_other_fields_keeps_fires_and_withdraws_planned_jobs(world: World) -> None:
    await world.app.schedule("tick", "work", dt.Every("1m"))
    await world.plan_until(world.now + 10 * MINUTE)
    plan = await world.app.previews.edit("tick", {"priority": 9}, horizon="1h")
    assert (plan.jobs_withdrawn, plan.fires.kept, plan.fires.added, plan.fires.withdrawn) == (10, 60, (), ())


async def test_plan_and_edit_without_changes_do_nothing(world: World) -> None:
    made = await world.app.schedule(
        "tick", "work", dt.Every("1m"), payload={"a": 1, "b": 2}, labels={"x": "1", "y": "2"}
    )
    await world.plan_until(world.now + 10 * MINUTE)
    same = {
        "payload": {"b": 2, "a": 1},
        "labels": {"y": "2", "x": "1"},
        "when": dt.Every("60s"),
        "paused": False,
        "owner": None,
    }
    plan = await world.app.previews.edit("tick", same)
    assert (plan.diff, plan.jobs_withdrawn, plan.fires.added, plan.fires.withdrawn) == ((), 0, (), ())
    assert (await world.app.schedules.edit("tick", same, version=1)).version == made.version == 1
    assert len(await world.ahead()) == 10


async def test_plan_of_too_many_fires_is_incomplete(world: World) -> None:
    await world.app.schedule("tick", "work", dt.Every("1s"))
    plan = await world.app.previews.edit("tick", {"when": dt.Every("2s")}, horizon="7d")
    assert not plan.complete
    assert (plan.fires.kept, len(plan.fires.withdrawn)) == (MAX_FIRES // 2, MAX_FIRES // 2)


@pytest.mark.parametrize(
    ("options", "changes", "warning"),
    [
        ({}, {"paused": True}, "the schedule is paused"),
        ({}, {"end_at": moment(40 * 24 * HOUR), "when": dt.Cron("0 0 31 * *")}, "months without a day 31"),
        ({}, {"when": dt.Cron("0 0 1 * MON")}, "match either"),
        (
            {},
            {"when": dt.Cron("30 2 * * *", "Europe/Berlin")},
            "on 2026-03-29 the clock jumps from 02:00 to 03:00",
        ),
        (
            {},
            {"start_at": moment(100 * 24 * HOUR)},
            "nothing fires within the horizon: the next fire is at 2026-07",
        ),
    ],
)
async def test_plan_warns(
    world: World, options: dict[str, Any], changes: dict[str, Any], warning: str
) -> None:
    await world.app.schedule("tick", "work", dt.Every("1h"), **options)
    plan = await world.app.previews.edit("tick", changes)
    assert any(warning in line for line in plan.warnings), plan.warnings


async def test_plan_warns_of_used_up_max_runs(world: World) -> None:
    await world.app.schedule("tick", "work", dt.Every("1h"))
    world.now += 5 * HOUR
    await world.plan_until(world.now)
    plan = await world.app.previews.edit("tick", {"max_runs": 2})
    assert plan.warnings[0].startswith("max_runs is 2 and it has fired 5 times")
    assert plan.fires.kept == 0
