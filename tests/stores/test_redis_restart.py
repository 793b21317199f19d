"""What a Redis server keeps over a kill, and what it still does when its memory is full."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator

import pytest

from duetime.engine.plan.leases import read_leases
from duetime.errors import StoreFull
from duetime.model.job import JobFilter
from duetime.store import DueSchedules, ScheduleState
from duetime.stores.redis import RedisStore
from duetime.testing.conformance.drafts import (
    ALL_SEGMENTS,
    DAY,
    HOUR,
    TENANT,
    claim,
    finished,
    fired,
    firing,
    job,
    jobs,
    joined,
    known,
    pause_schedule,
    put,
    remove_schedule,
    request,
    schedule,
    settle,
    success,
    take_leases,
)
from tests.servers.brokers import RedisServer


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """Not the one that all tests share."""
    with RedisServer() as server:
        yield server


@pytest.fixture
async def store(server: RedisServer, redis_url: str) -> AsyncIterator[RedisStore]:
    store = RedisStore.from_url(f"{server.url}?{redis_url.partition('?')[2]}")
    await store.migrate()
    await store.open()
    yield store
    await store.close()


async def everything(store: RedisStore) -> list[object]:
    """What callers can read."""
    return [
        await store.list_jobs(JobFilter(TENANT), 100),
        await store.count_jobs(JobFilter(TENANT), 100),
        [await known(store, name) for name in ("a", "b")],
        [await store.list_versions(TENANT, name, 10) for name in ("a", "b", "gone")],
        await store.list_schedules(DueSchedules(ALL_SEGMENTS, await store.time() + 2 * DAY), 10),
        await store.nodes(),
        await read_leases(store),
        await store.list_records("kind", None, 10),
        await store.list_events(0, 10),
    ]


async def test_a_killed_server_keeps_everything(store: RedisStore, server: RedisServer) -> None:
    node, now = await joined(store), await store.time()
    gone = await joined(store)
    await take_leases(store, gone, ["leader", "segment/1"])
    await store.leave(gone)
    await take_leases(store, node, ["leader"])
    made = await put(store, schedule("a"), now - HOUR)
    await fired(store, made, now + HOUR, now - HOUR, now)
    await put(store, schedule("b"), now + HOUR)
    await pause_schedule(store, TENANT, "b", "holidays", "ann")
    await put(store, schedule("gone"), now + HOUR)
    await remove_schedule(store, TENANT, "gone", "bob")
    await finished(store, node, job(now - DAY), now)
    await store.put_record("kind", TENANT, "key", b"value", expires_at=now + DAY)
    await store.add_events([b"one", b"two"])
    before = await everything(store)

    server.stop(signal.SIGKILL)
    server.start()

    assert await everything(store) == before
    assert await joined(store) > gone
    assert await store.put_record("kind", TENANT, "other", b"") > 1
    await store.add_events([b"three"])
    assert (await store.list_events(2, 10)).events == [(3, b"three")]
    again = await put(store, schedule("gone"), now + HOUR)
    assert again.version == 3
    assert await store.fire([firing(await known(store, "a"), now + DAY, now + HOUR)]) == 1


async def test_full_memory_refuses_what_is_new_and_lets_nodes_free_it(store: RedisStore) -> None:
    node, gone, now = await joined(store), await joined(store), await store.time()
    made = await put(store, schedule("a"), now)
    await store.add_jobs(jobs(300, now - DAY))
    await take_leases(store, gone, ["leader"])
    await store.leave(gone)
    claimed = await claim(store, request(node, room=200))
    assert await settle(store, [success(row, now - HOUR) for row in claimed[:100]]) == []
    before = await store.list_jobs(JobFilter(TENANT), 1_000)
    await store._connection.command("CONFIG", "SET", "maxmemory", 1)
    try:
        for refused in (
            store.add_jobs([job(now)]),
            store.fire([firing(made, now + HOUR, now)]),
            store.put_record("kind", TENANT, "key", b"value"),
            store.write_schedule(TENANT, "b", ScheduleState(schedule("b"), now), 0),
            store.add_events([b"event"]),
        ):
            with pytest.raises(StoreFull, match="maxmemory"):
                await refused
        assert await store.list_jobs(JobFilter(TENANT), 1_000) == before
        assert await known(store, "a") == made
        assert (await store.beat(node, HOUR)).alive
        other = await joined(store)
        assert await take_leases(store, other, ["leader"]) == ["leader"]
        assert await settle(store, [success(row, now) for row in claimed[100:]]) == []
        assert len(await claim(store, request(other, room=200))) == 100
        assert await store.prune(now) == 100
        await store.leave(other)
        assert await store.expire_nodes(node) == []
    finally:
        await store._connection.command("CONFIG", "SET", "maxmemory", 0)
    assert await store.count_jobs(JobFilter(TENANT), 1_000) == 200
