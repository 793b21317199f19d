"""Bulk actions, dead letters in groups, and the calendar, on every store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

import duetime as dt
from duetime.app import bulk
from duetime.app.listing import JobQuery
from duetime.errors import InvalidInput, StoreUnavailable
from duetime.model.instant import to_datetime
from duetime.model.job import State
from duetime.model.lease import NodeDraft
from duetime.model.schedule import ScheduleFilter
from duetime.store import ClaimRequest, Lane
from duetime.testing.conformance.drafts import death, put_schedule
from tests.app.conftest import MakeApp

EVERY = ScheduleFilter("default")


@pytest.fixture
async def opened(app: dt.App) -> dt.App:
    await app.open()
    return app


async def dead(app: dt.App, *errors: str, tenant: str = "default") -> list[Any]:
    """A dead letter for each of these errors."""
    jobs = [await app.submit("work") for _ in errors]
    node = await app.store.join(NodeDraft("n", ("worker",), "1"), 60_000_000)
    request = ClaimRequest(node, (Lane("default", 5, 0),), ("work",), len(errors), 0)
    found = {one.id: one for one in (await app.store.claim(request)).jobs}
    now = await app.now()
    deaths = [death(found[job.id], now, error=error) for job, error in zip(jobs, errors, strict=True)]
    assert (await app.store.settle(deaths)).refused == []
    return [job.id for job in jobs]


async def states(app: dt.App) -> list[str]:
    return sorted(job.state for job in await app.jobs(limit=1_000))


async def test_filter_selects_the_jobs_to_cancel(opened: dt.App) -> None:
    for number in range(20):
        await opened.submit("work", delay="1h", queue="a" if number % 2 else "b")
    counted = await opened.bulk.jobs("cancel", JobQuery(queue="a"), dry_run=True)
    assert (counted.matched, counted.done, counted.at_least) == (10, 0, False)
    assert await states(opened) == ["pending"] * 20
    done = await opened.bulk.jobs("cancel", JobQuery(queue="a"), reason="not wanted")
    assert (done.matched, done.done, done.failed, done.next) == (10, 10, (), None)
    assert await states(opened) == ["cancelled"] * 10 + ["pending"] * 10
    assert {job.error for job in await opened.jobs(state="cancelled")} == {"not wanted"}
    again = await opened.bulk.jobs("cancel", JobQuery(queue="a"))
    assert (again.matched, again.done) == (0, 0)


async def test_call_is_bounded_and_returns_where_to_continue(
    opened: dt.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MAX_ITEMS", 4)
    at = to_datetime(await opened.now()) + timedelta(hours=1)
    await opened.submit_many([dt.NewJob("work", at=at) for _ in range(10)])
    calls, after = [], None
    while True:
        done = await opened.bulk.jobs("cancel", JobQuery(), after=after)
        calls.append(done.done)
        await opened.submit("work", delay="2h")  # rows come in meanwhile; those that were there are all met
        if (after := done.next) is None:
            break
    assert calls == [4, 4, 2]
    assert (await states(opened)).count("cancelled") == 10


async def test_call_ends_at_its_timeout_and_returns_where_to_continue(
    opened: dt.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "CALL_TIMEOUT", 0)
    monkeypatch.setattr(bulk, "CHUNK", 16)
    jobs = [(await opened.submit("work", delay="1h")).id for _ in range(40)]
    for wanted in (JobQuery(), jobs):
        done = await opened.bulk.jobs("run", wanted)
        assert (done.matched, done.done) == (16, 16)
        assert done.next is not None
    seen, after = 0, None
    while True:
        done = await opened.bulk.jobs("cancel", jobs, after=after)
        seen += done.done
        if (after := done.next) is None:
            break
    assert seen == 40
    assert await states(opened) == ["cancelled"] * 40


async def test_failed_item_does_not_stop_the_others(opened: dt.App, make_app: MakeApp) -> None:
    """Another tenant's job is not there."""
    other = make_app(tenant="other")
    await other.open()
    theirs = (await other.submit("work", delay="1h")).id
    mine = (await opened.submit("work", delay="1h")).id
    [letter] = await dead(opened, "boom")
    missing = uuid4()
    done = await opened.bulk.jobs("cancel", [theirs, str(missing), "no id", letter, str(mine)])
    assert (done.matched, done.done) == (5, 1)
    assert [(failure.id, failure.code) for failure in done.failed] == [
        (str(theirs), "job_not_found"),
        (str(missing), "job_not_found"),
        ("no id", "job_not_found"),
        (str(letter), "job_finished"),
    ]
    assert (await opened.read_job(mine)).state is State.CANCELLED
    assert (await other.read_job(theirs)).state is State.PENDING
    assert (await opened.bulk.jobs("cancel", JobQuery(), dry_run=True)).matched == 0


async def test_repeated_action_changes_nothing_and_does_not_fail(opened: dt.App) -> None:
    first, second = await dead(opened, "boom", "bang")
    for _ in range(2):
        done = await opened.bulk.jobs("retry", [first])
        assert (done.done, done.failed) == (1, ())
        done = await opened.bulk.jobs("discard", [second])
        assert (done.done, done.failed) == (1, ())
    assert await states(opened) == ["dead", "dead", "pending"]
    wrong = await opened.bulk.jobs("retry", [second])
    assert [failure.code for failure in wrong.failed] == ["job_finished"]
    job = (await opened.submit("work", delay="1h")).id
    for _ in range(2):
        assert (await opened.bulk.jobs("run", [job])).done == 1
        assert (await opened.read_job(job)).due_at <= await opened.now()
        assert (await opened.bulk.jobs("run", JobQuery())).matched == 0
    for _ in range(2):
        assert (await opened.bulk.jobs("cancel", [job])).done == 1


async def test_dead_letters_of_one_error_are_retried(opened: dt.App) -> None:
    """The dead letters of one cause are dealt with together."""
    await dead(opened, "where\nboom", "elsewhere\nboom", "bang")
    groups = await opened.dead.groups()
    assert [(group.error, group.target, group.count) for group in groups.items] == [
        ("boom", "work", 2),
        ("bang", "work", 1),
    ]
    assert groups.complete
    assert groups.items[0].oldest <= groups.items[0].newest
    assert (await opened.read_job(groups.items[1].sample)).error == "bang"
    assert (await opened.bulk.jobs("retry", JobQuery(error="boom", state=State.PENDING))).matched == 0
    done = await opened.bulk.jobs("retry", JobQuery(error="boom", target="work", state=State.DEAD))
    assert (done.matched, done.done) == (2, 2)
    assert [group.error for group in (await opened.dead.groups()).items] == ["bang"]
    assert (await opened.bulk.jobs("discard", JobQuery())).done == 1
    assert (await opened.dead.groups()).items == []


async def test_dead_groups_report_that_they_are_incomplete(
    opened: dt.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    from duetime.app import dead as groups

    monkeypatch.setattr(groups, "PAGE", 2)
    monkeypatch.setattr(groups, "MAX_READ", 2)
    await dead(opened, "a", "a", "a")
    found = await opened.dead.groups()
    assert ([group.count for group in found.items], found.complete) == ([2], False)


async def test_filter_selects_the_schedules_to_change(opened: dt.App) -> None:
    for number in range(6):
        await opened.schedule(f"s{number}", "work", dt.Every("1h"), owner="ann" if number < 4 else "bob")
    mine = ScheduleFilter("ignored", owner="ann")
    assert (await opened.bulk.schedules("pause", mine, dry_run=True)).matched == 4
    done = await opened.bulk.schedules("pause", mine, note="night", author="eve")
    assert (done.matched, done.done, done.failed, done.next) == (4, 4, (), None)
    paused = await opened.schedules.find("s0")
    assert (paused.paused, paused.pause_note, paused.version) == (True, "night", 2)
    assert (await opened.store.list_versions("default", "s0", 1))[0].author == "eve"
    assert (await opened.bulk.schedules("pause", mine)).matched == 0
    assert (await opened.bulk.schedules("resume", EVERY)).done == 4
    assert (await opened.schedules.find("s0")).paused is False
    assert (await opened.bulk.schedules("trigger", ScheduleFilter("x", text="S1"))).done == 1
    assert [job.record.schedule for job in await opened.jobs()] == ["s1"]
    assert (await opened.bulk.schedules("trigger", EVERY)).done == 6
    assert len(await opened.jobs()) == 7
    assert (await opened.bulk.schedules("remove", mine)).done == 4
    assert [one.name for one in await opened.schedules()] == ["s4", "s5"]


@pytest.mark.parametrize("action", ["pause", "remove"])
async def test_unplanned_due_fires_are_kept_by_bulk_changes(
    opened: dt.App, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """They belong to the schedules as they were, and are stored for all of them in one step."""
    now = await opened.now()
    for number in range(5):
        made = await opened.schedule(
            f"s{number}", "work", dt.Every("1h", anchor=to_datetime(now)), payload={"number": number}
        )
        draft = (await opened.schedules.find(made.name)).draft
        assert await put_schedule(opened.store, draft, now, None) is not None  # no planner has run since
    steps: list[int] = []
    fire = opened.store.fire

    async def counted(firings: Any) -> int:
        steps.append(len(firings))
        return await fire(firings)

    monkeypatch.setattr(opened.store, "fire", counted)
    assert (await opened.bulk.schedules(action, EVERY)).done == 5
    assert sum(steps) == steps[0] == 5
    assert sorted(str(job.record.schedule) for job in await opened.jobs()) == [
        f"s{number}" for number in range(5)
    ]


async def test_schedules_are_changed_by_name_or_id(opened: dt.App, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [
        str(
            (
                await opened.schedule(f"s{number}", "work", dt.Every("1h")),
                await opened.schedules.find(f"s{number}"),
            )[1].id
        )
        for number in range(40)
    ]
    monkeypatch.setattr(bulk, "CALL_TIMEOUT", 0)
    monkeypatch.setattr(bulk, "CHUNK", 16)
    names = ["missing", ids[0].upper(), "s0", *ids[1:]]
    assert (await opened.bulk.schedules("pause", names, dry_run=True)).matched == 40
    failed, seen, after = list[bulk.Failure](), 0, None
    while True:
        done = await opened.bulk.schedules("pause", names, after=after)
        failed += done.failed
        seen += done.done
        if (after := done.next) is None:
            break
    assert (seen, [(one.id, one.code) for one in failed]) == (40, [("missing", "schedule_not_found")])
    assert all(one.paused and one.version == 2 for one in await opened.schedules.page(EVERY, 100))
    triggered = await opened.bulk.schedules("trigger", ["s1", "missing"])
    assert (triggered.matched, triggered.done, len(triggered.failed)) == (2, 1, 1)


async def test_unavailable_store_ends_the_call(opened: dt.App, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [(await opened.submit("work", delay="1h")).id for _ in range(3)]

    async def away(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(opened.store, "cancel_job", away)
        with pytest.raises(StoreUnavailable):
            await opened.bulk.jobs("cancel", jobs)
    assert (await opened.bulk.jobs("cancel", jobs)).done == 3


async def test_invalid_actions_and_ids_are_refused(opened: dt.App) -> None:
    for action, wanted, field in (
        ("eat", JobQuery(), "action"),
        ("cancel", [], "ids"),
        ("cancel", ["x"] * 1_001, "ids"),
    ):
        with pytest.raises(InvalidInput) as problem:
            await opened.bulk.jobs(action, wanted)
        assert problem.value.field == field


async def test_calendar_counts_and_pages_fires(opened: dt.App) -> None:
    start = to_datetime(await opened.now()).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    await opened.schedule("hourly", "work", dt.Cron("30 * * * *", tz="Asia/Kolkata"))
    await opened.schedule("often", "work", dt.Every("10m"))
    await opened.schedule("never", "work", dt.Every("10m"))
    await opened.pause("never")
    found = await opened.calendar(start, start + timedelta(hours=3))
    assert [(at - start, count) for at, count in found.buckets] == [
        (timedelta(hours=hour), 7) for hour in range(3)
    ]
    assert found.complete
    seen, after = [], None
    while True:
        page = await opened.calendar.fires(start, start + timedelta(hours=1), 3, after)
        assert len(page.fires) <= 3
        seen += [(int((fire.at - start).total_seconds()) // 60, fire.name) for fire in page.fires]
        if (after := page.next) is None:
            break
    assert sorted(seen) == sorted([(0, "hourly"), *((minute, "often") for minute in range(0, 60, 10))])
    assert [minute for minute, _ in seen] == sorted(minute for minute, _ in seen)
