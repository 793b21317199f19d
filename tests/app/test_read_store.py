"""Lists and statistics from a read replica: a PostgreSQL server and its standby."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

import duetime as dt
from duetime.api.service import build
from duetime.app import read_store
from duetime.app.health import Health
from duetime.app.read_store import READING, ReadStore
from duetime.app.stats import TtlCache
from duetime.config import Settings
from duetime.errors import ConfigError
from duetime.model.events import Event, ReadStoreChanged
from duetime.model.identity import StoreIdentity
from duetime.model.instant import SECOND, Micros
from duetime.model.views import ReadStoreView
from duetime.observer import Observers
from duetime.store import JobStore, Store
from tests.api.conftest import RING, client_of
from tests.app.waiting import eventually
from tests.servers.postgres import PostgresServer, ReplicaServer

pytestmark = pytest.mark.slow  # servers of their own

HOUR = 3_600 * SECOND
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def primary() -> Iterator[PostgresServer]:
    with PostgresServer(settings={"synchronous_commit": "on"}) as server:
        yield server


@pytest.fixture(scope="module")
def replica(primary: PostgresServer) -> Iterator[ReplicaServer]:
    with ReplicaServer(primary) as server:
        yield server


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
async def app(primary: PostgresServer, replica: ReplicaServer, events: list[Event]) -> AsyncIterator[dt.App]:
    name = f"reads_{next(_numbers)}"
    app = dt.App(primary.create_database(name), read_store=replica.url(name), observers=[events.append])
    replica.wait_for_database(name)
    await app.migrate()
    await app.open()
    await eventually(lambda: is_used(app))
    events.clear()
    yield app
    await app.close()


async def state(app: dt.App) -> ReadStoreView:
    found = (await app.stats()).read_store
    assert found is not None
    return found


async def is_used(app: dt.App) -> bool:
    return (await state(app)).remark is None


async def has_listed(app: dt.App, job: dt.JobHandle) -> bool:
    return job.id in [one.id for one in await app.jobs()]


async def test_lists_and_counts_come_from_the_replica(app: dt.App, replica: ReplicaServer) -> None:
    job = await app.submit("work", delay="1h")
    await eventually(lambda: has_listed(app, job))
    replica.pause_replay()
    try:
        later = await app.submit("work", delay="1h", queue="later")
        assert (await later.refresh()).state == "pending", "a job by its id is read from the store"
        assert await has_listed(app, job)
        assert not await has_listed(app, later)
        assert "later" not in [queue.name for queue in await app.queues.counted()]
        paused = await app.pause_queue("later")
        assert paused.paused
    finally:
        replica.resume_replay()
    await eventually(lambda: has_listed(app, later))


async def test_lag_is_shown(app: dt.App, replica: ReplicaServer) -> None:
    replica.pause_replay()
    try:
        await app.submit("work", delay="1h")

        async def lags() -> bool:
            return ((await state(app)).lag_ms or 0.0) > 500.0

        await eventually(lags)
    finally:
        replica.resume_replay()


async def test_replica_that_is_too_far_behind_is_not_used(
    app: dt.App, replica: ReplicaServer, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_store, "MAX_LAG", SECOND)
    health = Health(app)
    replica.pause_replay()
    try:
        job = await app.submit("work", delay="1h")
        await eventually(lambda: has_listed(app, job))
        remark = (await state(app)).remark
        assert remark is not None
        assert "s behind: lists and statistics come from the store itself" in remark
        assert remark == await health.remark()
        assert await health.trouble() is None
    finally:
        replica.resume_replay()
    await eventually(lambda: is_used(app))
    assert await health.remark() is None
    assert [type(event) for event in events if isinstance(event, ReadStoreChanged)] == 2 * [ReadStoreChanged]


async def test_store_answers_while_the_replica_is_away(
    app: dt.App, replica: ReplicaServer, events: list[Event]
) -> None:
    replica.stop()
    try:
        job = await app.submit("work", delay="1h")
        assert await has_listed(app, job), "the first list after the failure is complete, too"
        await eventually(lambda: _not(is_used(app)))
        found = await state(app)
        assert found.lag_ms is None
        assert "the read replica is not used" in str(found.remark)
    finally:
        replica.start()
    await eventually(lambda: is_used(app))
    changes = [event.remark is None for event in events if isinstance(event, ReadStoreChanged)]
    assert changes == [False, True]


async def _not(question: Any) -> bool:
    return not await question


async def test_app_opens_without_its_replica(primary: PostgresServer, replica: ReplicaServer) -> None:
    name = f"reads_{next(_numbers)}"
    app = dt.App(primary.create_database(name), read_store=f"postgresql://postgres@127.0.0.1:1/{name}")
    await app.migrate()
    await app.open()
    assert "the read replica is not used" in str((await state(app)).remark)
    assert await has_listed(app, await app.submit("work"))
    await app.close()


async def test_replica_of_another_database_is_refused(
    primary: PostgresServer, replica: ReplicaServer
) -> None:
    urls = [primary.create_database(f"reads_{next(_numbers)}") for _ in range(2)]
    for url in urls:
        await dt.App(url).migrate()
    with pytest.raises(ConfigError, match="read_store: it is not a copy"):
        await dt.App(urls[0], read_store=urls[1]).open()


def test_stores_without_replicas_are_refused() -> None:
    with pytest.raises(ConfigError, match="read_store: "):
        dt.App("memory://", read_store="postgresql://replica/database")
    with pytest.raises(ConfigError, match="read_store: "):
        dt.App("postgresql://primary/database", read_store="sqlite:///copy.db")


async def test_blocking_calls_use_the_replica(app: dt.App, replica: ReplicaServer) -> None:
    job = await app.submit("work", delay="1h")
    await eventually(lambda: has_listed(app, job))
    replica.pause_replay()
    try:
        await app.submit("work", delay="1h")
        found = await asyncio.to_thread(app.sync.jobs)
        assert [one.id for one in found] == [job.id]
    finally:
        replica.resume_replay()
        app.sync.close()


async def test_service_shows_the_lag(app: dt.App, replica: ReplicaServer) -> None:
    async with client_of(build(app, Settings(), ring=RING)) as client:
        ready, stats, metrics = [await client.get(path) for path in ("/readyz", "/api/v1/stats", "/metrics")]
        replica.pause_replay()
        try:
            paused = await client.post("/api/v1/queues/new/pause")
        finally:
            replica.resume_replay()
    assert (paused.status_code, paused.json()["paused"]) == (200, True), "the replica does not know it yet"
    assert ready.json()["remark"] is None
    assert stats.json()["read_store"]["remark"] is None
    assert stats.json()["read_store"]["lag_ms"] >= 0
    assert "duetime_read_store_used 1" in metrics.text
    assert "duetime_read_store_lag_seconds " in metrics.text


# -- without servers


def at_place(log: int, at: Micros) -> StoreIdentity:
    return StoreIdentity("data", log=log, log_at=at)


class _Server:
    """A store of which only its identity is asked."""

    def __init__(self, log: int, at: Micros) -> None:
        self.now = at_place(log, at)

    async def open(self) -> None: ...

    async def identity(self) -> StoreIdentity:
        return self.now


def read_store_of(store: _Server, replica: _Server) -> ReadStore:
    return ReadStore(
        cast(Store, store),
        cast(Store, replica),
        dt.App("memory://").clock,
        Observers([]),
    )


async def lag_of(reads: ReadStore) -> float | None:
    reads._cache = TtlCache(dt.App("memory://").clock, 0)
    return (await reads.state()).lag_ms


async def test_idle_time_is_not_lag() -> None:
    """The last commit is an hour old. Then the store writes something, which is under way to the replica."""
    store, replica = _Server(10, 2 * HOUR), _Server(10, HOUR)
    reads = read_store_of(store, replica)
    assert await lag_of(reads) == 0
    store.now = at_place(11, 2 * HOUR + SECOND)
    assert await lag_of(reads) == 1_000
    replica.now = at_place(11, 2 * HOUR)
    assert await lag_of(reads) == 0


async def test_replica_that_became_another_database_is_not_used() -> None:
    store, replica = _Server(10, HOUR), _Server(10, HOUR)
    reads = read_store_of(store, replica)
    await reads.open()
    replica.now = replace(at_place(10, HOUR), data="other")
    assert "not a copy of the store's database" in str((await reads.state()).remark)
    with pytest.raises(ConfigError, match="read_store: it is not a copy"):
        await reads.open()


def test_only_verbs_that_read_go_to_the_replica() -> None:
    assert all(hasattr(Store, verb) for verb in READING)
    writes = {"add_jobs", "add_unique", "cancel_job", "reschedule_job", "resolve_dead_job", "set_queue"}
    own = {"get_job", "list_attempts"}  # of a job that the caller may just have written
    verbs = {name for name in vars(JobStore) if not name.startswith("_")}
    assert verbs - READING == writes | own
