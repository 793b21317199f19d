"""Each condition is found, told once, and told again when it is over. In virtual time, with a real planner and
worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, cast

import pytest

import duetime as dt
from duetime import testing
from duetime.clock import Clock
from duetime.engine.alert.sweep import MUTE, RULE, AlertSweep
from duetime.model.instant import MINUTE, SECOND
from duetime.model.lease import NodeDraft, NodeId
from duetime.model.schedule import plan_fires
from duetime.testing.conformance.drafts import put_schedule
from tests.alerts.watching import Watch

HOOK: dict[str, Any] = {"type": "webhook", "url": "https://hooks.example.org/duetime"}
broken: set[str] = set()


@pytest.fixture
def app() -> dt.App:
    broken.clear()
    app = dt.App("memory://")

    @app.task("work", retry=dt.Retry(max_attempts=1))
    async def work(name: str = "") -> None:
        if name in broken or "all" in broken:
            raise ValueError("the printer is on fire")

    @app.task("long", retry=dt.Retry(max_attempts=1), timeout="2h")
    async def long(ctx: dt.Context, minutes: int = 30) -> None:
        await asyncio.sleep(minutes * 60)

    return app


@pytest.fixture
async def watch(app: dt.App) -> AsyncIterator[Watch]:
    async with testing.virtual(app) as time:
        watch = Watch(app, time)
        await app.alerts.set_channel("ops", **HOOK)
        yield watch


async def test_quiet_hour_tells_nothing(app: dt.App, watch: Watch) -> None:
    for number in range(4):
        await app.schedule(f"every-{number}", "work", dt.Every(f"{number * 70 + 50}s"))
    await app.schedule("hourly", "work", dt.Cron("30 * * * *"))
    await app.schedule("paused", "work", dt.Every("1m"))
    await app.pause("paused")
    await watch.run(60)
    assert await watch.told() == []
    assert await app.alerts(past=True) == []


async def test_silent_schedule_is_told_once_and_its_recovery(app: dt.App, watch: Watch) -> None:
    await app.schedule("nightly", "missing", dt.Every("5m"))
    await app.schedule("good", "work", dt.Every("1m"))
    await app.alerts.set_rule("queue_lag", enabled=False)
    await watch.run(40)
    assert await watch.told() == [("firing", "silent", ["nightly"])]
    [alert] = await app.alerts()
    assert (alert.condition, alert.subject, alert.severity, alert.told) == (
        "silent", "nightly", "critical", ["ops"],
    )  # fmt: skip
    assert alert.opened_at - alert.since <= timedelta(minutes=11)
    assert "last success: never" in alert.text
    await app.schedule("nightly", "work", dt.Every("5m"), on_conflict="replace")
    await watch.run(12)
    assert await watch.told() == [("firing", "silent", ["nightly"]), ("resolved", "silent", ["nightly"])]
    assert await app.alerts() == []
    [past] = await app.alerts(past=True)
    assert (past.id, past.closed) == (alert.id, "succeeded again")


async def test_paused_and_removed_schedules_are_not_silent(app: dt.App, watch: Watch) -> None:
    await app.alerts.set_rule("queue_lag", enabled=False)
    for name in ("one", "two"):
        await app.schedule(name, "missing", dt.Every("5m"))
    await watch.run(20)
    assert await watch.told() == [("firing", "silent", ["one", "two"])]
    await app.pause("one")
    await app.remove("two")
    await watch.run(60, "1m")
    assert (await watch.told())[1:] == [("resolved", "silent", ["one", "two"])]
    assert {alert.closed for alert in await app.alerts(past=True)} == {"paused", "removed"}


async def test_dead_letter_is_told_and_not_also_silence(app: dt.App, watch: Watch) -> None:
    await app.schedule("report", "work", dt.Every("1h"), payload={"name": "report"})
    broken.add("report")
    await watch.run(90, "1m")
    assert await watch.told() == [("firing", "dead_letters", ["report"])]
    [notice] = await watch.notices()
    assert notice["alerts"][0]["text"] == "1 dead letter; the last: ValueError: the printer is on fire"
    for job in await app.jobs(state="dead"):
        await app.discard_job(job.id)
    broken.clear()
    await watch.run(61, "1m")
    assert (await watch.told())[1:] == [("resolved", "dead_letters", ["report"])]


async def test_three_failures_in_a_row_are_failing(app: dt.App, watch: Watch) -> None:
    await app.alerts.set_rule("dead_letters", enabled=False)
    await app.alerts.set_rule("silent", after="2h")
    await app.schedule("report", "work", dt.Every("10m"), payload={"name": "report"})
    broken.add("report")
    await watch.run(25)
    assert await watch.told() == []
    await watch.run(10)
    assert await watch.told() == [("firing", "failing", ["report"])]
    broken.clear()
    await watch.run(15)
    assert (await watch.told())[1:] == [("resolved", "failing", ["report"])]


async def test_ratio_of_failures(app: dt.App, watch: Watch) -> None:
    for name in ("dead_letters", "failing"):
        await app.alerts.set_rule(name, enabled=False)
    await app.alerts.set_rule("mail fails", condition="failing", queue="mail", ratio=0.5, window="10m")
    broken.add("x")
    for number in range(20):
        await app.submit("work", name="x" if number < 9 else "y", queue="mail")
    await watch.run(1)
    assert await watch.told() == []
    await app.submit_many([dt.NewJob("work", {"name": "x"}, queue="mail") for _ in range(5)])
    await watch.run(1)
    assert await watch.told() == [("firing", "failing", ["mail"])]
    await watch.run(10)
    assert (await watch.told())[1:] == [("resolved", "failing", ["mail"])]


async def test_skipped_fires_are_told_unless_an_overlap_skips_them(app: dt.App, watch: Watch) -> None:
    await app.alerts.set_rule("silent", enabled=False)
    await app.schedule("missed", "work", dt.Every("5m"), missed="skip")
    await app.schedule("slow", "long", dt.Every("5m"), overlap="skip", payload={"minutes": 30})
    await app.schedule("few", "work", dt.Every("5m"), missed="skip")
    for name, fires in (("missed", 3), ("few", 2)):
        schedule, now = await app.schedules.find(name), await app.now()
        cursor = now - now % (5 * MINUTE) - (fires - 1) * 5 * MINUTE
        await put_schedule(app.store, schedule.draft, cursor, None)
        later = cursor + (fires - 1) * 5 * MINUTE + 10 * SECOND
        await app.store.fire([plan_fires(await app.schedules.find(name), later, later)])
    await watch.run(25)
    assert len(await app.jobs(schedule="slow", state="skipped")) >= 3
    assert await watch.told() == [("firing", "skipped", ["missed"])]
    [notice] = await watch.notices()
    assert notice["alerts"][0]["text"] == "3 fires were skipped within 1h; the last: missed: policy skip"
    await watch.run(45, "1m")
    assert (await watch.told())[1:] == [("resolved", "skipped", ["missed"])]


async def test_queue_lag_is_told_unless_the_queue_is_paused(app: dt.App, watch: Watch) -> None:
    await app.submit("missing", queue="mail")
    await app.submit("work", queue="held")
    await app.pause_queue("held")
    await watch.run(9)
    assert await watch.told() == []
    await watch.run(3)
    assert await watch.told() == [("firing", "queue_lag", ["mail"])]
    for job in await app.jobs(queue="mail"):
        await app.cancel_job(job.id)
    await watch.run(1)
    assert (await watch.told())[1:] == [("resolved", "queue_lag", ["mail"])]


async def test_late_needs_a_rule_and_names_the_schedule(app: dt.App, watch: Watch) -> None:
    await app.alerts.set_rule("queue_lag", enabled=False)
    await app.alerts.set_rule("late reports", condition="late", schedule="report*", after="2m")
    for name in ("report-a", "other"):
        await app.schedule(name, "missing", dt.Cron("10 * * * *"))
    await watch.run(14)
    assert await watch.told() == [("firing", "late", ["report-a"])]


async def test_the_most_specific_rule_applies(app: dt.App, watch: Watch) -> None:
    await app.alerts.set_rule("queue_lag", enabled=False)
    await app.alerts.set_rule("exempt", condition="silent", schedule="noise-*", enabled=False)
    await app.alerts.set_rule("quick", condition="silent", schedule="quick", after="2m")
    for name in ("noise-1", "quick", "slow"):
        await app.schedule(name, "missing", dt.Cron("5 * * * *"))
    await watch.run(10)
    assert await watch.told() == [("firing", "silent", ["quick"])]
    await watch.run(8)
    assert await watch.told() == [("firing", "silent", ["quick"]), ("firing", "silent", ["slow"])]


async def test_running_job_may_take_as_long_as_the_last_success(app: dt.App, watch: Watch) -> None:
    """An hour that was always an hour is not silence."""
    await app.schedule("import", "long", dt.Cron("0 */3 * * *"), payload={"minutes": 40})
    await app.alerts.set_rule("silent", after="1h")
    await watch.run(300, "1m")
    assert await watch.told() == []
    await app.alerts.set_rule("silent", after="5m")
    await watch.run(200, "1m")
    assert await watch.told() == []


async def test_many_silent_schedules_are_one_notice(app: dt.App, watch: Watch) -> None:
    await app.alerts.set_rule("queue_lag", enabled=False)
    for number in range(60):
        await app.schedule(f"s{number:03}", "missing", dt.Cron("5 * * * *"))
    await watch.run(20)
    [notice] = await watch.notices()
    assert len(notice["alerts"]) == 60
    assert len({one["incident"] for one in notice["alerts"]}) == 1


async def test_bursts_are_collected(app: dt.App, watch: Watch) -> None:
    """Schedules that go silent one after the other, for an hour: not a notice for each."""
    await app.alerts.set_rule("queue_lag", enabled=False)
    for number in range(60):
        await app.schedule(f"s{number:03}", "missing", dt.Cron(f"{number} * * * *"))
    await watch.run(100, "1m")
    told = await watch.told()
    assert len(told) < 30
    assert sum(len(subjects) for _, _, subjects in told) == 60


async def test_snooze_and_maintenance_hold_the_notice(app: dt.App, watch: Watch) -> None:
    now = await app.now()
    await app.alerts.mute(for_="30m", subject="ni*", note="new disk")
    await app.alerts.set_rule("queue_lag", enabled=False)
    await app.schedule("nightly", "missing", dt.Cron("5 * * * *"))
    await watch.run(25)
    assert await watch.told() == []
    [alert] = await app.alerts()
    assert alert.muted_until is not None
    await watch.run(6)
    assert await watch.told() == [("firing", "silent", ["nightly"])]
    assert await app.now() >= now + 30 * MINUTE
    assert await app.alerts.mutes() == []


async def test_snoozed_alert_that_recovers_was_never_told(app: dt.App, watch: Watch) -> None:
    await app.submit("missing", queue="mail")
    await app.alerts.mute(for_="1h", condition="queue_lag")
    await watch.run(12)
    for job in await app.jobs(queue="mail"):
        await app.cancel_job(job.id)
    await watch.run(60, "1m")
    assert await watch.told() == []
    assert [alert.closed for alert in await app.alerts(past=True)] == ["no job is overdue"]


async def test_quiet_times_of_a_channel_hold_both(app: dt.App, watch: Watch) -> None:
    """The tests begin at midnight UTC, which is one o'clock in Berlin."""
    quiet = [{"start": "22:00", "end": "02:00", "tz": "Europe/Berlin"}]
    await app.alerts.set_channel("chat", **HOOK, quiet=quiet)
    await app.submit("missing", queue="mail")
    await watch.run(30)
    assert await watch.told("ops") == [("firing", "queue_lag", ["mail"])]
    assert await watch.told("chat") == []
    await watch.run(31)
    assert await watch.told("chat") == [("firing", "queue_lag", ["mail"])]


async def test_rule_chooses_channels(app: dt.App, watch: Watch) -> None:
    await app.alerts.set_channel("pager", **HOOK)
    await app.alerts.set_rule("queue_lag", channels=["pager"])
    await app.submit("missing", queue="mail")
    await watch.run(12)
    assert await watch.told("ops") == []
    assert await watch.told("pager") == [("firing", "queue_lag", ["mail"])]


async def test_tenants_have_alerts_of_their_own(app: dt.App, watch: Watch) -> None:
    other = app.for_tenant("acme")
    await other.alerts.set_channel("team", **HOOK)
    await other.submit("missing", queue="mail")
    await watch.run(12)
    assert await watch.told() == []
    assert await watch.told("team", "acme") == [("firing", "queue_lag", ["mail"])]
    assert await app.alerts() == []
    assert len(await other.alerts()) == 1


async def test_sweep_repeated_and_shared_tells_once(app: dt.App, watch: Watch) -> None:
    """Two nodes that both lead."""
    other = Watch(app, watch.time)
    await app.submit("missing", queue="mail")
    for _ in range(60):
        await watch.sweep.run_once()
        await other.sweep.run_once()
        await watch.time.advance("15s")
    assert await watch.told() == [("firing", "queue_lag", ["mail"])]


async def test_node_that_does_not_lead_stands_in_and_tells_that_no_node_leads(
    app: dt.App, watch: Watch
) -> None:
    await watch.run(1)
    stand_in = Watch(app, watch.time, leads=lambda: False)
    await stand_in.sweep.run_once()
    assert await watch.told() == []
    await stand_in.run(2.5)
    assert await watch.told() == [("firing", "no_leader", ["fleet"])]
    await watch.run(1)
    assert (await watch.told())[1:] == [("resolved", "no_leader", ["fleet"])]


class FastClock:
    """A minute ahead of the store's. In virtual time all clocks are right."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> int:
        return self._clock.now()

    def skew(self) -> int:
        return MINUTE


async def test_clock_skew_is_known_until_its_node_looks_again(app: dt.App, watch: Watch) -> None:
    """However rarely nodes look: one that does not lead looks half as often as the leader."""
    node = await app.store.join(NodeDraft("fast", ("worker",), "1"), 24 * 60 * MINUTE)
    far = AlertSweep(app.store, cast(Clock, FastClock(app.clock)), lambda: False, node, "fast", 10 * MINUTE)
    leader = AlertSweep(app.store, app.clock, lambda: True, NodeId(1), "leader", 10 * MINUTE)
    for _ in range(3):
        assert await far.run_once() == 20 * MINUTE
        for _ in range(2):
            assert await leader.run_once() == 10 * MINUTE
            await watch.time.advance("10m")
    assert [one for one in await watch.told() if one[1] == "clock_skew"] == [
        ("firing", "clock_skew", ["fast"])
    ]


async def test_gap_without_any_node_is_told_afterwards(app: dt.App, watch: Watch) -> None:
    await app.schedule("often", "work", dt.Every("1m"))
    await watch.run(1)
    await watch.time.advance("10m")
    await watch.run(5)
    assert await watch.told() == [("resolved", "no_leader", ["fleet"])]


async def test_closed_by_hand(app: dt.App, watch: Watch) -> None:
    await app.submit("missing", queue="mail")
    await watch.run(12)
    [alert] = await app.alerts()
    assert (await app.alerts.close(alert.id)).closed == "closed by hand"
    with pytest.raises(dt.AlertNotFound):
        await app.alerts.close(alert.id)
    await watch.run(1)
    assert sorted(kind for kind, _, _ in await watch.told()) == ["firing", "firing", "resolved"]


async def test_without_a_channel_nothing_is_written(app: dt.App, watch: Watch) -> None:
    await app.alerts.remove_channel("ops")
    await app.submit("missing", queue="mail")
    await watch.run(15)
    assert await app.store.list_records("alert_state", None, 10) == []
    assert await app.store.list_records(RULE, None, 10) == await app.store.list_records(MUTE, None, 10) == []
    assert await watch.sweep.run_once() == 15 * SECOND
