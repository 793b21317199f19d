"""settle: compare on (id, attempt), then set. A late finisher changes nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from duetime.model.instant import SECOND
from duetime.model.job import Attempt, Ending, Job, JobFilter, State
from duetime.store import Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    TENANT,
    Decide,
    add,
    claim,
    claim_one,
    death,
    ended,
    job,
    jobs,
    joined,
    live_counts,
    loss,
    new_id,
    release,
    request,
    retry,
    retry_later,
    settle,
    started,
    stored,
    success,
)


class SettleConformance:
    async def test_a_success_moves_to_the_past(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        draft = job(now)
        claimed = await started(store, node, draft)
        live = await stored(store, draft.id)
        assert await settle(store, [success(claimed, now + 9, started_at=now + 3, result=b'"done"')]) == []
        expected = Job(
            *draft,
            state=State.SUCCEEDED,
            attempt=1,
            failures=0,
            losses=0,
            node=node,
            cancel_requested=False,
            checkpoint=None,
            progress=None,
            created_at=live.created_at,
            claimed_at=live.claimed_at,
            started_at=now + 3,
            finished_at=now + 9,
            result=b'"done"',
            error=None,
            disposition=None,
        )
        assert await stored(store, draft.id) == expected
        assert await live_counts(store) == {}
        assert await claim(store, request(node)) == []

    @pytest.mark.parametrize(
        ("state", "ending"),
        [(State.DEAD, Ending.FAILED), (State.DEAD, Ending.LOST), (State.CANCELLED, Ending.CANCELLED)],
    )
    async def test_other_ends_are_final_too(self, store: Store, state: State, ending: Ending) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert (
            await settle(store, [ended(claimed, state, ending, now, failures=3, losses=2, error="reason 🦄")])
            == []
        )
        found = await stored(store, claimed.id)
        assert (found.state, found.failures, found.losses, found.error, found.finished_at) == (
            state,
            3,
            2,
            "reason 🦄",
            now,
        )
        assert await claim(store, request(node, prefetch=DAY)) == []

    async def test_pending_goes_back(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await settle(store, [retry(claimed, now + HOUR, now, failures=2, losses=1)]) == []
        found = await stored(store, claimed.id)
        assert (found.state, found.due_at, found.failures, found.losses, found.node) == (
            State.PENDING,
            now + HOUR,
            2,
            1,
            None,
        )
        assert (found.attempt, found.fire_time, found.finished_at) == (1, now, None)
        assert await claim(store, request(node)) == []
        assert (await store.due_jobs(request(node))).next_at == now + HOUR

    async def test_a_retry_that_is_due_is_claimed_with_its_counts(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await settle(store, [retry(claimed, now - 1, now, failures=2, losses=1)]) == []
        again = await claim_one(store, node)
        assert again == claimed._replace(attempt=2, due_at=now - 1, failures=2, losses=1)

    async def test_a_cancel_request_outlives_the_attempt(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        await store.cancel_job(TENANT, claimed.id, "stop")
        assert await settle(store, [release(claimed, now)]) == []
        assert (await claim_one(store, node)).cancel_requested

    async def test_nothing_to_settle(self, store: Store) -> None:
        assert await settle(store, []) == []

    @pytest.mark.parametrize(
        "result", [b"", bytes(range(256)), b"\x00\xff" * 500_000], ids=["empty", "all bytes", "1 MB"]
    )
    async def test_result_bytes_are_kept(self, store: Store, result: bytes) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await settle(store, [success(claimed, now, result=result)]) == []
        assert (await stored(store, claimed.id)).result == result

    async def test_a_batch_may_hold_every_kind(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(5, now - HOUR))
        claimed = await claim(store, request(node))
        makers: list[Decide] = [success, death, retry_later, release, loss]
        assert await settle(store, [make(row, now) for make, row in zip(makers, claimed, strict=True)]) == []
        states = [(await stored(store, row.id)).state for row in claimed]
        assert states == [State.SUCCEEDED, State.DEAD, State.PENDING, State.PENDING, State.PENDING]

    async def test_successes_with_a_note_keep_it(self, store: Store) -> None:
        """Among many others, and alone: a task succeeded, and its result could not be stored."""
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(202, now - DAY))
        claimed = await claim(store, request(node, room=202))
        noted = [
            success(one, now)._replace(error=f"note {number}") if number in (0, 201) else success(one, now)
            for number, one in enumerate(claimed)
        ]
        assert await settle(store, noted[1:]) == []
        assert await settle(store, noted[:1]) == []
        found = [(await stored(store, one.id)).error for one in (claimed[0], claimed[1], claimed[201])]
        assert found == ["note 0", None, "note 201"]

    async def test_many_are_settled_at_once(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(5_000, now - DAY))
        claimed = await claim(store, request(node, room=5_000))
        assert len(claimed) == 5_000
        assert await settle(store, [success(row, now) for row in claimed]) == []
        assert await live_counts(store) == {}
        assert (
            len(await store.list_jobs(JobFilter(TENANT, states=frozenset({State.SUCCEEDED})), 10_000))
            == 5_000
        )

    async def test_a_large_batch_may_hold_every_kind_and_several_attempts(self, store: Store) -> None:
        """Stores may write what is alike apart from the rest."""
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(600, now - HOUR))
        first = await claim(store, request(node, room=600))
        assert await settle(store, [retry(row, now - HOUR, now) for row in first[:50]]) == []
        again = await claim(store, request(node, room=600))
        late = first[:50]
        batch = [
            *(success(row, now) for row in late),
            *(success(row, now, result=b"%d" % at) for at, row in enumerate(again)),
            *(success(row, now) for row in first[50:500]),
            *(death(row, now) for row in first[500:]),
            success(first[50], now),  # told twice
        ]
        assert sorted(await settle(store, batch)) == sorted(row.id for row in late)
        assert await live_counts(store) == {}
        listed = await store.list_jobs(JobFilter(TENANT), 1_000)
        assert Counter((found.state, found.attempt) for found in listed) == {
            (State.SUCCEEDED, 1): 450,
            (State.SUCCEEDED, 2): 50,
            (State.DEAD, 1): 100,
        }
        results = {found.id: found.result for found in listed}
        assert [results[row.id] for row in again] == [b"%d" % at for at in range(50)]

    async def test_dead_node_may_finish_jobs_that_no_node_took_over(self, store: Store) -> None:
        """The attempt number decides, not the lease."""
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        await store.leave(node)
        assert await settle(store, [success(claimed, now)]) == []


class FencingConformance:
    async def test_a_late_finisher_is_refused(self, store: Store) -> None:
        """I6, B1: its job was taken from it and runs elsewhere."""
        slow, quick, now = await joined(store), await joined(store), await store.time()
        stale = await started(store, slow, job(now))
        assert await settle(store, [loss(stale, now)]) == []
        fresh = await claim_one(store, quick)
        before = await stored(store, stale.id)
        for late in (
            success(stale, now),
            death(stale, now),
            retry(stale, now + HOUR, now),
            release(stale, now),
        ):
            assert await settle(store, [late]) == [stale.id]
        assert await stored(store, stale.id) == before
        assert await settle(store, [success(fresh, now)]) == []

    async def test_a_late_finisher_is_refused_while_the_job_waits(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        stale = await started(store, node, job(now))
        assert await settle(store, [loss(stale, now, due_at=now + HOUR)]) == []
        assert await settle(store, [success(stale, now)]) == [stale.id]
        assert (await stored(store, stale.id)).state is State.PENDING

    async def test_a_late_finisher_is_refused_after_the_end(self, store: Store) -> None:
        """I3: at most one completion."""
        node, now = await joined(store), await store.time()
        stale = await started(store, node, job(now))
        assert await settle(store, [loss(stale, now)]) == []
        fresh = await claim_one(store, node)
        assert await settle(store, [success(fresh, now, result=b"fresh")]) == []
        assert await settle(store, [success(stale, now, result=b"stale")]) == [stale.id]
        assert (await stored(store, stale.id)).result == b"fresh"

    async def test_another_decision_about_an_ended_attempt_is_refused(self, store: Store) -> None:
        """The reaper gave the job up as dead; its worker lived and must learn that its success did not
        count."""
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await settle(store, [death(claimed, now)]) == []
        assert await settle(store, [success(claimed, now)]) == [claimed.id]
        assert (await stored(store, claimed.id)).state is State.DEAD

    async def test_what_never_ran_is_refused(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        waiting = await add(store, job(now))
        unknown = new_id(now)
        invented = [success(claimed, now)._replace(id=waiting.id), success(claimed, now)._replace(id=unknown)]
        assert sorted(await settle(store, invented)) == sorted([waiting.id, unknown])
        assert await settle(store, [success(claimed, now)._replace(id=waiting.id, attempt=0)]) == [waiting.id]
        assert (await stored(store, waiting.id)).state is State.PENDING

    async def test_a_number_from_the_future_is_refused(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await settle(store, [success(claimed, now)._replace(attempt=2)]) == [claimed.id]
        assert (await stored(store, claimed.id)).state is State.RUNNING

    async def test_of_a_mixed_batch_only_the_stale_are_refused(self, store: Store) -> None:
        """A thousand settled by a late node of which 300 were taken over meanwhile."""
        late, quick, now = await joined(store), await joined(store), await store.time()
        await store.add_jobs(jobs(1_000, now - DAY))
        held = await claim(store, request(late, room=1_000))
        taken = held[::3][:300]
        assert await settle(store, [loss(row, now) for row in taken]) == []
        fresh = await claim(store, request(quick, room=1_000))
        assert len(fresh) == 300
        refused = await settle(store, [success(row, now, result=b"late") for row in held])
        assert sorted(refused) == sorted(row.id for row in taken)
        assert await settle(store, [success(row, now, result=b"fresh") for row in fresh]) == []
        listed = await store.list_jobs(JobFilter(TENANT), 2_000)
        assert {found.state for found in listed} == {State.SUCCEEDED}
        assert {found.id for found in listed if found.result == b"fresh"} == {row.id for row in taken}
        assert len(listed) == 1_000

    async def test_a_mixed_batch_of_other_endings(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(40, now - DAY))
        held = await claim(store, request(node))
        taken = held[::4]
        assert await settle(store, [loss(row, now, due_at=now + HOUR) for row in taken]) == []
        makers: list[Decide] = [death, retry_later, success, death]
        decisions = [makers[position % 4](row, now) for position, row in enumerate(held)]
        assert sorted(await settle(store, decisions)) == sorted(row.id for row in taken)


class RepeatConformance:
    """C3: the reply was lost, so the worker sends its decision again."""

    @pytest.mark.parametrize("make", [success, death, retry_later, release, loss])
    async def test_a_decision_that_was_written_is_not_refused(self, store: Store, make: Decide) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        decision = make(claimed, now)
        assert await settle(store, [decision]) == []
        before = await stored(store, claimed.id), await store.list_attempts(claimed.id)
        assert await settle(store, [decision]) == []
        assert (await stored(store, claimed.id), await store.list_attempts(claimed.id)) == before

    async def test_a_batch_of_which_half_was_written(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(100, now - DAY))
        claimed = await claim(store, request(node))
        decisions = [
            success(row, now) if position % 2 else retry(row, now + HOUR, now)
            for position, row in enumerate(claimed)
        ]
        assert await settle(store, decisions[:50]) == []
        assert await settle(store, decisions) == []
        [count] = (await live_counts(store)).values()
        assert (count.pending, count.running) == (50, 0)

    async def test_a_decision_twice_in_one_batch(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await settle(store, [success(claimed, now), success(claimed, now)]) == []
        assert len(await store.list_jobs(JobFilter(TENANT), 10)) == 1


class AttemptConformance:
    async def test_a_success_leaves_none(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await settle(store, [success(claimed, now)]) == []
        assert await store.list_attempts(claimed.id) == []

    async def test_bad_endings_are_listed_oldest_first(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await add(store, job(now))
        expected = []
        for ending in (Ending.FAILED, Ending.TIMED_OUT, Ending.LOST, Ending.RELEASED, Ending.CANCELLED):
            claimed = await claim_one(store, node)
            finished_at = now + claimed.attempt * SECOND
            state = State.CANCELLED if ending is Ending.CANCELLED else State.PENDING
            kept = b'{"status":503}' if ending is Ending.FAILED else None
            decision = ended(claimed, state, ending, finished_at, error=f"was {ending}", result=kept)
            assert await settle(store, [decision]) == []
            expected.append(
                Attempt(
                    claimed.id,
                    claimed.attempt,
                    node,
                    ending,
                    finished_at - 1_000,
                    finished_at,
                    f"was {ending}",
                    kept,
                )
            )
            assert await store.list_attempts(claimed.id) == expected

    async def test_one_given_back_unstarted_leaves_none(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await settle(store, [release(claimed, now)]) == []
        assert await store.list_attempts(claimed.id) == []

    async def test_one_lost_unstarted_is_remembered(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await settle(store, [loss(claimed, now)]) == []
        expected = Attempt(claimed.id, 1, node, Ending.LOST, None, now, "its worker died")
        assert await store.list_attempts(claimed.id) == [expected]

    async def test_a_refused_decision_leaves_none(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await settle(store, [death(claimed, now)._replace(attempt=7)]) == [claimed.id]
        assert await store.list_attempts(claimed.id) == []
