"""Task defaults in other processes: jobs submitted by name get the defaults that workers have published."""

from __future__ import annotations

from typing import Any

import pytest

import duetime as dt
from duetime.engine.node import registry
from duetime.engine.node.registry import ALL_TENANTS, TASK
from duetime.handle import JobHandle
from tests.app.conftest import MakeApp
from tests.app.waiting import eventually


def register(app: dt.App, **options: Any) -> dt.Task[..., Any]:
    @app.task("charge", **options)
    async def charge(customer: str, region: str = "eu") -> None: ...

    return charge


async def told(worker: dt.App) -> None:
    """Let it be a worker until its word is in the store, and no longer."""
    before = await _records(worker)

    async def known() -> bool:
        return await _records(worker) > before

    async with worker.running(roles=["worker"], queues=["none"]):
        await eventually(known)


async def _records(app: dt.App) -> int:
    await app.open()
    records = await app.store.list_records(TASK, ALL_TENANTS, 10)
    await app.close()
    return sum(record.version for record in records)


async def stored(job: JobHandle) -> tuple[Any, ...]:
    """All that follows from the registration."""
    row = (await job.refresh()).record
    return row.queue, row.priority, row.limit_key, row.unique_key, row.policies


OPTIONS: dict[str, Any] = {
    "queue": "billing",
    "priority": 7,
    "delivery": "at_most_once",
    "version": 3,
    "upgrade": lambda payload, version: payload,
    "limit": dt.Limit(2, per="region", rate="10/1m"),
    "unique": dt.Unique(by=["customer", "region"]),
}


async def test_published_defaults_apply_to_jobs_submitted_by_name(make_app: MakeApp) -> None:
    worker, stranger = make_app(), make_app()
    charge = register(worker, **OPTIONS)
    await told(worker)
    await stranger.open()
    alone = await stranger.submit("charge", customer="c1", delay="1h")
    [in_bulk] = await stranger.submit_many([dt.NewJob("charge", {"customer": "c2"}, delay="1h")])
    await worker.open()
    for job, customer in ((alone, "c1"), (in_bulk, "c2")):
        assert (await charge.submit(customer=customer)).id == job.id
        await job.cancel()
        assert await stored(job) == await stored(await charge.submit(customer=customer, delay="1h"))
    assert await stored(alone) == (
        "billing",
        7,
        'charge/"eu"',
        'charge/{"customer":"c1","region":"eu"}',
        alone.record.policies,
    )


async def test_call_options_take_precedence_over_published_defaults(make_app: MakeApp) -> None:
    worker, stranger = make_app(), make_app()
    register(worker, **OPTIONS)
    await told(worker)
    await stranger.open()
    job = await stranger.submit("charge", customer="c1", queue="own", priority=1, unique=False, delay="1h")
    assert (await stored(job))[:2] == ("own", 1)
    assert (await stored(job))[3] is None


async def test_published_uniqueness_rule_applies_by_name(make_app: MakeApp) -> None:
    worker, stranger = make_app(), make_app()
    register(worker, unique=dt.Unique(by=["customer"], within="1h", on_conflict="replace"))
    await told(worker)
    await stranger.open()
    first = await stranger.submit("charge", customer="c1", delay="1h")
    second = await stranger.submit("charge", customer="c1", delay="2h")
    assert ((await first.refresh()).state, second.conflict) == ("cancelled", "replaced")
    with pytest.raises(dt.InvalidInput, match="in bulk"):
        await stranger.submit_many([dt.NewJob("charge", {"customer": "c1"})])


async def test_published_defaults_apply_to_schedules_and_their_edits(make_app: MakeApp) -> None:
    worker, stranger = make_app(), make_app()
    register(worker, **OPTIONS)
    await told(worker)
    await stranger.open()
    await stranger.schedule("monthly", "charge", dt.Every("1h"), payload={"customer": "c1"})
    job = await stranger.trigger("monthly")
    queue, priority, key, _, _ = await stored(job)
    assert (queue, priority, key) == ("billing", 7, 'charge/"eu"')
    await stranger.schedules.edit("monthly", {"payload": {"customer": "c1", "region": "us"}})
    assert (await stored(await stranger.trigger("monthly")))[2] == 'charge/"us"'


async def test_retry_by_another_process_derives_the_new_limit_key(make_app: MakeApp) -> None:
    worker, stranger = make_app(), make_app()

    @worker.task("charge", limit=dt.Limit(2, per="customer"), retry=dt.Retry(max_attempts=1))
    async def charge(customer: str) -> None:
        raise ValueError("no")

    async with worker.running():
        job = await charge.submit(customer="c1")
        assert (await job.wait("60s")).state == "dead"
        await stranger.open()
        again = await stranger.retry_job(job.id, {"customer": "c2"})
        assert (await stored(again))[2] == 'charge/"c2"'


async def test_last_started_process_wins_and_its_defaults_outlive_it(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger, old, new = make_app(), make_app(), make_app()
    register(old, queue="old")
    register(new, queue="new")
    await told(old)
    await stranger.open()
    assert (await stored(await stranger.submit("charge", customer="c1", delay="1h")))[0] == "old"
    await told(new)
    assert (await stored(await stranger.submit("charge", customer="c1", delay="1h")))[
        0
    ] == "old"  # not asked for each job
    monkeypatch.setattr(registry, "CACHE_TTL", 0)
    assert (await stored(await stranger.submit("charge", customer="c1", delay="1h")))[0] == "new"


async def test_unreadable_defaults_of_a_later_version_are_ignored(make_app: MakeApp) -> None:
    stranger = make_app()
    await stranger.open()
    await stranger.store.put_record(TASK, ALL_TENANTS, "charge", b'{"queue": "billing"}')
    assert (await stored(await stranger.submit("charge", customer="c1", delay="1h")))[0] == "default"


async def test_cache_of_published_defaults_is_bounded(
    client: dt.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "MAX_CACHED_TASKS", 3)
    for number in range(10):
        await client.submit(f"task{number}", delay="1h")
    assert client.context.shared.published_tasks.size <= 3


async def test_new_work_for_a_task_that_no_node_has_had_is_told(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture
) -> None:
    worker, stranger = make_app(), make_app()
    register(worker)
    await told(worker)
    await stranger.open()
    for _ in range(2):
        await stranger.submit("chrage", customer="c1", delay="1h")
    await stranger.submit("charge", customer="c1", delay="1h")
    await stranger.submit_many([dt.NewJob("chrage", {}), dt.NewJob("chagre", {})])
    shown = await stranger.schedule("monthly", "chrage", dt.Every("1h"))
    warning = "no node has had the task 'chrage' so far (did you mean 'charge'?): its jobs wait until one has"
    assert shown.warning == warning
    assert (await stranger.schedule("daily", "charge", dt.Every("1d"))).warning is None
    plan = await stranger.previews.edit("daily", {"target": "chrage"})
    assert plan.warnings[-1] == warning
    assert [one.message for one in caplog.records if "so far" in one.message] == [
        warning,
        warning.replace("'chrage'", "'chagre'"),
    ]


async def test_strict_app_refuses_a_task_that_no_node_has_had(make_app: MakeApp) -> None:
    worker, stranger = make_app(), make_app()
    register(worker)
    await told(worker)
    stranger.use_strict_tasks(True)
    await stranger.open()
    await stranger.schedule("daily", "charge", dt.Every("1d"))
    for call in (
        lambda: stranger.submit("chrage", customer="c1"),
        lambda: stranger.submit_many([dt.NewJob("charge", {"customer": "c1"}), dt.NewJob("chrage", {})]),
        lambda: stranger.schedule("monthly", "chrage", dt.Every("1h")),
        lambda: stranger.schedules.edit("daily", {"target": "chrage"}),
    ):
        with pytest.raises(dt.UnknownTask, match=r"did you mean 'charge'") as refused:
            await call()
        assert (refused.value.code, refused.value.field) == ("task_unknown", "task")
    assert await stranger.jobs() == []
    await stranger.submit("charge", customer="c1", delay="1h")
