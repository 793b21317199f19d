"""The lists of jobs in Redis: they agree with the jobs, and cost little memory and few reads."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from duetime.model.job import FINAL, Job, JobDraft, JobFilter, State
from duetime.model.search import selects
from duetime.stores.redis import RedisStore
from duetime.stores.redis.lists import WIDTH, bound_of, entries_of, list_name
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    QUEUE,
    TENANT,
    claim,
    death,
    job,
    jobs,
    joined,
    limit,
    request,
    retry_later,
    set_limits,
    success,
)

MAX_ENTRIES = 24
KINDS = "LSDRCK"
DECISIONS = [success, success, death, retry_later]
FILTERS: list[dict[str, Any]] = [
    {},
    *({"states": frozenset({state})} for state in State),
    {"states": frozenset({State.PENDING, State.RUNNING})},
    {"states": FINAL},
    {"undisposed": True},
    {"schedule": "one"},
    {"schedule": "one", "states": frozenset({State.PENDING, State.DEAD})},
    {"queue": "queue", "owner": "two"},
]


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisStore]:
    store = RedisStore.from_url(redis_url)
    await store.migrate()
    await store.open()
    yield store
    await store.close()


class Walk:
    """Random changes of a store, as callers and workers make them."""

    def __init__(self, store: RedisStore, random: Random) -> None:
        self._store = store
        self._random = random
        self.drafts: list[JobDraft] = []

    async def step(self, now: int, node: Any) -> None:
        await self._random.choice(
            [self._add, self._add, self._work, self._work, self._cancel, self._resolve]
        )(now, node)

    async def _add(self, now: int, _: Any) -> None:
        spread = self._random.choice([0, 1, 2_000, HOUR, DAY])
        fires = [now - self._random.randint(0, spread) for _ in range(self._random.choice([1, 3, 40, 90]))]
        schedules = self._random.choice([None, None, "one", "two"])
        drafts = [job(fire, schedule=schedules, owner=schedules) for fire in fires]
        await self._store.add_jobs(drafts)
        self.drafts += drafts

    async def _work(self, now: int, node: Any) -> None:
        claimed, _ = await self._store.claim(request(node, room=self._random.choice([1, 30, 200])))
        self._random.shuffle(claimed)
        decide = self._random.choice(DECISIONS)
        kept = self._random.randint(0, len(claimed) // 4)  # go on running
        await self._store.settle([decide(row, now) for row in claimed[kept:]])

    async def _cancel(self, _now: int, _node: Any) -> None:
        for draft in self._random.sample(self.drafts, min(3, len(self.drafts))):
            await self._store.cancel_job(TENANT, draft.id, "")

    async def _resolve(self, _now: int, _node: Any) -> None:
        for found in await self._store.list_jobs(JobFilter(TENANT, undisposed=True), 4):
            await self._store.resolve_dead_job(TENANT, found.id, None)


async def everything(store: RedisStore, drafts: list[JobDraft]) -> list[Job]:
    found = [await store.get_job(TENANT, draft.id) for draft in drafts]
    known = [one for one in found if one is not None]
    return sorted(known, key=lambda one: (one.fire_time, one.id), reverse=True)


async def pages(store: RedisStore, wanted: JobFilter, size: int) -> list[Job]:
    found: list[Job] = []
    before = None
    while page := await store.list_jobs(wanted, size, before):
        found += page
        before = page[-1].id
    return found


async def chunks(store: RedisStore) -> list[bytes]:
    key = f"{store._connection.address.keys}lists"
    found: list[bytes] = await store._connection.command("ZRANGE", key, 0, -1)
    return found


@pytest.mark.parametrize("seed", range(4))
async def test_lists_and_counts_agree_with_the_jobs(store: RedisStore, seed: int) -> None:
    walk = Walk(store, Random(seed))
    node, now = await joined(store), await store.time()
    for _ in range(40):
        await walk.step(now, node)
    known = await everything(store, walk.drafts)
    for changes in FILTERS:
        wanted = JobFilter(TENANT, **changes)
        expected = [one for one in known if selects(wanted, one, one)]
        assert await pages(store, wanted, 37) == expected, changes
        assert await store.count_jobs(wanted, 100_000) == len(expected), changes
    middle = known[len(known) // 2].fire_time
    pending = JobFilter(TENANT, frozenset({State.PENDING}))
    for wanted in (
        JobFilter(TENANT, fire_after=middle),
        JobFilter(TENANT, fire_before=middle),
        replace(pending, due_before=await store.time()),
        replace(pending, due_before=middle),
        replace(pending, due_after=now + 1),
    ):
        expected = [one for one in known if selects(wanted, one, one)]
        assert await pages(store, wanted, 50) == expected
        assert await store.count_jobs(wanted, 100_000) == len(expected)


async def test_jobs_that_wait_for_a_permit_are_counted_as_due(store: RedisStore) -> None:
    node, now = await joined(store), await store.time()
    await set_limits(store, limit(max_running=1))
    await store.add_jobs(jobs(30, now - HOUR, limit_key="key"))
    await store.add_jobs(jobs(5, now + HOUR, limit_key="key"))
    assert len(await claim(store, request(node))) == 1
    pending = JobFilter(TENANT, frozenset({State.PENDING}), queue=QUEUE)
    assert await store.count_jobs(pending, 100) == 34
    assert await store.count_jobs(replace(pending, due_before=await store.time()), 100) == 29
    assert await store.count_jobs(replace(pending, due_before=now - HOUR + 10), 100) == 9


@pytest.mark.parametrize("seed", range(2))
async def test_a_chunk_is_bounded_and_has_its_own_range(store: RedisStore, seed: int) -> None:
    walk = Walk(store, Random(seed))
    node, now = await joined(store), await store.time()
    for _ in range(40):
        await walk.step(now, node)
    found, seen = await chunks(store), 0
    for kind in KINDS:
        for schedule in (None, "one", "two"):
            name = list_name(kind, TENANT, schedule)
            own = [
                chunk for chunk in found if chunk.startswith(name) and (len(chunk) - len(name)) % WIDTH == 0
            ]
            last = b""
            for chunk in own:
                entries = [*entries_of(name, chunk)]
                assert 1 <= len(entries) <= MAX_ENTRIES
                assert last < min(entries)
                assert bound_of(name, chunk) <= min(entries)
                assert len({*entries}) == len(entries)
                last = max(entries)
            seen += len(own)
    assert seen == len(found)


async def test_pruned_jobs_leave_nothing(store: RedisStore) -> None:
    node, now = await joined(store), await store.time()
    await store.add_jobs([*jobs(300, now - DAY), *(job(now - DAY, schedule="one") for _ in range(40))])
    while claimed := (await store.claim(request(node, room=100))).jobs:
        await store.settle([death(row, now - HOUR) for row in claimed])
    assert await store.prune(now) == 340
    assert await chunks(store) == []
    left = await store._connection.command("KEYS", f"{store._connection.address.keys}*")
    named = {key.decode().rpartition("}:")[2].partition(":")[0] for key in left}
    assert not named & {"jobs", "past", "attempts", "finished", "lists", "running", "due"}


async def calls(store: RedisStore) -> int:
    """How many commands the server has executed, those of functions included."""
    text = (await store._connection.command("INFO", "commandstats")).decode()
    return sum(
        int(line.partition("calls=")[2].partition(",")[0]) for line in text.splitlines() if "calls=" in line
    )


async def cost(store: RedisStore, wanted: JobFilter) -> int:
    before = await calls(store)
    assert len(await store.list_jobs(wanted, 5)) == 5
    assert await store.count_jobs(wanted, 5) == 5
    return await calls(store) - before


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"undisposed": True},
        {"schedule": "rare"},
        *(
            {"states": frozenset({state})}
            for state in (State.RUNNING, State.SUCCEEDED, State.DEAD, State.CANCELLED)
        ),
    ],
)
async def test_a_page_costs_the_same_in_a_large_store(store: RedisStore, changes: dict[str, Any]) -> None:
    """The jobs that the filter selects are the oldest: none is among the first that a search would find."""
    node, now = await joined(store), await store.time()
    old = [job(now - 9 * DAY + at, schedule="rare") for at in range(25)]
    await store.add_jobs(old)
    claimed, _ = await store.claim(request(node, room=15))
    await store.settle(
        [success(row, now) for row in claimed[:5]] + [death(row, now) for row in claimed[5:10]]
    )
    for draft in old[15:20]:
        await store.cancel_job(TENANT, draft.id, "")
    wanted = JobFilter(TENANT, **changes)
    small = await cost(store, wanted)
    kind = next(iter(wanted.states)) if wanted.states else None
    await store.add_jobs(jobs(1_500, now - DAY))
    if kind is not State.SUCCEEDED:
        claimed, _ = await store.claim(request(node, room=1_000))
        await store.settle([success(row, now) for row in claimed if row.schedule is None])
    assert await cost(store, wanted) <= 2 * small


async def test_memory_of_a_pending_job(store: RedisStore) -> None:
    """So that a million of them need less than 350 MB."""
    now, number = await store.time(), 31_250  # as a million, a little less than a power of two

    async def used() -> int:
        text = (await store._connection.command("INFO", "memory")).decode()
        return int(text.partition("used_memory:")[2].split()[0])

    await store.add_jobs(jobs(10, now))
    before = await used()
    for at in range(0, number, 1_250):
        await store.add_jobs(jobs(1_250, now + HOUR + 500 * at, payload=b'{"number": 123456}'))
    assert (await used() - before) / number < 350
