"""Jobs that Redis assigns to a worker that has offered a slot, without a claim."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from redis import Redis
from redis.client import PubSub

from duetime.engine.fetch.claimer import MAX_HELD
from duetime.model.hint import DoneHint, Hint, JobHint
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, JobDraft, State
from duetime.model.lease import NodeId
from duetime.model.limit import Queue
from duetime.store import Lane, OfNode
from duetime.stores.redis import RedisStore, notifier
from duetime.stores.redis.address import parse
from duetime.testing.conformance.drafts import (
    HOUR,
    LANE,
    QUEUE,
    add,
    announce,
    claim,
    claim_one,
    job,
    jobs,
    joined,
    request,
    settle,
    stored,
    success,
)

pytestmark = pytest.mark.server


class Worker:
    """A process that listens and claims like an idle worker."""

    def __init__(self, store: RedisStore, node: NodeId) -> None:
        self.store = store
        self.node = node
        self.hints: asyncio.Queue[Hint] = asyncio.Queue()
        store.subscribe(self.hints.put_nowait)

    async def hinted(self) -> JobHint:
        """The next hint about a job of one lane."""
        async with asyncio.timeout(5):
            while True:
                hint = await self.hints.get()
                if isinstance(hint, JobHint) and hint.queue != "*":
                    return hint

    async def running(self) -> list[Claimed]:
        return await self.store.running_jobs(OfNode(self.node), MAX_HELD)


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[RedisStore]:
    """Of the process that submits."""
    store = RedisStore.from_url(redis_url)
    await store.migrate()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def client(redis_url: str) -> Iterator[Redis]:
    with Redis.from_url(redis_url.partition("?")[0]) as client:
        yield client


@pytest.fixture
def keys(redis_url: str) -> str:
    return parse(redis_url).keys


@asynccontextmanager
async def working(store: RedisStore) -> AsyncIterator[Worker]:
    handle = store.clone()
    await handle.open()
    try:
        yield Worker(handle, await joined(handle))
    finally:
        await handle.close()


@pytest.fixture
async def worker(store: RedisStore, client: Redis, keys: str) -> AsyncIterator[Worker]:
    async with working(store) as worker:
        await offers(worker, client, keys)
        yield worker


async def offers(worker: Worker, client: Redis, keys: str, *lanes: Lane) -> None:
    """Claim until the server has the offer: the connection that listens may just have been opened."""
    async with asyncio.timeout(5):
        while client.zscore(f"{keys}offers", str(worker.node)) is None:
            assert await claim(worker.store, request(worker.node, *lanes)) == []
            await asyncio.sleep(0.005)
    while not worker.hints.empty():
        worker.hints.get_nowait()


async def due(store: RedisStore, **changes: object) -> JobDraft:
    return job(await store.time() - 1, **changes)


async def test_lone_job_starts_on_the_worker_that_offers(store: RedisStore, worker: Worker) -> None:
    draft = await add(store, await due(store))
    assert (await worker.hinted()).queue == QUEUE
    assert (await stored(store, draft.id)).state is State.RUNNING
    assert await claim(store, request(await joined(store))) == []
    claimed = await claim_one(worker.store, worker.node)
    assert (claimed.id, claimed.attempt, claimed.payload) == (draft.id, 1, b"{}")
    await settle(worker.store, [success(claimed, await store.time())])
    assert (await stored(store, draft.id)).state is State.SUCCEEDED


@pytest.fixture
def seldom_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never time for the second hint of a process."""
    monkeypatch.setattr(notifier, "MIN_INTERVAL", HOUR)


@pytest.mark.usefixtures("seldom_hints")
async def test_lone_jobs_are_assigned_however_soon_one_follows_the_other(
    store: RedisStore, worker: Worker, client: Redis, keys: str
) -> None:
    for _ in range(3):
        draft = await add(store, await due(store))
        assert (await stored(store, draft.id)).state is State.RUNNING
        await worker.hinted()
        assert (await claim_one(worker.store, worker.node)).id == draft.id
        await offers(worker, client, keys)


@pytest.mark.usefixtures("seldom_hints")
async def test_callers_hear_of_the_end_however_soon_one_follows_the_other(
    store: RedisStore, worker: Worker, client: Redis, keys: str
) -> None:
    ended: asyncio.Queue[Hint] = asyncio.Queue()
    store.subscribe(lambda hint: ended.put_nowait(hint) if isinstance(hint, DoneHint) else None)
    for _ in range(3):
        draft = await add(store, await due(store))
        await announce(store, draft.id)
        await worker.hinted()
        claimed = await claim_one(worker.store, worker.node)
        await settle(worker.store, [success(claimed, await store.time())])
        assert await asyncio.wait_for(ended.get(), 5) == DoneHint(draft.id)
        await offers(worker, client, keys)


async def test_claim_after_an_assignment_finds_the_other_jobs(store: RedisStore, worker: Worker) -> None:
    first = await add(store, await due(store))
    others = [await add(store, await due(store)) for _ in range(3)]
    found = await claim(worker.store, request(worker.node))
    assert {row.id for row in found} <= {first.id, *(draft.id for draft in others)}
    await worker.hinted()
    found += await claim(worker.store, request(worker.node))
    assert sorted(row.id for row in found) == sorted([first.id, *(draft.id for draft in others)])


async def test_oldest_offer_is_used_first(
    store: RedisStore, worker: Worker, client: Redis, keys: str
) -> None:
    async with working(store) as younger:
        await offers(younger, client, keys)
        draft = await add(store, await due(store))
        await worker.hinted()
        assert [row.id for row in await claim(worker.store, request(worker.node))] == [draft.id]
        assert await claim(younger.store, request(younger.node)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "other"},
        {"queue": "other"},
        {"priority": 6},
        {"tenant": "other"},
        {"limit_key": "key"},
        {"target": "tas"},
    ],
    ids=str,
)
async def test_job_that_the_offer_does_not_cover_is_only_hinted_at(
    store: RedisStore, worker: Worker, changes: dict[str, object]
) -> None:
    draft = await add(store, await due(store, **changes))
    await worker.hinted()
    assert (await stored(store, draft.id, draft.tenant)).state is State.PENDING


async def test_job_that_is_due_later_is_only_hinted_at(store: RedisStore, worker: Worker) -> None:
    draft = await add(store, job(await store.time() + HOUR))
    await worker.hinted()
    assert (await stored(store, draft.id)).state is State.PENDING


async def test_jobs_of_a_batch_are_only_hinted_at(store: RedisStore, worker: Worker) -> None:
    drafts = jobs(3, await store.time() - SECOND)
    await store.add_jobs(drafts)
    await worker.hinted()
    assert {(await stored(store, draft.id)).state for draft in drafts} == {State.PENDING}


@pytest.mark.parametrize("queue", [Queue(QUEUE, paused=True), Queue(QUEUE, max_running=5)], ids=repr)
async def test_job_of_a_restricted_queue_is_only_hinted_at(
    store: RedisStore, worker: Worker, queue: Queue
) -> None:
    await store.set_queue(queue)
    draft = await add(store, await due(store))
    await worker.hinted()
    assert (await stored(store, draft.id)).state is State.PENDING


async def test_job_of_a_client_whose_clock_is_a_little_ahead_is_assigned(
    store: RedisStore, worker: Worker
) -> None:
    """The worker waits for its time, as for that of a job claimed ahead of it."""
    draft = await add(store, job(await store.time() + 8_000))
    assert (await worker.hinted()).due_at == draft.due_at
    claimed = await claim_one(worker.store, worker.node)
    assert (claimed.id, claimed.due_at) == (draft.id, draft.due_at)
    assert (await stored(store, draft.id)).state is State.RUNNING


async def test_nothing_is_assigned_to_a_dead_process(store: RedisStore, client: Redis, keys: str) -> None:
    async with working(store) as worker:
        await offers(worker, client, keys)
    draft = await add(store, await due(store))
    assert (await stored(store, draft.id)).state is State.PENDING
    assert client.zcard(f"{keys}offers") == 0
    assert [row.id for row in await claim(store, request(await joined(store)))] == [draft.id]


async def test_nothing_is_assigned_to_a_node_without_a_lease(
    store: RedisStore, worker: Worker, client: Redis, keys: str
) -> None:
    assert await worker.store.beat(worker.node, 1)
    client.zrem(f"{keys}offers", str(worker.node))
    await claim(worker.store, request(worker.node))
    draft = await add(store, await due(store))
    await worker.hinted()
    assert (await stored(store, draft.id)).state is State.PENDING


async def test_job_that_no_claim_takes_is_given_back(store: RedisStore, worker: Worker) -> None:
    draft = await add(store, await due(store))
    assert (await stored(store, draft.id)).state is State.RUNNING
    async with asyncio.timeout(5):
        while (await stored(store, draft.id)).state is State.RUNNING:
            await asyncio.sleep(0.01)
    row = await stored(store, draft.id)
    assert (row.state, row.failures, row.losses) == (State.PENDING, 0, 0)
    assert await store.list_attempts(draft.id) == []
    again = await claim_one(store, await joined(store))
    assert (again.id, again.attempt) == (draft.id, 2)


async def test_node_that_leaves_gives_its_job_back_first(store: RedisStore, worker: Worker) -> None:
    draft = await add(store, await due(store))
    await worker.hinted()
    await worker.store.leave(worker.node)
    assert (await stored(store, draft.id)).state is State.PENDING


async def test_assigned_job_is_not_listed_until_a_claim_takes_it(store: RedisStore, worker: Worker) -> None:
    """The claimer releases what it does not know, and would do so before it sees the job."""
    draft = await add(store, await due(store))
    await worker.hinted()
    assert await worker.running() == []
    await claim_one(worker.store, worker.node)
    assert [row.id for row in await worker.running()] == [draft.id]


@pytest.fixture
def stray(client: Redis, keys: str, worker: Worker) -> Iterator[PubSub]:
    """Gets the messages for a worker whose process does not."""
    with client.pubsub() as stray:  # type: ignore[no-untyped-call]
        stray.subscribe(f"{keys}hints:{worker.node}")
        assert stray.get_message(timeout=5)
        yield stray


async def test_lost_message_is_replaced_by_the_next_offer(
    store: RedisStore, worker: Worker, stray: PubSub
) -> None:
    await worker.store.close()
    draft = await add(store, await due(store))
    assert stray.get_message(timeout=5)
    handle = worker.store.clone()
    await handle.open()
    again = Worker(handle, worker.node)
    try:
        async with asyncio.timeout(5):
            while not (found := await claim(handle, request(again.node))):
                await asyncio.sleep(0.005)
        assert [(row.id, row.attempt) for row in found] == [(draft.id, 1)]
    finally:
        await handle.close()


async def test_job_that_comes_in_after_it_was_listed_is_given_back(
    store: RedisStore, worker: Worker, stray: PubSub
) -> None:
    """Its caller may have released it: then it runs elsewhere under the next attempt."""
    await worker.store.close()
    draft = await add(store, await due(store))
    handle = worker.store.clone()
    await handle.open()
    again = Worker(handle, worker.node)
    try:
        assert [row.id for row in await again.running()] == [draft.id]
        async with asyncio.timeout(5):
            while not (found := await claim(handle, request(again.node, LANE))):
                await asyncio.sleep(0.005)
        assert [(row.id, row.attempt) for row in found] == [(draft.id, 2)]
    finally:
        await handle.close()
