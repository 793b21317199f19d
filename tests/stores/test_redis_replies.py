"""Replies of Redis that get lost: the store repeats the call, and the first one counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from duetime.engine.plan.leases import read_leases
from duetime.model.hint import Hint, JobHint
from duetime.model.job import JobFilter
from duetime.model.schedule import Change
from duetime.store import ScheduleState
from duetime.stores.redis import RedisStore
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    MINUTE,
    TENANT,
    claim,
    claim_one,
    fired,
    firing,
    job,
    joined,
    known,
    put,
    request,
    schedule,
    settle,
    success,
    take_leases,
)
from tests.servers.brokers import RedisServer
from tests.servers.proxy import Proxy


@pytest.fixture
async def proxy(redis_server: RedisServer) -> AsyncIterator[Proxy]:
    async with Proxy(redis_server.port) as proxy:
        yield proxy


@pytest.fixture
async def store(redis_server: RedisServer, redis_url: str, proxy: Proxy) -> AsyncIterator[RedisStore]:
    """A handle whose way to the server leads through the proxy."""
    store = RedisStore.from_url(redis_url.replace(f":{redis_server.port}", f":{proxy.port}"))
    await store.migrate()
    await store.open()
    yield store
    await store.close()


def lose_reply(proxy: Proxy, verb: str) -> None:
    proxy.drop_after(f"_{verb}\r\n".encode(), reply=b"")


async def test_schedule_is_created_once(store: RedisStore, proxy: Proxy) -> None:
    now = await store.time()
    await store.get_schedule(TENANT, "schedule")  # loads the functions
    lose_reply(proxy, "write_schedule")
    made = await store.write_schedule(TENANT, "schedule", ScheduleState(schedule(), now + HOUR), 0, "ann")
    assert proxy.dropped.is_set()
    assert made == await known(store)
    assert [row.version for row in await store.list_versions(TENANT, "schedule", 10)] == [1]


async def test_schedule_is_replaced_once(store: RedisStore, proxy: Proxy) -> None:
    now = await store.time()
    made = await put(store, schedule(), now + HOUR)
    await fired(store, made, now + DAY, now + MINUTE)
    lose_reply(proxy, "write_schedule")
    state = ScheduleState(schedule(payload=b"new"), now + 2 * HOUR)
    changed = await store.write_schedule(TENANT, "schedule", state, 1, "ann")
    assert proxy.dropped.is_set()
    assert changed is not None
    assert changed == await known(store)
    assert (changed.version, changed.runs, changed.draft.payload) == (2, 0, b"new")


async def test_schedule_is_removed_once(store: RedisStore, proxy: Proxy) -> None:
    now = await store.time()
    made = await put(store, schedule(), now - HOUR)
    await fired(store, made, now + DAY, now - HOUR)
    lose_reply(proxy, "write_schedule")
    gone = await store.write_schedule(TENANT, "schedule", None, 1, "ann")
    assert proxy.dropped.is_set()
    assert gone is not None
    assert (gone.id, gone.version, gone.runs, gone.last_fire_time) == (made.id, 1, 1, now - HOUR)
    assert await store.get_schedule(TENANT, "schedule") is None
    rows = await store.list_versions(TENANT, "schedule", 10)
    assert [(row.version, row.change) for row in rows] == [(2, Change.REMOVED), (1, Change.CREATED)]


async def test_fire_is_applied_once(store: RedisStore, proxy: Proxy) -> None:
    now = await store.time()
    made = await put(store, schedule(), now)
    step = firing(made, now + HOUR, now)
    lose_reply(proxy, "fire")
    assert await store.fire([step]) == 0  # as if another planner had been first
    assert proxy.dropped.is_set()
    assert (await known(store)).runs == 1
    assert len(await store.list_jobs(JobFilter(TENANT), 10)) == 1


async def test_leases_are_held_once(store: RedisStore, proxy: Proxy) -> None:
    node = await joined(store)
    await take_leases(store, node, ["b"])
    lose_reply(proxy, "replace_record")
    assert await take_leases(store, node, ["a", "b"]) == ["a", "b"]
    assert proxy.dropped.is_set()
    assert [(lease.name, lease.holder, lease.token) for lease in await read_leases(store)] == [
        ("a", node, 1),
        ("b", node, 1),
    ]


async def test_jobs_are_stored_once(store: RedisStore, proxy: Proxy) -> None:
    now = await store.time()
    drafts = [job(now), job(now, schedule="one"), job(now, unique_key="key")]
    await store.list_jobs(JobFilter(TENANT), 1)
    lose_reply(proxy, "add")
    assert await store.add_jobs(drafts) == [draft.id for draft in drafts]
    assert proxy.dropped.is_set()
    assert len(await store.list_jobs(JobFilter(TENANT), 10)) == 3
    assert await store.count_jobs(JobFilter(TENANT), 10) == 3


async def test_one_job_is_stored_once_and_also_not_again_when_it_has_finished(
    store: RedisStore, proxy: Proxy
) -> None:
    node, now = await joined(store), await store.time()
    draft = job(now)
    lose_reply(proxy, "add")
    assert await store.add_jobs([draft]) == [draft.id]
    assert proxy.dropped.is_set()
    assert await store.count_jobs(JobFilter(TENANT), 10) == 1
    assert await settle(store, [success(await claim_one(store, node), now)]) == []
    assert await store.add_jobs([draft], is_retry=True) == [draft.id]
    assert await claim(store, request(node)) == []


async def test_hint_comes_with_a_job_that_is_stored_alone(store: RedisStore) -> None:
    hints: asyncio.Queue[Hint] = asyncio.Queue()
    store.subscribe(hints.put_nowait)
    async with asyncio.timeout(30):
        assert await hints.get() == JobHint("*", 0, 0)  # it listens now
        now = await store.time()
        draft = job(now)
        await store.add_jobs([draft])
        while (hint := await hints.get()) != JobHint(draft.queue, draft.priority, now, draft.tenant):
            assert not isinstance(hint, JobHint)
