"""Alerts on every store: the same queries find the same conditions, and a notice is told once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

import duetime as dt
from duetime.engine.alert.notices import ALERT_QUEUE
from duetime.engine.alert.sweep import AlertSweep
from duetime.errors import StoreUnavailable
from duetime.model.codec import decode
from duetime.model.job import JobDraft, JobFilter
from duetime.model.lease import NodeId
from duetime.store import Store

HOOK: dict[str, Any] = {"type": "webhook", "url": "https://hooks.example.org/duetime"}
TIMEOUT = 60.0


async def told(app: dt.App) -> list[tuple[str, str, list[str]]]:
    jobs = await app.store.list_jobs(JobFilter("default", queue=ALERT_QUEUE), 100)
    notices = [decode(job.payload) for job in jobs]
    return sorted(
        (notice["kind"], notice["condition"], sorted(one["subject"] for one in notice["alerts"]))
        for notice in notices
    )


async def sweep_until(app: dt.App, expected: list[tuple[str, str, list[str]]]) -> None:
    sweep = AlertSweep(app.store, app.clock, lambda: True, NodeId(1), "test")
    deadline = time.monotonic() + TIMEOUT
    while (found := await told(app)) != expected:
        assert time.monotonic() < deadline, (found, await app.alerts())
        await sweep.run_once()
        await asyncio.sleep(0.1)


@pytest.mark.slow
async def test_every_condition_is_found_and_over(app: dt.App) -> None:
    fails = {"on"}

    @app.task("flaky", retry=dt.Retry(max_attempts=1))
    async def flaky() -> None:
        if fails:
            raise ValueError("no")

    async with app.running(alert_interval="1h"):
        alerts = app.alerts
        await alerts.set_channel("ops", **HOOK)
        await alerts.set_rule("silent", after="2s", schedule="stuck")  # on a busy machine others are, too
        await alerts.set_rule("queue_lag", after="500ms", queue="mail")
        await alerts.set_rule("late", condition="late", schedule="stuck", after="500ms")
        await alerts.set_rule("failing", count=2)
        await app.schedule("stuck", "missing", dt.Every("1s"), queue="other")
        await app.submit("missing", queue="mail")
        await app.schedule("flaky", "flaky", dt.Every("1s"))
        firing = [
            ("firing", "dead_letters", ["flaky"]),
            ("firing", "failing", ["flaky"]),
            ("firing", "late", ["stuck"]),
            ("firing", "queue_lag", ["mail"]),
            ("firing", "silent", ["stuck"]),
        ]
        await sweep_until(app, firing)
        fails.clear()
        await app.pause("stuck")
        for job in [*await app.jobs(queue="mail"), *await app.jobs(queue="other")]:
            if not job.state.final:
                await app.cancel_job(job.id)
        for job in await app.jobs(state="dead"):
            await app.discard_job(job.id)
        await sweep_until(app, firing + [("resolved", one, names) for _, one, names in firing])
        assert await alerts() == []
        assert {alert.condition for alert in await alerts(past=True)} == {one for _, one, _ in firing}


class LosingStore:
    """The store, until a call of a verb: before or after it the process dies."""

    def __init__(self, store: Store, verb: str, after: bool) -> None:
        self._store = store
        self._verb = verb
        self._after = after

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)
        if name != self._verb:
            return call

        async def die(*arguments: Any, **named: Any) -> Any:
            if self._after:
                await call(*arguments, **named)
            raise StoreUnavailable("the process died")

        return die


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("verb", ["put_record", "add_jobs"])
async def test_crash_between_any_two_steps_tells_once(app: dt.App, verb: str, after: bool) -> None:
    await app.open()
    await app.alerts.set_channel("ops", **HOOK)
    await app.alerts.set_rule("queue_lag", after="1ms")
    good = AlertSweep(app.store, app.clock, lambda: True, NodeId(1), "test")
    await good.run_once()
    await app.submit("missing", queue="mail")
    await asyncio.sleep(0.01)
    dying: Any = LosingStore(app.store, verb, after)
    with pytest.raises(StoreUnavailable):
        await AlertSweep(dying, app.clock, lambda: True, NodeId(1), "test").run_once()
    for _ in range(3):
        await good.run_once()
    assert await told(app) == [("firing", "queue_lag", ["mail"])]


async def test_notice_that_was_delivered_is_not_submitted_again(app: dt.App) -> None:
    """The job of the notice has finished before the outbox is emptied."""
    submitted: list[UUID] = []

    class CountingStore(LosingStore):
        def __getattr__(self, name: str) -> Any:
            call = getattr(self._store, name)
            if name != "add_jobs":
                return call

            async def add(drafts: Sequence[JobDraft], is_retry: bool = False) -> list[UUID]:
                submitted.extend(draft.id for draft in drafts)
                found: list[UUID] = await call(drafts, is_retry)
                return found

            return add

    await app.open()
    await app.alerts.set_channel("ops", **HOOK)
    await app.alerts.set_rule("queue_lag", after="1ms")
    await app.submit("missing", queue="mail")
    counting: Any = CountingStore(app.store, "", False)
    sweep = AlertSweep(counting, app.clock, lambda: True, NodeId(1), "test")
    for _ in range(2):
        await asyncio.sleep(0.01)
        await sweep.run_once()
    [job] = await app.jobs(queue=ALERT_QUEUE)
    await app.cancel_job(job.id)
    await sweep.run_once()
    assert len(submitted) >= 2
    assert {*submitted} == {job.id}
    assert [one.state for one in await app.jobs(queue=ALERT_QUEUE)] == ["cancelled"]


async def test_settings_are_versioned(app: dt.App) -> None:
    await app.open()
    first = await app.alerts.set_channel("ops", **HOOK)
    second = await app.alerts.set_channel("ops", **HOOK, version=first.version, enabled=False)
    assert second.version > first.version
    with pytest.raises(dt.VersionConflict):
        await app.alerts.set_channel("ops", **HOOK, version=first.version)
    rule = await app.alerts.set_rule("silent", after="1h")
    with pytest.raises(dt.VersionConflict):
        await app.alerts.set_rule("silent", after="2h", version=rule.version + 1)
    await app.alerts.remove_rule("silent")
    assert {rule.name: rule.after for rule in await app.alerts.rules()}["silent"] == "10m"
