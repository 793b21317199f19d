"""GET /stats: what the fleet did by the minute, what fails, what is late and what comes next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.errors import InvalidInput, StoreUnavailable
from duetime.model.job import State
from duetime.model.views import Stats
from duetime.observers import rollups
from duetime.observers.rollups import KIND
from tests.api.conftest import Api, refused

ONCE = dt.Retry(max_attempts=1)


def with_tasks(app: dt.App) -> dt.App:
    @app.task("good")
    async def good() -> None: ...

    @app.task("bad", retry=ONCE)
    async def bad() -> None:
        raise ValueError("no luck")

    return app


def total(stats: Stats, name: str) -> int:
    return sum(getattr(point, name) for point in stats.series)


async def until(done: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await done():
            await asyncio.sleep(0.01)


async def finished(app: dt.App, count: int) -> None:
    async def all_done() -> bool:
        return len([job for job in await app.jobs(limit=5_000) if State(job.state).final]) >= count

    await until(all_done)


async def test_stats_of_one_node_are_exact_and_immediate(api: Api) -> None:
    app = with_tasks(api.app)
    async with app.running():
        await app.submit_many([dt.NewJob("good") for _ in range(700)] + [dt.NewJob("bad") for _ in range(30)])
        job = await app.submit("good", delay="1h")
        await job.cancel()
        await finished(app, 731)
        stats = await app.stats()
        assert {
            name: total(stats, name)
            for name in ("succeeded", "failed", "dead", "cancelled", "retried", "skipped")
        } == {
            "succeeded": 700,
            "failed": 30,
            "dead": 30,
            "cancelled": 1,
            "retried": 0,
            "skipped": 0,
        }
        [failing] = stats.failing
        assert (failing.target, failing.failed, failing.last_error) == ("bad", 30, "ValueError: no luck")
        assert (await app.get_job(failing.sample)).state == "dead"
        assert (stats.live.dead, stats.live.pending, stats.leader) == (30, 0, 1)
        busy = [point for point in stats.series if point.succeeded]
        assert all(point.lateness_p99_ms is not None and point.duration_p50_ms is not None for point in busy)


async def test_stats_of_processes_add_up_and_survive_shutdown(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'd.db'}"
    for number in (1, 2):
        app = with_tasks(dt.App(url))
        async with app.running():
            await app.submit_many([dt.NewJob("good") for _ in range(10 * number)])
            await finished(app, 10 if number == 1 else 30)
    reader = dt.App(url)
    await reader.open()
    stats = await reader.stats()
    assert (total(stats, "succeeded"), stats.leader) == (30, None)
    again = await reader.stats("24h", "1h")
    assert (total(again, "succeeded"), len(again.series)) == (30, 25)
    await reader.close()


async def test_written_minutes_are_not_counted_twice(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollups, "WRITE_INTERVAL", 10_000)
    app = with_tasks(api.app)

    async def written() -> bool:
        return bool(await app.store.list_records(KIND, "default", 10))

    async with app.running():
        for number in (1, 2, 3):
            await app.submit("good")
            await finished(app, number)
            await until(written)
            app.context.shared.stats.close()  # what is kept for a second is forgotten
            assert total(await app.stats(), "succeeded") == number


async def test_counts_outlive_an_outage_of_the_store(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollups, "WRITE_INTERVAL", 10_000)
    monkeypatch.setattr(rollups, "RETRY_INTERVAL", 10_000)
    app, store = with_tasks(api.app), api.app.store
    put, failures = store.put_record, 0

    async def away(kind: str, *arguments: Any) -> int:
        nonlocal failures
        failures += 1
        if failures < 3:
            raise StoreUnavailable("gone")
        return await put(kind, *arguments)

    async def written() -> bool:
        return bool(await store.list_records(KIND, "default", 10))

    monkeypatch.setattr(store, "put_record", away)
    async with app.running():
        await app.submit("good")
        await until(written)
    assert failures >= 3


async def test_a_minute_that_is_over_is_read_once(tmp_path: Path) -> None:
    app = with_tasks(dt.App(f"sqlite:///{tmp_path / 'd.db'}"))
    async with app.running():
        await app.submit("good")
        await finished(app, 1)
    await app.open()
    now = await app.now()
    minute = 60_000_000
    [record] = await app.store.list_records(KIND, "default", 10)
    old = f"{now // minute - 30:010d}.other"
    await app.store.put_record(KIND, "default", old, record.value)
    history = app.context.shared.stats.history.of("default")
    first, last = now // minute - 60, now // minute
    assert sum(cell.finished["succeeded"] for cell in (await history.read(first, last, None)).values()) == 2
    await app.store.put_record(KIND, "default", old, None)
    assert sum(cell.finished["succeeded"] for cell in (await history.read(first, last, None)).values()) == 2
    assert (
        sum(cell.finished["succeeded"] for cell in (await history.read(first - 60, last, None)).values()) == 1
    )
    await app.close()


async def test_tenants_are_counted_apart(api: Api) -> None:
    app = with_tasks(api.app)
    async with app.running():
        other = app.for_tenant("other")
        await other.submit("good")
        await app.submit("bad")
        await finished(app, 1)

        async def told() -> bool:
            other.context.shared.stats.close()
            return total(await other.stats(), "succeeded") == 1

        await until(told)
        mine, theirs = await app.stats(), await other.stats()
    assert (total(mine, "succeeded"), total(mine, "failed"), total(theirs, "failed"), theirs.failing) == (
        0,
        1,
        0,
        [],
    )


async def test_stats_list_late_jobs_and_next_fires(api: Api) -> None:
    """A job of an unknown task waits and becomes late; the oldest is first."""
    past = datetime.now(UTC) - timedelta(hours=1)
    late = [
        await api.submit(
            target={"type": "task", "name": "unknown"}, at=(past + timedelta(minutes=n)).isoformat()
        )
        for n in (5, 0, 3)
    ]
    await api.submit(target={"type": "task", "name": "unknown"}, delay="1h")
    for name, every in (("hourly", "1h"), ("at once", "20s")):  # before a full hour both: then by name
        done = await api.post(
            "/schedules",
            {"name": name, "when": {"every": every}, "target": {"type": "task", "name": "unknown"}},
        )
        assert done.status_code == 201, done.text
    stats: dict[str, Any] = (await api.get("/stats?since=10m&step=5m")).json()
    assert [job["id"] for job in stats["late"]] == [late[1], late[2], late[0]]
    assert [one["name"] for one in stats["next"]] == ["at once", "hourly"]
    assert stats["live"] == {"pending": 4, "due": 3, "running": 0, "dead": 0}
    assert len(stats["series"]) == 3


async def test_stats_list_the_oldest_late_jobs(api: Api) -> None:
    past = datetime.now(UTC) - timedelta(hours=2)
    await api.app.submit_many([dt.NewJob("unknown", at=past + timedelta(seconds=n)) for n in range(1_000)])
    stats = await api.app.stats()
    assert [job.due_at for job in stats.late] == sorted(job.due_at for job in stats.late)
    assert stats.late[0].due_at == past
    assert len(stats.late) == 10


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("since=25h", "since"),
        ("since=0s", "since"),
        ("since=soon", "since"),
        ("step=30s", "step"),
        ("step=90s", "step"),
        ("step=25h", "step"),
        ("since=1h&what=x", "what"),
    ],
)
async def test_invalid_stats_range_is_refused(api: Api, query: str, field: str) -> None:
    refused(await api.get(f"/stats?{query}"), 422, "input_invalid", field)


async def test_library_refuses_invalid_stats_range(api: Api) -> None:
    with pytest.raises(InvalidInput, match="step: must be whole minutes"):
        await api.app.stats("1h", "10s")
