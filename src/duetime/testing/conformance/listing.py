"""Looking jobs up: single, listed, counted."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.model.job import JobFilter, State
from duetime.model.limit import QueueCounts
from duetime.store import Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    MINUTE,
    TENANT,
    add,
    finished,
    job,
    jobs,
    joined,
    live_counts,
    new_id,
    started,
    stored,
)


async def names(store: Store, **wanted: Any) -> list[str | None]:
    """The owners of the jobs this filter selects: tests write a job's name there."""
    return [found.owner for found in await store.list_jobs(JobFilter(**{"tenant": TENANT, **wanted}), 100)]


class LookupConformance:
    async def test_a_job_is_found_in_each_state(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        done = await finished(store, node, job(now), now)
        running = await started(store, node, job(now))
        waiting = await add(store, job(now))
        found = [(await stored(store, job_id)).state for job_id in (done.id, running.id, waiting.id)]
        assert found == [State.SUCCEEDED, State.RUNNING, State.PENDING]

    async def test_an_unknown_id_finds_nothing(self, store: Store) -> None:
        assert await store.get_job(TENANT, new_id(0)) is None
        assert await store.list_attempts(new_id(0)) == []

    async def test_another_tenant_finds_nothing(self, store: Store) -> None:
        """I16."""
        node, now = await joined(store), await store.time()
        live, past = await add(store, job(now + HOUR)), await finished(store, node, job(now), now)
        assert await store.get_job("other", live.id) is None
        assert await store.get_job("other", past.id) is None
        assert await store.list_jobs(JobFilter("other"), 10) == []


class ListingConformance:
    async def test_newest_fire_time_first_live_and_past_together(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        for age in (4, 2):
            await finished(store, node, job(now - age * HOUR, owner=f"{age} h"), now)
        for age in (3, 1, 5):
            await add(store, job(now, fire_time=now - age * HOUR, owner=f"{age} h"))
        assert await names(store) == ["1 h", "2 h", "3 h", "4 h", "5 h"]

    async def test_equal_fire_times_go_by_id(self, store: Store) -> None:
        now = await store.time()
        drafts = [job(now) for _ in range(20)]
        await store.add_jobs(drafts)
        listed = await store.list_jobs(JobFilter(TENANT), 100)
        assert [found.id for found in listed] == sorted((draft.id for draft in drafts), reverse=True)

    async def test_a_listed_job_is_the_whole_job(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await finished(store, node, job(now - HOUR, labels=b"{}"), now)
        await add(store, job(now, policies=b"{}"))
        listed = await store.list_jobs(JobFilter(TENANT), 10)
        assert listed == [await stored(store, found.id) for found in listed]

    @pytest.mark.parametrize("page", [1, 7, 25, 100])
    async def test_paging_leaves_no_gap_and_doubles_nothing(self, store: Store, page: int) -> None:
        node, now = await joined(store), await store.time()
        drafts = [job(now - position // 4 * MINUTE) for position in range(25)]
        for draft in drafts[::3]:
            await finished(store, node, draft, now)
        await store.add_jobs(drafts)
        seen, before = [], None
        while listed := await store.list_jobs(JobFilter(TENANT), page, before):
            assert len(listed) <= page
            seen += [(found.fire_time, found.id) for found in listed]
            before = seen[-1][1]
        assert seen == sorted(((draft.fire_time, draft.id) for draft in drafts), reverse=True)

    async def test_by_state(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await finished(store, node, job(now, owner="done"), now)
        await finished(store, node, job(now, owner="dead"), now, State.DEAD)
        await started(store, node, job(now, owner="running"))
        await add(store, job(now, owner="waiting"))
        for state, name in {
            State.SUCCEEDED: "done",
            State.DEAD: "dead",
            State.RUNNING: "running",
            State.PENDING: "waiting",
        }.items():
            assert await names(store, states=frozenset({state})) == [name]
        assert set(await names(store, states=frozenset({State.DEAD, State.RUNNING}))) == {"dead", "running"}
        assert await names(store, states=frozenset({State.CANCELLED})) == []

    @pytest.mark.parametrize(
        ("field", "value"), [("queue", "a"), ("schedule", "a"), ("target", "a"), ("owner", "a")]
    )
    @pytest.mark.parametrize("past", [False, True])
    async def test_by_text(self, store: Store, field: str, value: str, past: bool) -> None:
        node, now = await joined(store), await store.time()
        chosen, other = job(now, **{field: value}), job(now, **{field: "b"})
        for draft in (chosen, other):
            await (finished(store, node, draft, now) if past else add(store, draft))
        listed = await store.list_jobs(JobFilter(TENANT, **{field: value}), 10)  # type: ignore[arg-type]  # the field varies
        assert [found.id for found in listed] == [chosen.id]

    async def test_by_node(self, store: Store) -> None:
        mine, theirs, now = await joined(store), await joined(store), await store.time()
        await finished(store, mine, job(now - HOUR, owner="past"), now)
        await started(store, mine, job(now, owner="running"))
        await started(store, theirs, job(now, owner="elsewhere"))
        await add(store, job(now, owner="waiting"))
        assert await names(store, node=mine) == ["running", "past"]

    async def test_by_due_time(self, store: Store) -> None:
        now = await store.time()
        await store.add_jobs([job(now + hour * HOUR, owner=f"{hour} h") for hour in range(5)])
        half = HOUR // 2
        assert await names(store, due_after=now + 2 * HOUR + half) == ["4 h", "3 h"]
        assert await names(store, due_before=now + HOUR + half) == ["1 h", "0 h"]
        assert await names(store, due_after=now + half, due_before=now + 2 * HOUR + half) == ["2 h", "1 h"]

    async def test_only_dead_letters_that_are_still_open(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await finished(store, node, job(now, owner="open"), now, State.DEAD)
        discarded = await finished(store, node, job(now, owner="discarded"), now, State.DEAD)
        await finished(store, node, job(now, owner="fine"), now)
        await add(store, job(now, owner="waiting"))
        assert await store.resolve_dead_job(TENANT, discarded.id, None)
        assert await names(store, undisposed=True) == ["open"]


class CountConformance:
    async def test_live_jobs_by_queue(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [*jobs(3, now - HOUR, queue="b"), *jobs(2, now + HOUR, queue="b"), job(now, queue="a")]
        )
        await started(store, node, job(now - DAY, queue="b"))
        await finished(store, node, job(now - DAY, queue="c"), now)
        assert await live_counts(store) == {"a": QueueCounts(1, 1, 0), "b": QueueCounts(5, 3, 1)}

    async def test_nothing_to_count(self, store: Store) -> None:
        assert await live_counts(store) == {}
        assert await store.queues() == []

    async def test_queues_are_remembered_and_sorted(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await finished(store, node, job(now, queue="z"), now)
        await store.add_jobs(
            [job(now, queue="é"), job(now, queue="B"), job(now, queue="a"), job(now, queue="a")]
        )
        assert [queue.name for queue in await store.queues()] == ["B", "a", "z", "é"]
