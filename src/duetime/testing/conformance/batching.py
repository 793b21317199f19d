"""Many callers in the same moment: a store may serve them together, and each is answered as if it had come
alone."""

from __future__ import annotations

import asyncio

from duetime.errors import Conflict
from duetime.model.instant import Micros
from duetime.model.job import CancelReply, JobDraft, State
from duetime.model.schedule import Change, Schedule
from duetime.store import Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    TENANT,
    add,
    finished,
    fired,
    handed_over,
    job,
    jobs,
    joined,
    known,
    live_counts,
    new_id,
    pause_schedule,
    put,
    remove_schedule,
    resume_schedule,
    schedule,
    started,
    stored,
)

MANY = 150  # more than any store serves at once


async def planned(store: Store, number: int, now: Micros) -> list[Schedule]:
    """Schedules of which the first has no job ahead, the second has one, the third two, and so on, in
    threes."""
    made = [await put(store, schedule(f"s{at:03}"), now + HOUR) for at in range(number)]
    for at, one in enumerate(made):
        await fired(store, one, now + DAY, *(now + HOUR + step for step in range(at % 3)))
    return made


async def dead_letters(store: Store, number: int, **changes: str) -> list[JobDraft]:
    node, now = await joined(store), await store.time()
    return [await finished(store, node, job(now, **changes), now, State.DEAD) for _ in range(number)]


class ScheduleBatchConformance:
    async def test_schedules_paused_at_once(self, store: Store) -> None:
        """What is withdrawn, noted and counted is each schedule's own."""
        now = await store.time()
        made = await planned(store, 7, now)
        taken = await asyncio.gather(
            *(
                pause_schedule(store, TENANT, one.draft.name, f"n{at}", f"a{at}")
                for at, one in enumerate(made)
            )
        )
        for at, one in enumerate(taken):
            assert one == await known(store, f"s{at:03}")
            assert one is not None
            assert (one.id, one.paused, one.pause_note, one.version, one.runs) == (
                made[at].id,
                True,
                f"n{at}",
                2,
                0,
            )
            [latest] = await store.list_versions(TENANT, f"s{at:03}", 1)
            assert (latest.version, latest.author, latest.change, latest.paused) == (
                2,
                f"a{at}",
                Change.PAUSED,
                True,
            )
        assert await live_counts(store) == {}

    async def test_one_schedule_paused_by_many(self, store: Store, second_store: Store) -> None:
        await put(store, schedule(), await store.time() + HOUR)
        crowd = (
            pause_schedule(handle, TENANT, "schedule", str(at), str(at))
            for at in range(5)
            for handle in (store, second_store)
        )
        taken = await asyncio.gather(*crowd)
        written = sorted(
            one.version for one in taken if one is not None
        )  # the others saw a version that was replaced meanwhile
        assert written == list(range(2, 2 + len(written)))
        assert [row.version for row in await store.list_versions(TENANT, "schedule", 20)] == [
            *reversed(written),
            1,
        ]

    async def test_schedules_resumed_at_once(self, store: Store) -> None:
        now = await store.time()
        for name in "abcd":
            await put(store, schedule(name), now + HOUR)
            if name != "c":
                await pause_schedule(store, TENANT, name, None)
        taken = await asyncio.gather(
            resume_schedule(store, TENANT, "a", now + 1, "ann", 2),
            resume_schedule(store, TENANT, "b", now + 2, "bob", 1),  # of another version
            resume_schedule(store, TENANT, "c", now + 3, "cid"),  # not paused
            resume_schedule(store, TENANT, "d", None, "dan"),
            resume_schedule(store, TENANT, "e", now + 5),  # not there
            resume_schedule(store, "other", "a", now + 6),
        )
        found = [None if one is None else (one.paused, one.version, one.next_fire_time) for one in taken]
        assert found == [
            (False, 3, now + 1),
            (True, 2, now + HOUR),
            (False, 1, now + HOUR),
            (False, 3, None),
            None,
            None,
        ]
        assert [(await store.list_versions(TENANT, name, 1))[0].author for name in "abcd"] == [
            "ann",
            None,
            None,
            "dan",
        ]

    async def test_schedules_removed_at_once(self, store: Store) -> None:
        now = await store.time()
        made = await planned(store, 4, now)
        expected = [None, 1, 2, None, 1]
        names = [*(one.draft.name for one in made), "unknown"]
        taken = await asyncio.gather(
            *(
                remove_schedule(store, TENANT, name, name, expect)
                for name, expect in zip(names, expected, strict=True)
            )
        )
        assert [one is not None and one.id for one in taken] == [
            made[0].id,
            made[1].id,
            False,
            made[3].id,
            False,
        ]
        left = [await store.get_schedule(TENANT, name) for name in names]
        assert [one is not None and one.id for one in left] == [False, False, made[2].id, False, False]
        assert [count.pending for count in (await live_counts(store)).values()] == [
            2
        ]  # those of the one that stays
        [latest] = await store.list_versions(TENANT, "s001", 1)
        assert (latest.version, latest.author, latest.change) == (2, "s001", Change.REMOVED)

    async def test_schedules_removed_by_two_at_once(self, store: Store, second_store: Store) -> None:
        names = [f"s{at:03}" for at in range(MANY)]
        for name in names:
            await put(store, schedule(name), await store.time() + HOUR)
        taken = await asyncio.gather(
            *(remove_schedule(handle, TENANT, name) for name in names for handle in (store, second_store))
        )
        assert sum(one is not None for one in taken) == MANY
        assert {one.draft.name for one in taken if one is not None} == set(names)


class JobBatchConformance:
    async def test_jobs_read_at_once(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        past = await finished(store, node, job(now), now)
        live = await add(store, job(now + HOUR))
        found = await asyncio.gather(
            store.get_job(TENANT, live.id),
            store.get_job(TENANT, past.id),
            store.get_job("other", live.id),
            store.get_job(TENANT, new_id(0)),
        )
        assert [one and (one.id, one.state) for one in found] == [
            (live.id, State.PENDING),
            (past.id, State.SUCCEEDED),
            None,
            None,
        ]

    async def test_jobs_cancelled_at_once(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        past = await finished(store, node, job(now), now)
        outside = await handed_over(store, node, job(now), now + HOUR)
        running = await started(store, node, job(now))
        first, second = await add(store, job(now + HOUR)), await add(store, job(now + HOUR))
        ids = [past.id, outside.id, running.id, first.id, second.id, new_id(0)]
        replies = await asyncio.gather(
            *(store.cancel_job(TENANT, each, f"r{at}") for at, each in enumerate(ids)),
            store.cancel_job("other", first.id, "theirs"),
        )
        cancelled = CancelReply.CANCELLED
        assert replies == [
            CancelReply.FINAL, cancelled, CancelReply.REQUESTED, cancelled, cancelled, CancelReply.MISSING,
            CancelReply.MISSING,
        ]  # fmt: skip
        ends = [await stored(store, each) for each in ids[:5]]
        assert [(one.state, one.error) for one in ends[3:]] == [
            (State.CANCELLED, "r3"),
            (State.CANCELLED, "r4"),
        ]
        assert [one.state for one in ends[:3]] == [State.SUCCEEDED, State.CANCELLED, State.RUNNING]
        assert ends[2].cancel_requested

    async def test_jobs_cancelled_by_two_at_once(self, store: Store, second_store: Store) -> None:
        drafts = jobs(MANY, await store.time() + HOUR)
        await store.add_jobs(drafts)
        replies = await asyncio.gather(
            *(handle.cancel_job(TENANT, one.id, "") for one in drafts for handle in (store, second_store))
        )
        assert replies.count(CancelReply.CANCELLED) == replies.count(CancelReply.FINAL) == MANY
        assert await live_counts(store) == {}

    async def test_jobs_moved_at_once(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        running = await started(store, node, job(now))
        first, second, third = [await add(store, job(now + HOUR)) for _ in range(3)]
        crowd = (
            store.reschedule_job(TENANT, first.id, now + DAY, None),
            store.reschedule_job(TENANT, second.id, None, 9),
            store.reschedule_job("other", third.id, now + DAY, 9),
            store.reschedule_job(TENANT, running.id, now + DAY, 9),
        )
        assert list(await asyncio.gather(*crowd)) == [True, True, False, False]
        found = [await stored(store, one.id) for one in (first, second, third)]
        assert [(one.due_at - now, one.priority) for one in found] == [(DAY, 5), (HOUR, 9), (HOUR, 5)]

    async def test_dead_letters_dealt_with_at_once(self, store: Store) -> None:
        letters = await dead_letters(store, 4)
        now = await store.time()
        again = [job(now + HOUR, retry_of=one.id) for one in letters]
        await store.resolve_dead_job(TENANT, letters[2].id, None)
        live = await add(store, job(now + HOUR))
        done = await asyncio.gather(
            *(store.resolve_dead_job(TENANT, letters[at].id, again[at]) for at in (0, 1, 2)),
            store.resolve_dead_job(TENANT, live.id, job(now + HOUR)),
            store.resolve_dead_job(TENANT, letters[3].id, None),
            store.resolve_dead_job("other", letters[3].id, None),
        )
        assert done == [True, True, False, False, True, False]
        assert [(await stored(store, one.id)).disposition for one in letters] == [
            "retried",
            "retried",
            "discarded",
            "discarded",
        ]
        assert [(await stored(store, one.id)).retry_of for one in again[:2]] == [letters[0].id, letters[1].id]
        assert await store.get_job(TENANT, again[2].id) is None

    async def test_dead_letters_of_one_key_are_revived_one_at_a_time(self, store: Store) -> None:
        """A job that finds its key taken stays an open dead letter; the others of the batch are retried."""
        letters, plain = await dead_letters(store, 3, unique_key="k"), await dead_letters(store, 1)
        now = await store.time()
        again = [job(now + HOUR, unique_key="k") for _ in letters]
        done = await asyncio.gather(
            *(
                store.resolve_dead_job(TENANT, one.id, draft)
                for one, draft in zip(letters, again, strict=True)
            ),
            store.resolve_dead_job(TENANT, plain[0].id, job(now + HOUR)),
            return_exceptions=True,
        )
        assert done[3] is True
        assert [one for one in done[:3] if not isinstance(one, Conflict)] == [True]
        dispositions = [(await stored(store, one.id)).disposition for one in letters]
        assert dispositions == ["retried" if one is True else None for one in done[:3]]
        assert [await store.get_job(TENANT, draft.id) is not None for draft in again] == [
            one is True for one in done[:3]
        ]
