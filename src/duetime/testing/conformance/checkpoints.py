"""save and mark: what a running attempt keeps for itself and for the next one."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from duetime.model.instant import Micros
from duetime.model.job import Claimed, State
from duetime.model.settle import Settlement
from duetime.store import AttemptUpdate, OfDeadNodes, OfNode, OnceReply, Store
from duetime.testing.conformance.drafts import (
    DAY,
    Decide,
    add,
    claim,
    claim_one,
    death,
    finished,
    job,
    jobs,
    joined,
    loss,
    new_id,
    release,
    request,
    retry,
    settle,
    started,
    stored,
    success,
)


def try_again(claimed: Claimed, now: Micros) -> Settlement:
    return retry(claimed, now, now)


AGAIN = {"retry": try_again, "release": release, "loss": loss}


class CheckpointConformance:
    async def test_checkpoint_and_progress_are_kept(self, store: Store, second_store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await store.save_progress([AttemptUpdate(claimed.id, 1, b"checkpoint", b"progress")]) == []
        found = await stored(second_store, claimed.id)
        assert (found.state, found.checkpoint, found.progress) == (State.RUNNING, b"checkpoint", b"progress")

    async def test_what_a_note_leaves_out_stays(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        for note in (
            AttemptUpdate(claimed.id, 1, b"1", b"a"),
            AttemptUpdate(claimed.id, 1, None, b"b"),
            AttemptUpdate(claimed.id, 1, b"2", None),
        ):
            assert await store.save_progress([note]) == []
        found = await stored(store, claimed.id)
        assert (found.checkpoint, found.progress) == (b"2", b"b")

    async def test_several_notes_of_one_job_are_applied_in_order(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed, other = await started(store, node, job(now)), await started(store, node, job(now))
        notes = [
            AttemptUpdate(claimed.id, 1, b"1", b"a"),
            AttemptUpdate(other.id, 1, b"other", None),
            AttemptUpdate(claimed.id, 1, b"2", None),
            AttemptUpdate(claimed.id, 1, None, b"b"),
            AttemptUpdate(claimed.id, 1, b"3", None),
        ]
        assert await store.save_progress(notes) == []
        found = await stored(store, claimed.id)
        assert (found.checkpoint, found.progress) == (b"3", b"b")
        assert (await stored(store, other.id)).checkpoint == b"other"

    @pytest.mark.parametrize("decide", AGAIN.values(), ids=AGAIN)
    async def test_the_next_attempt_gets_the_checkpoint(self, store: Store, decide: Decide) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert claimed.checkpoint is None
        assert await store.save_progress([AttemptUpdate(claimed.id, 1, b"so far", b"half")]) == []
        assert await settle(store, [decide(claimed, now)]) == []
        following = await claim_one(store, node)
        assert (following.attempt, following.checkpoint) == (2, b"so far")
        assert await store.running_jobs(OfNode(node), 1_000) == [following]

    async def test_an_orphan_has_its_checkpoint(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await store.save_progress([AttemptUpdate(claimed.id, 1, b"so far", None)]) == []
        await store.leave(node)
        assert await store.running_jobs(OfDeadNodes(), 10) == [claimed._replace(checkpoint=b"so far")]

    @pytest.mark.parametrize("decide", [success, death])
    async def test_a_finished_job_shows_what_was_kept(self, store: Store, decide: Decide) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await store.save_progress([AttemptUpdate(claimed.id, 1, b"so far", b"all")]) == []
        assert await settle(store, [decide(claimed, now)]) == []
        found = await stored(store, claimed.id)
        assert (found.checkpoint, found.progress) == (b"so far", b"all")

    async def test_attempt_that_lost_its_job_saves_nothing(self, store: Store) -> None:
        """B4: the attempt number decides."""
        node, now = await joined(store), await store.time()
        stale = await started(store, node, job(now))
        late = AttemptUpdate(stale.id, stale.attempt, b"late", b"late")
        assert await settle(store, [loss(stale, now)]) == []
        assert await store.save_progress([late]) == [stale.id]
        fresh = await claim_one(store, node)
        assert await store.save_progress([late, AttemptUpdate(fresh.id, fresh.attempt, b"fresh", None)]) == [
            stale.id
        ]
        found = await stored(store, stale.id)
        assert (found.checkpoint, found.progress) == (b"fresh", None)
        assert await settle(store, [success(fresh, now)]) == []
        assert await store.save_progress([AttemptUpdate(fresh.id, fresh.attempt, b"after", None)]) == [
            fresh.id
        ]
        assert (await stored(store, fresh.id)).checkpoint == b"fresh"

    async def test_a_refused_note_does_not_keep_the_others_out(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed, waiting = await started(store, node, job(now)), await add(store, job(now + DAY))
        unknown = new_id(0)
        notes = [
            AttemptUpdate(waiting.id, 0, b"x", None),
            AttemptUpdate(claimed.id, 1, b"y", None),
            AttemptUpdate(unknown, 1, b"z", None),
        ]
        assert sorted(await store.save_progress(notes)) == sorted([waiting.id, unknown])
        assert (await stored(store, claimed.id)).checkpoint == b"y"
        assert (await stored(store, waiting.id)).checkpoint is None

    async def test_saving_twice_is_fine(self, store: Store) -> None:
        """C3: the reply was lost."""
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        note = AttemptUpdate(claimed.id, 1, b"so far", None)
        assert [await store.save_progress([note]), await store.save_progress([note])] == [[], []]

    async def test_nothing_to_save(self, store: Store) -> None:
        assert await store.save_progress([]) == []

    @pytest.mark.parametrize(
        "value", [b"", bytes(range(256)), b"\x00\xff" * 100_000], ids=["empty", "all bytes", "200 kB"]
    )
    async def test_any_bytes_are_kept(self, store: Store, value: bytes) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await store.save_progress([AttemptUpdate(claimed.id, 1, value, value)]) == []
        found = await stored(store, claimed.id)
        assert (found.checkpoint, found.progress) == (value, value)

    async def test_many_jobs_at_once(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(jobs(300, now - DAY))
        claimed = await claim(store, request(node, room=300))
        notes = [AttemptUpdate(row.id, row.attempt, str(row.id).encode(), None) for row in claimed]
        assert await store.save_progress(notes) == []
        held = await store.running_jobs(OfNode(node), 1_000)
        assert len(held) == 300
        assert all(row.checkpoint == str(row.id).encode() for row in held)


class OnceConformance:
    """Once for all attempts of a job."""

    async def test_only_the_first_caller_takes_it(self, store: Store, second_store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await store.take_once(claimed.id, 1, "mail", new_id(1)) is OnceReply.TAKEN
        assert await store.take_once(claimed.id, 1, "mail", new_id(1)) is OnceReply.KNOWN
        assert await second_store.take_once(claimed.id, 1, "mail", new_id(1)) is OnceReply.KNOWN

    async def test_repeating_a_call_gives_the_same_answer(self, store: Store) -> None:
        """C3: the reply was lost."""
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        taken, known = new_id(1), new_id(1)
        for _ in range(3):
            assert await store.take_once(claimed.id, 1, "mail", taken) is OnceReply.TAKEN
            assert await store.take_once(claimed.id, 1, "mail", known) is OnceReply.KNOWN

    async def test_keys_and_jobs_do_not_meddle(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        first, second = await started(store, node, job(now)), await started(store, node, job(now))
        pairs = [(first, "a"), (first, "b"), (second, "a"), (first, ""), (first, "A"), (second, "🦄 it's")]
        assert {await store.take_once(row.id, 1, key, new_id(1)) for row, key in pairs} == {OnceReply.TAKEN}

    @pytest.mark.parametrize("decide", AGAIN.values(), ids=AGAIN)
    async def test_the_next_attempt_knows_it(self, store: Store, decide: Decide) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        assert await store.take_once(claimed.id, 1, "mail", new_id(1)) is OnceReply.TAKEN
        assert await settle(store, [decide(claimed, now)]) == []
        following = await claim_one(store, node)
        assert await store.take_once(following.id, 2, "mail", new_id(1)) is OnceReply.KNOWN
        assert await store.take_once(following.id, 2, "another", new_id(1)) is OnceReply.TAKEN

    async def test_attempt_that_lost_its_job_takes_nothing(self, store: Store) -> None:
        """B4: a refused mark is free for the attempt that has the job now."""
        node, now = await joined(store), await store.time()
        stale = await started(store, node, job(now))
        assert await settle(store, [loss(stale, now)]) == []
        assert await store.take_once(stale.id, 1, "mail", new_id(1)) is OnceReply.REFUSED
        fresh = await claim_one(store, node)
        assert await store.take_once(stale.id, 1, "mail", new_id(1)) is OnceReply.REFUSED
        assert await store.take_once(fresh.id, 2, "mail", new_id(1)) is OnceReply.TAKEN
        assert await store.take_once(stale.id, 1, "mail", new_id(1)) is OnceReply.REFUSED

    async def test_what_does_not_run_takes_nothing(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        waiting, done = await add(store, job(now + DAY)), await finished(store, node, job(now), now)
        for job_id, attempt in ((waiting.id, 0), (waiting.id, 1), (done.id, 1), (new_id(0), 1)):
            assert await store.take_once(job_id, attempt, "mail", new_id(1)) is OnceReply.REFUSED

    async def test_marks_are_forgotten_with_their_job(self, store: Store) -> None:
        """The same job, stored again after its history was pruned, begins with none."""
        node, now = await joined(store), await store.time()
        draft = job(now - 20 * DAY)
        for _ in range(2):
            claimed = await started(store, node, draft)
            assert await store.take_once(claimed.id, 1, "mail", new_id(1)) is OnceReply.TAKEN
            assert await settle(store, [success(claimed, now - 10 * DAY)]) == []
            await store.prune(now - 5 * DAY)

    async def test_of_many_at_once_one_takes_it(self, store: Store, second_store: Store) -> None:
        node, now = await joined(store), await store.time()
        for _ in range(5):
            claimed = await started(store, node, job(now))
            handles = [store, second_store] * 4
            answers = await asyncio.gather(
                *(handle.take_once(claimed.id, 1, "mail", new_id(1)) for handle in handles)
            )
            assert Counter(answers) == {OnceReply.TAKEN: 1, OnceReply.KNOWN: 7}
