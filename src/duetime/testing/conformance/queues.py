"""What an operator says about a queue: paused, so many at once, so many in a period."""

from __future__ import annotations

import asyncio

import pytest

from duetime.model.hint import Hint, JobHint
from duetime.model.instant import SECOND
from duetime.model.job import State
from duetime.model.limit import Queue, Rate
from duetime.store import Lane, Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    LANE,
    PRIORITY,
    QUEUE,
    add,
    claim,
    claim_one,
    job,
    jobs,
    joined,
    limit,
    new_id,
    of_schedule,
    passed,
    record_start,
    release,
    request,
    settle,
    started,
    stored,
    success,
)
from duetime.testing.conformance.hints import Ear

OTHER = Lane("other", PRIORITY, 0)


def look_at_the_queue(hint: Hint) -> bool:
    return isinstance(hint, JobHint) and hint.queue in ("*", QUEUE)


class QueueConformance:
    async def test_what_is_said_comes_back(self, store: Store, second_store: Store) -> None:
        await add(store, job(0, queue="b"))
        said = Queue("c", True, "note: 🦄", 12_345, 7, Rate(3, HOUR))
        await store.set_queue(said)
        assert await store.queues() == [Queue("b"), said]
        assert await second_store.queues() == [Queue("b"), said]

    async def test_a_queue_may_be_set_before_its_first_job(self, store: Store) -> None:
        await store.set_queue(Queue(QUEUE, max_running=1))
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(2, now - DAY))
        assert await store.queues() == [Queue(QUEUE, max_running=1)]
        await claim_one(store, node)

    async def test_what_is_said_replaces_what_was_said(self, store: Store) -> None:
        await store.set_queue(Queue(QUEUE, True, "note", 1, 2, Rate(3, 4)))
        await store.set_queue(Queue(QUEUE))
        assert await store.queues() == [Queue(QUEUE)]

    async def test_what_is_said_is_not_pruned(self, store: Store) -> None:
        await store.set_queue(Queue(QUEUE, max_running=2))
        await store.prune(await store.time() + DAY)
        assert await store.queues() == [Queue(QUEUE, max_running=2)]

    async def test_a_change_is_announced(self, store: Store) -> None:
        ear = Ear()
        store.subscribe(ear)
        assert await ear.hears(lambda: store.set_queue(Queue(QUEUE, max_running=1)), look_at_the_queue), (
            ear.heard
        )


class QueuePauseConformance:
    async def test_nothing_of_a_paused_queue_is_claimed(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        drafts = [job(now), job(now, limit_key="a"), of_schedule(new_id(0), now, "queue")]
        await store.add_jobs([*drafts, job(now, queue="other")])
        await store.set_queue(Queue(QUEUE, paused=True))
        assert (await claim_one(store, node, lanes=(LANE, OTHER))).queue == "other"
        assert await claim(store, request(node, sweep=True)) == []
        await store.set_queue(Queue(QUEUE))
        assert sorted(row.id for row in await claim(store, request(node))) == sorted(
            draft.id for draft in drafts
        )

    async def test_another_handle_keeps_to_it(self, store: Store, second_store: Store) -> None:
        node = await joined(second_store)
        await add(store, job(await store.time()))
        assert await claim(second_store, request(node, targets=("none of ours",))) == []
        await store.set_queue(Queue(QUEUE, paused=True))
        assert await claim(second_store, request(node)) == []
        await second_store.set_queue(Queue(QUEUE))
        assert len(await claim(store, request(node))) == 1

    async def test_what_runs_goes_on(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        running = await started(store, node, job(now))
        await store.set_queue(Queue(QUEUE, paused=True))
        assert await record_start(store, running.id, running.attempt)
        assert await settle(store, [release(running, now)]) == []
        assert await claim(store, request(node)) == []

    async def test_a_blocked_fire_is_not_judged_while_its_queue_is_paused(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        await started(store, node, of_schedule(schedule_id, now, "skip"))
        await store.set_queue(Queue(QUEUE, paused=True))
        waiting = await add(store, of_schedule(schedule_id, now, "skip"))
        assert await claim(store, request(node)) == []
        assert (await stored(store, waiting.id)).state is State.PENDING

    async def test_a_paused_queue_has_nothing_ahead(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [job(now + HOUR), job(now + HOUR, limit_key="a"), job(now + 2 * HOUR, queue="other")]
        )
        await store.set_queue(Queue(QUEUE, paused=True))
        assert (await store.due_jobs(request(node))).next_at is None
        assert (await store.due_jobs(request(node, LANE, OTHER))).next_at == now + 2 * HOUR

    async def test_a_paused_queue_accepts_jobs(self, store: Store) -> None:
        await store.set_queue(Queue(QUEUE, paused=True))
        draft = await add(store, job(await store.time()))
        assert (await stored(store, draft.id)).state is State.PENDING


class QueueLimitConformance:
    async def test_no_more_run_at_once_than_was_said(self, store: Store, second_store: Store) -> None:
        node, other, now = await joined(store), await joined(second_store), await store.time()
        await store.add_jobs(drafts := jobs(10, now - DAY))
        await store.set_queue(Queue(QUEUE, max_running=3))
        first = await claim(store, request(node, room=2))
        second = await claim(second_store, request(other))
        assert [row.id for row in first + second] == [draft.id for draft in drafts[:3]]
        assert await claim(store, request(node)) == []
        assert await settle(store, [success(first[0], now)]) == []
        assert (await claim_one(store, node)).id == drafts[3].id

    async def test_jobs_of_every_kind_count(self, store: Store) -> None:
        """With a key or without, exclusive or not, urgent or not."""
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, max_running=4))
        for number in range(3):
            kinds = [
                job(now - 9, limit_key=f"{number}"),
                job(now - 9),
                of_schedule(new_id(0), now - 9, "queue"),
                job(now - 9, priority=9),
            ]
            await store.add_jobs(kinds)
        lanes = (Lane(QUEUE, 9, 0), LANE)
        claimed = [
            row
            for _ in range(3)
            for row in await claim(store, request(node, *lanes, room=3), limits=(limit(max_running=1),))
        ]
        assert len(claimed) == 4
        assert [row.priority for row in claimed[:3]] == [9, 9, 9]

    async def test_a_limited_queue_keeps_its_order(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, max_running=2))
        await store.add_jobs([job(now - age * SECOND) for age in (3, 5, 1, 4, 2)])
        order = []
        for _ in range(5):
            claimed = await claim_one(store, node, room=1)
            order.append((now - claimed.due_at) // SECOND)
            assert await settle(store, [success(claimed, now)]) == []
        assert order == [5, 4, 3, 2, 1]

    async def test_other_queues_are_not_limited(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, max_running=1))
        await store.add_jobs([*jobs(5, now - DAY), *jobs(5, now - DAY, queue="other")])
        claimed = await claim(store, request(node, LANE, OTHER))
        assert sorted(row.queue for row in claimed) == ["other"] * 5 + [QUEUE]

    async def test_a_gate_within_a_limited_queue(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, max_running=3))
        await store.add_jobs([*jobs(5, now - DAY, limit_key="a"), *jobs(5, now - HOUR, limit_key="b")])
        claimed = await claim(store, request(node), limits=(limit(max_running=2),))
        assert sorted(row.limit_key or "" for row in claimed) in (["a", "a", "b"], ["a", "b", "b"])

    async def test_lowering_the_limit_takes_nothing_back(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY))
        claimed = await claim(store, request(node, room=4))
        await store.set_queue(Queue(QUEUE, max_running=2))
        assert await claim(store, request(node)) == []
        assert await settle(store, [success(row, now) for row in claimed[:3]]) == []
        assert len(await claim(store, request(node))) == 1
        await store.set_queue(Queue(QUEUE))
        assert len(await claim(store, request(node))) == 5

    async def test_two_handles_share_the_places_of_a_queue(self, store: Store, second_store: Store) -> None:
        node, other, now = await joined(store), await joined(second_store), await store.time()
        await store.add_jobs([*jobs(30, now - DAY), *jobs(30, now - DAY, limit_key="a")])
        await store.set_queue(Queue(QUEUE, max_running=5))
        pairs = [(store, node), (second_store, other)] * 10
        answers = await asyncio.gather(*(claim(handle, request(who, room=2)) for handle, who in pairs))
        assert sum(map(len, answers)) <= 5
        assert sum(map(len, answers)) + len(await claim(store, request(node))) == 5


class QueueRateConformance:
    @pytest.mark.parametrize("key", [None, "a"])
    async def test_no_more_start_than_was_said(self, store: Store, key: str | None) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY, limit_key=key))
        await store.set_queue(Queue(QUEUE, rate=Rate(3, HOUR)))
        claimed = [row for _ in range(3) for row in await claim(store, request(node, room=2))]
        assert len(claimed) == 3
        assert await settle(store, [success(row, now) for row in claimed]) == []
        assert await claim(store, request(node)) == []

    async def test_they_are_earned_back(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(10, now - DAY))
        await store.set_queue(Queue(QUEUE, rate=Rate(2, SECOND // 10)))
        assert len(await claim(store, request(node))) == 2
        await passed(store, await store.time() + SECOND // 20)
        assert 1 <= len(await claim(store, request(node))) <= 2

    async def test_next_due_knows_of_it(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(5, now - DAY))
        await store.set_queue(Queue(QUEUE, rate=Rate(1, HOUR)))
        before = await store.time()
        await claim_one(store, node)
        found = (await store.due_jobs(request(node))).next_at
        assert found is not None
        assert before + HOUR <= found <= await store.time() + HOUR

    async def test_the_rate_is_one_for_all_priorities(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, rate=Rate(2, HOUR)))
        await store.add_jobs(
            [job(now - DAY, priority=1), job(now - DAY, priority=9), job(now - DAY, priority=5)]
        )
        lanes = tuple(Lane(QUEUE, priority, 0) for priority in (9, 5, 1))
        assert [row.priority for row in await claim(store, request(node, *lanes))] == [9, 5]
