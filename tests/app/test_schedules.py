"""Declaring schedules: every kind of when, repeated declaration, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import duetime as dt
from tests.app.waiting import eventually

NEVER = "0 0 30 2 *"
FAR = datetime(2040, 1, 1, 9, tzinfo=UTC)


WHENS: list[Any] = [
    dt.Cron("30 2 * * MON-FRI", tz="Europe/Berlin"),
    dt.Cron("H H * * *"),
    dt.Cron("@every 90m"),
    dt.Every("10h"),
    dt.Every(timedelta(hours=7), anchor=datetime(2026, 1, 1, 0, 3, tzinfo=UTC)),
    dt.At(FAR),
    dt.RRule("DTSTART:20260105T090000\nRRULE:FREQ=WEEKLY;BYDAY=MO,TH", tz="America/New_York"),
]


async def test_every_kind_of_when_is_stored_and_comes_back(app: dt.App) -> None:
    await app.open()
    for number, when in enumerate(WHENS):
        before = datetime.now(UTC)
        declared = await app.schedule(f"name{number}", "work", when)
        stored: Any = await app.get_schedule(f"name{number}")
        assert stored == declared
        assert stored.next_fire_time in stored.when.preview(2, after=before)
        assert await app.schedule(f"name{number}", "work", when) == stored


async def test_the_view_shows_what_was_declared(app: dt.App) -> None:
    @app.task("work", queue="slow", priority=3)
    async def work(n: int) -> None: ...

    await app.open()
    view = await app.schedule(
        "nightly",
        work,
        dt.Cron("0 3 * * *"),
        payload={"n": 1},
        overlap="skip",
        owner="ann",
        labels={"a": "b"},
    )
    assert (view.name, view.version, view.task, view.payload) == ("nightly", 1, "work", {"n": 1})
    assert (view.queue, view.priority, view.overlap) == ("slow", 3, "skip")
    assert (view.paused, view.pause_note, view.runs, view.last_fire_time) == (False, None, 0, None)


async def test_declaring_the_same_again_changes_nothing(app: dt.App) -> None:
    """Every process of a fleet declares its schedules as it starts."""
    await app.open()
    options: dict[str, Any] = {
        "payload": {"n": 1},
        "missed": dt.Missed("all", within="90m", max=3),
        "retry": dt.Retry(max_attempts=2, first_delay="60s"),
        "timeout": "90s",
        "jitter": "1500ms",
        "start_at": datetime.now(UTC) - timedelta(days=1),
        "end_at": FAR,
        "max_runs": 1000,
        "labels": {"a": "b"},
    }
    first = await app.schedule("name", "work", dt.Every("1h"), **options)
    assert await app.schedule("name", "work", dt.Every("60m"), **options) == first
    assert await app.schedule("name", "work", dt.Every("1h"), on_conflict="replace", **options) == first
    options["missed"] = dt.Missed("all", within=timedelta(minutes=90), max=3)
    assert await app.schedule("name", "work", dt.Every("1h"), **options) == first


async def test_different_schedule_of_the_same_name_needs_replace(app: dt.App) -> None:
    await app.open()
    first = await app.schedule("name", "work", dt.Every("1h"))
    with pytest.raises(dt.ScheduleExists, match="on_conflict="):
        await app.schedule("name", "work", dt.Every("2h"))
    with pytest.raises(dt.ScheduleExists):
        await app.schedule("name", "other", dt.Every("1h"))
    assert await app.get_schedule("name") == first
    changed = await app.schedule("name", "work", dt.Every("2h"), on_conflict="replace")
    assert (changed.id, changed.version, changed.when) == (first.id, 2, dt.Every("2h"))


async def test_replace_creates_a_missing_schedule(app: dt.App) -> None:
    await app.open()
    assert (await app.schedule("name", "work", dt.Every("1h"), on_conflict="replace")).version == 1


@pytest.mark.slow
async def test_ended_schedule_can_be_declared_again(app: dt.App) -> None:
    """A process that restarts after the instant declares the same as before: nothing to complain about."""

    @app.task("work")
    async def work() -> None: ...

    async with app.running():
        moment = datetime.now(UTC) + timedelta(seconds=2)
        first = await app.schedule("once", work, dt.At(moment))
        [job] = await fires(app, "once", 1)
        await job.wait("60s")
        again = await app.schedule("once", work, dt.At(moment))
        assert (again.id, again.version, again.next_fire_time) == (first.id, 1, None)
        assert (await app.schedule("once", work, dt.At(moment), on_conflict="replace")).id == first.id


async def fires(app: dt.App, schedule: str, count: int) -> list[dt.JobHandle]:
    async def enough() -> bool:
        return len(await app.jobs(schedule=schedule)) >= count

    await eventually(enough)
    return await app.jobs(schedule=schedule)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"payload": [1]}, "payload"),
        ({"payload": None}, "payload"),
        ({"overlap": "never"}, "overlap"),
        ({"overlap": None}, "overlap"),
        ({"missed": "sometimes"}, "missed.policy"),
        ({"missed": 3}, "missed"),
        ({"jitter": "-1s"}, "jitter"),
        ({"jitter": 5}, "jitter"),
        ({"max_runs": 0}, "max_runs"),
        ({"max_runs": True}, "max_runs"),
        ({"start_at": datetime(2030, 1, 1)}, "start_at"),
        ({"end_at": "tomorrow"}, "end_at"),
        ({"priority": 12}, "priority"),
        ({"queue": ""}, "queue"),
        ({"timeout": "0s"}, "timeout"),
        ({"retry": {}}, "retry"),
        ({"delivery": "twice"}, "delivery"),
        ({"owner": ""}, "owner"),
        ({"labels": 1}, "labels"),
    ],
)
async def test_wrong_options_are_refused_by_name(client: dt.App, options: dict[str, Any], field: str) -> None:
    @client.task("work")
    async def work(**anything: Any) -> None: ...

    with pytest.raises(dt.InvalidInput) as refused:
        await client.schedule("name", work, dt.Every("1h"), **options)
    assert refused.value.field == field
    assert await client.schedules() == []


async def test_unknown_option_error_suggests_a_known_one(client: dt.App) -> None:
    with pytest.raises(dt.UnknownOption, match="did you mean 'overlap'"):
        await client.schedule("name", "work", dt.Every("1h"), overlapp="skip")  # type: ignore[call-arg]
    with pytest.raises(dt.UnknownOption, match="known are payload, delivery"):
        await client.schedule("name", "work", dt.Every("1h"), zzz=1)  # type: ignore[call-arg]


async def test_payload_must_match_the_task(client: dt.App) -> None:
    @client.task("work")
    async def work(customer: str) -> None: ...

    with pytest.raises(dt.InvalidPayload, match="customer"):
        await client.schedule("name", work, dt.Every("1h"))
    with pytest.raises(dt.UnknownOption, match="custmer"):
        await client.schedule("name", work, dt.Every("1h"), payload={"customer": "a", "custmer": "b"})


@pytest.mark.parametrize("when", ["0 * * * *", None, timedelta(hours=1), FAR])
async def test_invalid_when_is_refused(client: dt.App, when: Any) -> None:
    with pytest.raises(dt.InvalidInput, match="Cron, Every, At or RRule"):
        await client.schedule("name", "work", when)


async def test_schedule_that_never_fires_is_refused(client: dt.App) -> None:
    with pytest.raises(dt.NeverFires):
        dt.Cron(NEVER)
    with pytest.raises(dt.NeverFires):
        await client.schedule("name", "work", dt.At(datetime(2001, 1, 1, tzinfo=UTC)))
    with pytest.raises(dt.NeverFires):
        await client.schedule("name", "work", dt.Every("1h"), end_at=datetime(2001, 1, 1, tzinfo=UTC))
    with pytest.raises(dt.NeverFires):
        await client.schedule(
            "name", "work", dt.Cron("0 0 1 1 *"), start_at=FAR, end_at=FAR + timedelta(hours=1)
        )


def test_unknown_zones_and_unreadable_expressions_are_refused() -> None:
    with pytest.raises(dt.UnknownZone):
        dt.Cron("0 9 * * *", tz="Europe/Atlantis")
    for expression in ("", "0 9 * *", "61 * * * *", "every day"):
        with pytest.raises(dt.InvalidWhen):
            dt.Cron(expression)


async def test_start_and_end_bound_the_fires(app: dt.App) -> None:
    await app.open()
    view = await app.schedule("name", "work", dt.Every("1h"), start_at=FAR, end_at=FAR + timedelta(hours=3))
    assert view.next_fire_time == FAR


async def test_schedules_are_listed_by_name(app: dt.App) -> None:
    await app.open()
    for name in ("b", "a", "c"):
        await app.schedule(name, "work", dt.Every("1h"))
    assert [view.name for view in await app.schedules()] == ["a", "b", "c"]
    assert [view.name for view in await app.schedules(limit=1, after="a")] == ["b"]


async def test_unknown_schedule_name_is_refused(app: dt.App) -> None:
    await app.open()
    for verb in (app.get_schedule, app.pause, app.resume, app.trigger, app.remove):
        with pytest.raises(dt.ScheduleNotFound, match="nightly"):
            await verb("nightly")


async def test_redeclared_schedule_takes_new_task_defaults(app: dt.App) -> None:
    """A new release gives the task another queue and a limit: the declaration that says nothing of them needs
    no replace."""
    await app.open()
    before = dt.App(app.store)
    after = dt.App(app.store)

    @before.task("follow")
    async def old(n: int) -> None: ...

    @after.task(
        "follow",
        queue="other",
        priority=7,
        limit=dt.Limit(1),
        version=2,
        upgrade=lambda version, payload: payload,
    )
    async def new(n: int) -> None: ...

    await before.open()
    await after.open()
    options: dict[str, Any] = {"payload": {"n": 1}, "timeout": "5m"}
    await before.schedule("name", old, dt.Every("1h"), **options)
    view = await after.schedule("name", new, dt.Every("1h"), **options)
    assert (view.queue, view.priority, view.version) == ("other", 7, 2)
    assert (await after.schedule("name", new, dt.Every("1h"), **options)).version == 2
    with pytest.raises(dt.ScheduleExists):
        await after.schedule("name", new, dt.Every("1h"), payload={"n": 2}, timeout="5m")
    with pytest.raises(dt.ScheduleExists):
        await after.schedule("name", new, dt.Every("1h"), payload={"n": 1}, timeout="6m")
    with pytest.raises(dt.ScheduleExists):
        await after.schedule("name", new, dt.Every("1h"), queue="third", **options)
    await before.close()
    await after.close()
