"""Jobs handed over to a worker outside: they run on under their attempt number, and no node has them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from duetime.model.hint import DoneHint
from duetime.model.job import Attempt, CancelReply, Ending, JobFilter, State
from duetime.model.limit import Queue, QueueCounts
from duetime.store import AttemptUpdate, OfDeadNodes, OfNode, OnceReply, PastDeadline, Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    MINUTE,
    QUEUE,
    TENANT,
    Decide,
    add,
    announce,
    claim,
    claim_one,
    death,
    ended,
    extend_deadline,
    hand_over,
    handed_over,
    job,
    joined,
    limit,
    live_counts,
    loss,
    new_id,
    of_schedule,
    request,
    retry_later,
    settle,
    started,
    stored,
    success,
)
from duetime.testing.conformance.hints import Ear


class ExternalJobConformance:
    async def test_it_runs_on_and_no_node_has_it(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now - HOUR))
        before = await stored(store, claimed.id)
        assert await settle(store, [hand_over(claimed, now + HOUR, now)]) == []
        assert await stored(store, claimed.id) == replace(before, node=None, due_at=now + HOUR)
        assert await store.running_jobs(OfNode(node), 1_000) == []
        assert [(known.id, known.running) for known in await store.nodes(counted=True)] == [(node, 0)]
        assert await store.list_attempts(claimed.id) == []
        assert await claim(store, request(node, prefetch=DAY)) == []
        assert (await store.due_jobs(request(node))).next_at is None
        assert await live_counts(store) == {QUEUE: QueueCounts(0, 0, 1)}
        assert [
            found.id
            for found in await store.list_jobs(JobFilter(TENANT, states=frozenset({State.RUNNING})), 10)
        ] == [claimed.id]
        assert await store.list_jobs(JobFilter(TENANT, node=node), 10) == []

    @pytest.mark.parametrize("make", [success, death, retry_later])
    async def test_caller_that_knows_the_attempt_ends_it(self, store: Store, make: Decide) -> None:
        node, now = await joined(store), await store.time()
        claimed = await handed_over(store, node, job(now), now + HOUR)
        decision = make(claimed, now)
        assert await settle(store, [decision]) == []
        assert await settle(store, [decision]) == []
        found = await stored(store, claimed.id)
        assert (found.state, found.attempt, found.failures, found.node) == (
            decision.state,
            1,
            decision.failures,
            None,
        )
        assert await store.running_jobs(PastDeadline(), 10) == []
        expected = [Attempt(claimed.id, 1, None, decision.ending, decision.started_at, now, decision.error)]
        assert await store.list_attempts(claimed.id) == ([] if make is success else expected)

    async def test_a_wrong_attempt_number_ends_nothing(self, store: Store) -> None:
        """B4: also of one handed over the number decides."""
        node, now = await joined(store), await store.time()
        claimed = await handed_over(store, node, job(now), now + HOUR)
        assert await settle(store, [success(claimed, now)._replace(attempt=2)]) == [claimed.id]
        assert (await stored(store, claimed.id)).state is State.RUNNING

    async def test_the_next_attempt_is_a_worker_s_again(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        first = await handed_over(store, node, job(now - HOUR), now + HOUR)
        assert await settle(store, [retry_later(first, now)._replace(due_at=now)]) == []
        second = await claim_one(store, node)
        assert (second.id, second.attempt, second.due_at) == (first.id, 2, now)
        assert await settle(store, [success(first, now)]) == [first.id]
        assert await store.running_jobs(OfNode(node), 1_000) == [second]

    async def test_handing_over_twice_moves_no_deadline(self, store: Store) -> None:
        """C3: the reply was lost; the worker outside has had its deadline moved meanwhile."""
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        decision = hand_over(claimed, now + HOUR, now)
        assert await settle(store, [decision]) == []
        assert await settle(store, [decision]) == []
        assert await extend_deadline(store, claimed.id, 1, now + 2 * HOUR)
        assert await settle(store, [decision, decision]) == []
        assert (await stored(store, claimed.id)).due_at == now + 2 * HOUR

    async def test_what_does_not_run_is_not_handed_over(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        done = await started(store, node, job(now))
        assert await settle(store, [success(done, now)]) == []
        waiting = await add(store, job(now))
        stale = await started(store, node, job(now - HOUR, queue="other"))
        assert await settle(store, [loss(stale, now)]) == []
        wrong = [
            hand_over(done, now, now),
            hand_over(done, now, now)._replace(id=waiting.id),
            hand_over(stale, now, now),
        ]
        assert sorted(await settle(store, wrong)) == sorted([done.id, waiting.id, stale.id])
        assert (await stored(store, waiting.id)).state is State.PENDING
        assert await store.running_jobs(PastDeadline(), 10) == []

    async def test_a_mixed_batch_with_handovers(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = [await started(store, node, job(now + at)) for at in range(9)]
        decisions = [
            (success(row, now), retry_later(row, now), hand_over(row, now + at, now))[at % 3]
            for at, row in enumerate(claimed)
        ]
        assert await settle(store, decisions) == []
        assert await settle(store, decisions) == []
        states = [(await stored(store, row.id)).state for row in claimed]
        assert states == [State.SUCCEEDED, State.PENDING, State.RUNNING] * 3

    async def test_it_may_save_and_mark(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await handed_over(store, node, job(now), now + HOUR)
        assert await store.save_progress([AttemptUpdate(claimed.id, 1, b"so far", b"half")]) == []
        assert await store.take_once(claimed.id, 1, "mail", new_id(1)) is OnceReply.TAKEN
        found = await stored(store, claimed.id)
        assert (found.checkpoint, found.progress) == (b"so far", b"half")

    async def test_it_is_no_orphan(self, store: Store) -> None:
        """Its node may leave, be declared dead and be forgotten."""
        node, other, now = await joined(store), await joined(store), await store.time()
        claimed = await handed_over(store, node, job(now), now + HOUR)
        await store.leave(node)
        assert await store.expire_nodes(other) == []
        assert await store.running_jobs(OfDeadNodes(), 10) == []
        await store.prune(now + DAY)
        assert [known.id for known in await store.nodes()] == [other]
        assert await settle(store, [success(claimed, now)]) == []

    async def test_who_waits_hears_of_its_end(self, store: Store) -> None:
        node, now, ear = await joined(store), await store.time(), Ear()
        store.subscribe(ear)
        awaited: set[DoneHint] = set()

        async def end_another() -> None:
            claimed = await handed_over(store, node, job(now), now + HOUR)
            awaited.add(DoneHint(claimed.id))
            assert await announce(store, claimed.id)
            assert await settle(store, [success(claimed, now)]) == []

        assert await ear.hears(end_another, lambda hint: hint in awaited), ear.heard


class DeadlineConformance:
    async def test_overdue_jobs_oldest_deadline_first(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        for age in (2, 3, 1, -1):
            await handed_over(store, node, job(now, owner=f"{age} h"), now - age * HOUR)
        await started(store, node, job(now - DAY))
        late = await store.running_jobs(PastDeadline(), 10)
        assert [row.due_at for row in late] == [now - age * HOUR for age in (3, 2, 1)]
        assert await store.running_jobs(PastDeadline(), 2) == late[:2]
        assert (
            await settle(
                store, [ended(row, State.DEAD, Ending.TIMED_OUT, now, error="no report") for row in late]
            )
            == []
        )
        assert await store.running_jobs(PastDeadline(), 10) == []

    async def test_an_overdue_job_is_shown_as_it_was_claimed(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        details = {
            "target": "@http",
            "target_spec": b"{1}",
            "payload": b"\xff",
            "policies": b"{2}",
            "limit_key": "key",
        }
        claimed = await handed_over(store, node, job(now - HOUR, **details), now - MINUTE)
        assert await store.running_jobs(PastDeadline(), 10) == [claimed]

    async def test_a_deadline_that_was_moved(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await handed_over(store, node, job(now), now - HOUR)
        assert await extend_deadline(store, claimed.id, 1, now + HOUR)
        assert await store.running_jobs(PastDeadline(), 10) == []
        assert (await stored(store, claimed.id)).due_at == now + HOUR
        assert await extend_deadline(store, claimed.id, 1, now - MINUTE)
        assert [row.due_at for row in await store.running_jobs(PastDeadline(), 10)] == [now - MINUTE]

    async def test_nothing_else_has_a_deadline(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        running, waiting = await started(store, node, job(now)), await add(store, job(now + HOUR))
        outside = await handed_over(store, node, job(now), now + HOUR)
        done = await handed_over(store, node, job(now), now + HOUR)
        assert await settle(store, [success(done, now)]) == []
        for job_id, attempt in (
            (running.id, 1),
            (waiting.id, 0),
            (outside.id, 2),
            (done.id, 1),
            (new_id(0), 1),
        ):
            assert not await extend_deadline(store, job_id, attempt, now - HOUR)
        assert (await stored(store, running.id)).due_at == now
        assert await store.running_jobs(PastDeadline(), 10) == []

    async def test_a_report_and_the_deadline_race(self, store: Store, second_store: Store) -> None:
        """I-7: one of them ends it, the other is told."""
        node, now = await joined(store), await store.time()
        for _ in range(10):
            claimed = await handed_over(store, node, job(now), now - HOUR)
            late = ended(claimed, State.DEAD, Ending.TIMED_OUT, now, error="no report")
            answers = await asyncio.gather(
                settle(store, [success(claimed, now)]), settle(second_store, [late])
            )
            assert sorted(answers) == [[], [claimed.id]]


class ExternalLimitConformance:
    async def test_its_gate_counts_it(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        one = (limit(max_running=1),)
        first = await handed_over(store, node, job(now - HOUR, limit_key="a"), now + HOUR)
        second = await add(store, job(now - HOUR, limit_key="a"))
        assert await claim(store, request(node), limits=one) == []
        assert await settle(store, [success(first, now)]) == []
        assert (await claim_one(store, node, limits=one)).id == second.id

    async def test_its_gate_counts_it_once(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        two = (limit(max_running=2),)
        claimed = await handed_over(store, node, job(now - HOUR, limit_key="a"), now + HOUR)
        await store.add_jobs([job(now - HOUR, limit_key="a") for _ in range(3)])
        assert len(await claim(store, request(node), limits=two)) == 1
        assert await settle(store, [retry_later(claimed, now)]) == []
        assert len(await claim(store, request(node), limits=two)) == 1

    async def test_its_queue_counts_it(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue(QUEUE, max_running=2))
        outside = await handed_over(store, node, job(now - HOUR), now + HOUR)
        await store.add_jobs([job(now - HOUR) for _ in range(3)])
        assert len(await claim(store, request(node))) == 1
        assert await claim(store, request(node)) == []
        assert await settle(store, [success(outside, now)]) == []
        assert len(await claim(store, request(node))) == 1

    async def test_its_schedule_waits_for_it(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        outside = await handed_over(store, node, of_schedule(schedule_id, now, "queue"), now + HOUR)
        following = await add(store, of_schedule(schedule_id, now, "queue"))
        assert await claim(store, request(node)) == []
        assert await settle(store, [success(outside, now)]) == []
        assert (await claim_one(store, node)).id == following.id

    async def test_cancel_previous_marks_it_and_waits(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        outside = await handed_over(
            store, node, of_schedule(schedule_id, now, "cancel_previous"), now - MINUTE
        )
        await add(store, of_schedule(schedule_id, now, "cancel_previous"))
        assert await claim(store, request(node)) == []
        assert (await stored(store, outside.id)).cancel_requested
        assert [row.cancel_requested for row in await store.running_jobs(PastDeadline(), 10)] == [True]


class ExternalCancelConformance:
    async def test_it_ends_as_cancelled_at_once(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await handed_over(store, node, job(now), now - HOUR)
        assert await store.cancel_job(TENANT, claimed.id, "not wanted") is CancelReply.CANCELLED
        found = await stored(store, claimed.id)
        assert (found.state, found.error, found.attempt, found.node) == (
            State.CANCELLED,
            "not wanted",
            1,
            None,
        )
        assert found.finished_at is not None
        assert now <= found.finished_at <= await store.time()
        [attempt] = await store.list_attempts(claimed.id)
        assert attempt == Attempt(
            claimed.id, 1, None, Ending.CANCELLED, None, found.finished_at, "not wanted"
        )
        assert await store.running_jobs(PastDeadline(), 10) == []
        assert await store.cancel_job(TENANT, claimed.id, "again") is CancelReply.FINAL
        assert await settle(store, [success(claimed, now)]) == [claimed.id]
        assert not await extend_deadline(store, claimed.id, 1, now)

    async def test_another_tenant_cannot_cancel_it(self, store: Store) -> None:
        """I16."""
        node, now = await joined(store), await store.time()
        claimed = await handed_over(store, node, job(now), now + HOUR)
        assert await store.cancel_job("other", claimed.id, "") is CancelReply.MISSING
        assert (await stored(store, claimed.id)).state is State.RUNNING

    async def test_it_frees_its_gate_and_its_schedule(self, store: Store) -> None:
        node, now, schedule_id = await joined(store), await store.time(), new_id(0)
        first = await handed_over(
            store, node, of_schedule(schedule_id, now, "queue", limit_key="a"), now + HOUR
        )
        second = await add(store, of_schedule(schedule_id, now, "queue", limit_key="a"))
        bounds = (limit(max_running=1),)
        assert await claim(store, request(node), limits=bounds) == []
        assert await store.cancel_job(TENANT, first.id, "") is CancelReply.CANCELLED
        assert (await claim_one(store, node, limits=bounds)).id == second.id

    async def test_who_waits_hears_that_it_was_cancelled(self, store: Store) -> None:
        node, now, ear = await joined(store), await store.time(), Ear()
        store.subscribe(ear)
        awaited: set[DoneHint] = set()

        async def cancel_another() -> None:
            claimed = await handed_over(store, node, job(now), now + HOUR)
            awaited.add(DoneHint(claimed.id))
            assert await announce(store, claimed.id)
            await store.cancel_job(TENANT, claimed.id, "")

        assert await ear.hears(cancel_another, lambda hint: hint in awaited), ear.heard

    async def test_a_cancellation_and_a_report_race(self, store: Store, second_store: Store) -> None:
        """I-7: one final state, and both are told which."""
        node, now = await joined(store), await store.time()
        for _ in range(10):
            claimed = await handed_over(store, node, job(now), now + HOUR)
            refused, reply = await asyncio.gather(
                settle(store, [success(claimed, now)]), second_store.cancel_job(TENANT, claimed.id, "")
            )
            state = (await stored(store, claimed.id)).state
            assert (refused, reply, state) in [
                ([], CancelReply.FINAL, State.SUCCEEDED),
                ([claimed.id], CancelReply.CANCELLED, State.CANCELLED),
            ]
