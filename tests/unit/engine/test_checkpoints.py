"""The writing desk: checkpoints durable on return and grouped, progress now and then and never lost at the
end, late comers refused."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from duetime.engine.run.checkpoints import PROGRESS_INTERVAL, RETRY_TIMEOUT
from duetime.errors import Fenced, StoreFull, StoreUnavailable
from duetime.model.instant import SECOND
from duetime.store import AttemptUpdate, OnceReply
from tests.unit.engine.fake_store import JOB_ID, FakeStore, make_writer, play


def checkpoint(number: int = 3, attempt: int = 1, data: bytes = b"1") -> AttemptUpdate:
    return AttemptUpdate(UUID(int=number), attempt, data, None)


def progress(done: int, number: int = 3, attempt: int = 1) -> AttemptUpdate:
    return AttemptUpdate(UUID(int=number), attempt, None, b"%d" % done)


def test_a_checkpoint_is_written_when_save_returns() -> None:
    async def scene() -> None:
        store = FakeStore()
        await make_writer(store).save(checkpoint())
        assert store.updates == [checkpoint()]

    play(scene)


def test_checkpoints_that_come_together_are_written_together() -> None:
    """The first goes alone at once; those that arrive while it is under way share the next write."""

    async def scene() -> None:
        store = FakeStore()
        store.takes = 0.01
        desk = make_writer(store)
        await asyncio.gather(*(desk.save(checkpoint(number)) for number in range(50)))
        assert len(store.batches) <= 2
        assert sorted(note.id.int for note in store.updates) == list(range(50))

    play(scene)


def test_two_checkpoints_of_one_attempt_keep_their_order() -> None:
    async def scene() -> None:
        store = FakeStore()
        store.takes = 0.01
        desk = make_writer(store)
        saving = []
        for number in range(5):
            saving.append(asyncio.ensure_future(desk.save(checkpoint(data=b"%d" % number))))
            await asyncio.sleep(0.001)
        await asyncio.gather(*saving)
        assert [note.checkpoint for note in store.updates] == [b"0", b"1", b"2", b"3", b"4"]

    play(scene)


def test_a_refused_checkpoint_raises_in_its_task_alone() -> None:
    async def scene() -> None:
        store = FakeStore()
        store.refused = {UUID(int=1)}
        desk = make_writer(store)
        answers = await asyncio.gather(
            *(desk.save(checkpoint(number)) for number in range(3)), return_exceptions=True
        )
        assert [isinstance(answer, Fenced) for answer in answers] == [False, True, False]

    play(scene)


def test_two_attempts_of_one_job_are_never_judged_together() -> None:
    """A refusal names the job: in one write with its successor, the zombie's refusal would hit both."""

    async def scene() -> None:
        store = FakeStore()
        store.takes = 0.01
        desk = make_writer(store)
        first = asyncio.ensure_future(desk.save(checkpoint(9)))
        await asyncio.sleep(0.001)
        await asyncio.gather(first, desk.save(checkpoint(attempt=1)), desk.save(checkpoint(attempt=2)))
        for batch in store.batches:
            assert len({note.id for note in batch}) == len(batch)
        assert len(store.updates) == 3

    play(scene)


def test_progress_is_written_at_once_and_then_now_and_then() -> None:
    async def scene() -> None:
        store = FakeStore()
        desk = make_writer(store)
        for done in range(100):
            await desk.save(progress(done))
            await asyncio.sleep(0.01)
        assert 4 <= len(store.updates) <= 7, "a second of progress every 10 ms, written every 200"
        assert store.updates[0] == progress(0)
        await asyncio.sleep(PROGRESS_INTERVAL / SECOND)
        assert store.updates[-1] == progress(99)

    play(scene)


def test_reporting_progress_does_not_wait() -> None:
    async def scene() -> None:
        store = FakeStore()
        store.takes = 5.0
        desk = make_writer(store)
        before = asyncio.get_running_loop().time()
        await desk.save(progress(1))
        assert asyncio.get_running_loop().time() == before

    play(scene)


def test_the_last_progress_is_written_when_the_attempt_ends() -> None:
    async def scene() -> None:
        store = FakeStore()
        desk = make_writer(store)
        await desk.save(progress(1))
        await desk.save(progress(2))
        await desk.save(progress(3))
        await desk.end(JOB_ID, 1, wait=True)
        assert store.updates == [progress(1), progress(3)]
        await asyncio.sleep(1)
        assert len(store.updates) == 2, "and not once more"

    play(scene)


def test_end_waits_a_limited_time_for_a_write_in_progress() -> None:
    async def scene() -> None:
        store, loop = FakeStore(), asyncio.get_running_loop()
        desk = make_writer(store)
        store.takes = 1.0
        await desk.save(progress(1))
        await desk.end(JOB_ID, 1, wait=True)
        assert store.updates == [progress(1)]
        store.takes, began = 60.0, loop.time()
        await desk.save(progress(2))
        await desk.end(JOB_ID, 1, wait=True)
        assert loop.time() - began < 5

    play(scene)


def test_a_checkpoint_takes_pending_progress_along() -> None:
    async def scene() -> None:
        store = FakeStore()
        desk = make_writer(store)
        await desk.save(progress(1))
        await desk.save(progress(2))
        await desk.save(checkpoint())
        assert store.updates[-1] == AttemptUpdate(JOB_ID, 1, b"1", b"2")
        await desk.end(JOB_ID, 1, wait=True)
        await asyncio.sleep(1)
        assert len(store.updates) == 2

    play(scene)


def test_refused_progress_stops_the_attempt() -> None:
    async def scene() -> None:
        store, fenced = FakeStore(), list[tuple[UUID, int]]()
        store.refused = {JOB_ID}
        await make_writer(store, fenced).save(progress(1, attempt=4))
        await asyncio.sleep(0.1)
        assert fenced == [(JOB_ID, 4)]

    play(scene)


def test_progress_refused_after_the_end_raises_nothing() -> None:
    """It raced with the settlement: the job is final, and all is well."""

    async def scene() -> None:
        store, fenced = FakeStore(), list[tuple[UUID, int]]()
        store.refused, store.takes = {JOB_ID}, 0.5
        desk = make_writer(store, fenced)
        await desk.save(progress(1))
        await desk.end(JOB_ID, 1, wait=False)
        await asyncio.sleep(1)
        assert fenced == []

    play(scene)


def test_a_short_outage_is_not_the_task_s_business() -> None:
    async def scene() -> None:
        store = FakeStore()
        store.problems = [StoreUnavailable("away") for _ in range(5)]
        await make_writer(store).save(checkpoint())
        assert store.updates == [checkpoint()]

    play(scene)


def test_a_long_outage_is() -> None:
    async def scene() -> None:
        store, loop = FakeStore(), asyncio.get_running_loop()
        store.problems = [StoreUnavailable("away") for _ in range(1_000)]
        with pytest.raises(StoreUnavailable):
            await make_writer(store).save(checkpoint())
        assert RETRY_TIMEOUT / SECOND / 2 < loop.time() <= RETRY_TIMEOUT / SECOND

    play(scene)


def test_a_node_that_is_not_trusted_any_more_does_not_insist() -> None:
    async def scene() -> None:
        store = FakeStore()
        store.problems = [StoreUnavailable("away"), StoreUnavailable("away")]
        with pytest.raises(StoreUnavailable):
            await make_writer(store, trusted=lambda: False).save(checkpoint())
        assert len(store.problems) == 1

    play(scene)


def test_what_is_no_outage_is_told_at_once() -> None:
    async def scene() -> None:
        store = FakeStore()
        store.problems = [StoreFull("disk")]
        with pytest.raises(StoreFull):
            await make_writer(store).save(checkpoint())
        await make_writer(store).save(checkpoint())
        assert store.updates == [checkpoint()]

    play(scene)


def test_a_mark_is_taken_once() -> None:
    async def scene() -> None:
        store = FakeStore()
        desk = make_writer(store)
        assert [await desk.mark(JOB_ID, 1, key) for key in ("mail", "mail", "sms")] == [True, False, True]
        assert await desk.mark(UUID(int=4), 1, "mail")

    play(scene)


def test_a_lost_reply_to_a_mark_is_asked_again_under_the_same_number() -> None:
    """Another number would make the repeat look like a second call, and the side effect would never
    happen."""

    async def scene() -> None:
        store = FakeStore()
        desk = make_writer(store)
        store.problems = [StoreUnavailable("reply lost")]
        assert await desk.mark(JOB_ID, 1, "mail")
        assert await desk.mark(JOB_ID, 1, "sms")
        first, again, other = store.nonces
        assert first == again != other

    play(scene)


def test_a_mark_of_a_late_attempt_is_refused() -> None:
    async def scene() -> None:
        store = FakeStore()
        store.once_reply = OnceReply.REFUSED
        with pytest.raises(Fenced):
            await make_writer(store).mark(JOB_ID, 1, "mail")

    play(scene)
