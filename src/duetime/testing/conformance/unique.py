"""add_unique: which earlier job counts as the same, and what becomes of the newcomer."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from duetime.model.job import JobDraft, JobFilter, State
from duetime.model.lease import NodeId
from duetime.model.unique import Admission, OnConflict, Rule
from duetime.store import Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    LANE,
    PRIORITY,
    QUEUE,
    TENANT,
    add,
    claim,
    claim_one,
    finished,
    job,
    joined,
    lapsed,
    request,
    retry,
    settle,
    started,
    stored,
    success,
)
from duetime.testing.conformance.hints import Ear, calls_for

WAITING = frozenset({State.PENDING, State.QUEUED})
LIVE = WAITING | {State.RUNNING}
EVER = frozenset(State)
KEY = "key"
SKIP, REPLACE, RESCHEDULE = OnConflict.SKIP, OnConflict.REPLACE, OnConflict.RESCHEDULE


def rule(on_conflict: OnConflict = SKIP, states: frozenset[State] = LIVE, within: int | None = None) -> Rule:
    return Rule(states, within, on_conflict)


async def in_state(store: Store, node: NodeId, state: State) -> JobDraft:
    """A job with the key, brought into this state."""
    now = await store.time()
    draft = job(now - HOUR, unique_key=KEY)
    match state:
        case State.PENDING:
            return await add(store, draft)
        case State.RUNNING:
            await started(store, node, draft)
            return draft
        case State.CANCELLED:
            await add(store, draft)
            await store.cancel_job(TENANT, draft.id, "")
            return draft
    return await finished(store, node, draft, now, state)


async def live_holders(store: Store) -> list[JobDraft]:
    listed = await store.list_jobs(JobFilter(TENANT, states=LIVE), 1_000)
    return [
        JobDraft(*(getattr(found, name) for name in JobDraft._fields))
        for found in listed
        if found.unique_key == KEY
    ]


class AdmissionConformance:
    @pytest.mark.parametrize("on_conflict", list(OnConflict))
    async def test_the_first_of_its_kind_is_stored(self, store: Store, on_conflict: OnConflict) -> None:
        draft = job(await store.time() + HOUR, unique_key=KEY, limit_key="a", payload=b"[1]")
        assert await store.add_unique(draft, rule(on_conflict)) == Admission(draft.id)
        assert await live_holders(store) == [draft]
        assert (await stored(store, draft.id)).state is State.PENDING

    @pytest.mark.parametrize("on_conflict", list(OnConflict))
    @pytest.mark.parametrize(
        "state", [State.PENDING, State.RUNNING, State.SUCCEEDED, State.DEAD, State.CANCELLED]
    )
    @pytest.mark.parametrize(
        "counted",
        [WAITING, LIVE, LIVE | {State.SUCCEEDED}, EVER],
        ids=["waiting", "live", "succeeded", "ever"],
    )
    async def test_what_counts_and_what_follows(
        self, store: Store, state: State, counted: frozenset[State], on_conflict: OnConflict
    ) -> None:
        earlier = await in_state(store, await joined(store), state)
        newcomer = job(await store.time() + DAY, unique_key=KEY)
        admission = await store.add_unique(newcomer, rule(on_conflict, counted))
        if state not in counted:
            expected = Admission(newcomer.id)
        elif on_conflict is REPLACE and state is State.PENDING:
            expected = Admission(newcomer.id, "replaced")
        elif on_conflict is RESCHEDULE and state is State.PENDING:
            expected = Admission(earlier.id, "rescheduled")
        else:
            expected = Admission(earlier.id, "skipped")
        assert admission == expected
        assert (await store.get_job(TENANT, newcomer.id) is not None) is (expected.id == newcomer.id)
        replaced = expected.conflict == "replaced"
        assert (await stored(store, earlier.id)).state is (State.CANCELLED if replaced else state)

    async def test_a_skipped_newcomer_changes_nothing(self, store: Store) -> None:
        now = await store.time()
        earlier = await add(store, job(now + HOUR, unique_key=KEY, payload=b"1"))
        before = await stored(store, earlier.id)
        assert await store.add_unique(
            job(now, unique_key=KEY, payload=b"2", priority=9), rule()
        ) == Admission(earlier.id, "skipped")
        assert await stored(store, earlier.id) == before

    async def test_a_replaced_job_says_so_and_never_runs(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        earlier = await add(store, job(now - HOUR, unique_key=KEY))
        newcomer = job(now - HOUR, unique_key=KEY)
        await store.add_unique(newcomer, rule(REPLACE))
        found = await stored(store, earlier.id)
        assert found.error is not None
        assert found.error.startswith("replaced by ")
        assert str(newcomer.id) in found.error
        assert found.finished_at is not None
        assert (await claim_one(store, node)).id == newcomer.id

    async def test_a_retry_that_waits_can_be_replaced(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now, unique_key=KEY))
        assert await settle(store, [retry(claimed, now + HOUR, now)]) == []
        newcomer = job(now, unique_key=KEY)
        assert (await store.add_unique(newcomer, rule(REPLACE))).conflict == "replaced"
        assert (await stored(store, claimed.id)).state is State.CANCELLED

    async def test_a_rescheduled_job_keeps_everything_but_its_time(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        earlier = await add(store, job(now + DAY, unique_key=KEY, payload=b"1"))
        before = await stored(store, earlier.id)
        newcomer = job(now - HOUR, unique_key=KEY, payload=b"2", priority=PRIORITY + 1)
        assert await store.add_unique(newcomer, rule(RESCHEDULE)) == Admission(earlier.id, "rescheduled")
        claimed = await claim_one(store, node)
        assert (claimed.id, claimed.due_at, claimed.payload, claimed.fire_time) == (
            earlier.id,
            now - HOUR,
            b"1",
            before.fire_time,
        )

    async def test_a_job_can_be_put_off(self, store: Store) -> None:
        """Debouncing: the last call counts."""
        node, now = await joined(store), await store.time()
        earlier = await add(store, job(now - HOUR, unique_key=KEY))
        assert (
            await store.add_unique(job(now + HOUR, unique_key=KEY), rule(RESCHEDULE))
        ).conflict == "rescheduled"
        assert await claim(store, request(node)) == []
        assert (await stored(store, earlier.id)).due_at == now + HOUR

    async def test_only_what_was_stored_recently_counts(self, store: Store) -> None:
        """The pending one is too old to count: it gives up its key, and both will run."""
        node, now = await joined(store), await store.time()
        earlier = await add(store, job(now - HOUR, unique_key=KEY))
        await lapsed(store)
        newcomer = job(now - HOUR, unique_key=KEY)
        assert await store.add_unique(newcomer, rule(within=1)) == Admission(newcomer.id)
        assert [holder.id for holder in await live_holders(store)] == [newcomer.id]
        assert (await stored(store, earlier.id)).state is State.PENDING
        assert sorted(row.id for row in await claim(store, request(node))) == sorted(
            [earlier.id, newcomer.id]
        )

    @pytest.mark.parametrize("state", [State.PENDING, State.RUNNING, State.SUCCEEDED])
    async def test_the_period_counts_from_when_it_was_stored(self, store: Store, state: State) -> None:
        """Not from its due time, which lies an hour back."""
        earlier = await in_state(store, await joined(store), state)
        newcomer = job(await store.time(), unique_key=KEY)
        assert await store.add_unique(newcomer, rule(states=EVER, within=30 * 60 * 1_000_000)) == Admission(
            earlier.id, "skipped"
        )

    async def test_a_finished_job_too_old_does_not_count(self, store: Store) -> None:
        await in_state(store, await joined(store), State.SUCCEEDED)
        await lapsed(store)
        newcomer = job(await store.time(), unique_key=KEY)
        assert await store.add_unique(newcomer, rule(states=EVER, within=1)) == Admission(newcomer.id)

    async def test_a_running_job_that_does_not_count_gives_up_its_key(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        running = await started(store, node, job(now, unique_key=KEY))
        newcomer = job(now, unique_key=KEY)
        assert await store.add_unique(newcomer, rule(states=WAITING)) == Admission(newcomer.id)
        assert [holder.id for holder in await live_holders(store)] == [newcomer.id]
        assert await settle(store, [success(running, now)]) == []
        assert [holder.id for holder in await live_holders(store)] == [newcomer.id]
        third = job(now, unique_key=KEY)
        assert await store.add_jobs([third]) == [newcomer.id]

    async def test_the_live_one_answers_before_a_finished_one(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await finished(store, node, job(now, unique_key=KEY), now)
        live = await add(store, job(now, unique_key=KEY))
        assert await store.add_unique(job(now, unique_key=KEY), rule(states=EVER)) == Admission(
            live.id, "skipped"
        )

    async def test_the_key_belongs_to_its_tenant(self, store: Store) -> None:
        now = await store.time()
        await add(store, job(now, unique_key=KEY))
        theirs = job(now, unique_key=KEY, tenant="other")
        assert await store.add_unique(theirs, rule(states=EVER)) == Admission(theirs.id)
        other_key = job(now, unique_key="another")
        assert await store.add_unique(other_key, rule(states=EVER)) == Admission(other_key.id)

    async def test_a_key_used_by_both_verbs_is_one_key(self, store: Store) -> None:
        now = await store.time()
        first = job(now, unique_key=KEY)
        await store.add_unique(first, rule())
        assert await store.add_jobs([job(now, unique_key=KEY)]) == [first.id]

    @pytest.mark.parametrize("on_conflict", list(OnConflict))
    async def test_a_repeated_call_stores_nothing_twice(self, store: Store, on_conflict: OnConflict) -> None:
        """A2, C3: the reply was lost and the caller sends again."""
        draft = job(await store.time() + HOUR, unique_key=KEY)
        await store.add_unique(draft, rule(on_conflict))
        before = await stored(store, draft.id)
        assert (await store.add_unique(draft, rule(on_conflict), is_retry=True)).id == draft.id
        assert await stored(store, draft.id) == before

    async def test_a_replacement_repeated_replaces_once(self, store: Store) -> None:
        now = await store.time()
        earlier = await add(store, job(now, unique_key=KEY))
        newcomer = job(now, unique_key=KEY)
        for again in (False, True):
            assert (await store.add_unique(newcomer, rule(REPLACE), is_retry=again)).id == newcomer.id
        assert (await stored(store, newcomer.id)).state is State.PENDING
        assert (await stored(store, earlier.id)).state is State.CANCELLED

    @pytest.mark.parametrize("on_conflict", list(OnConflict))
    async def test_repeated_after_it_finished_it_does_not_run_again(
        self, store: Store, on_conflict: OnConflict
    ) -> None:
        """I3."""
        node, now = await joined(store), await store.time()
        draft = job(now, unique_key=KEY)
        await store.add_unique(draft, rule(on_conflict))
        assert await settle(store, [success(await claim_one(store, node), now)]) == []
        assert (await store.add_unique(draft, rule(on_conflict), is_retry=True)).id == draft.id
        assert await claim(store, request(node)) == []

    async def test_repeated_after_another_took_the_key(self, store: Store) -> None:
        """The id decides: its job was stored, whatever became of the key since."""
        node, now = await joined(store), await store.time()
        draft = job(now, unique_key=KEY)
        await store.add_unique(draft, rule())
        assert await settle(store, [success(await claim_one(store, node), now)]) == []
        other = await add(store, job(now + HOUR, unique_key=KEY))
        assert (await store.add_unique(draft, rule(REPLACE), is_retry=True)).id == draft.id
        assert (await stored(store, other.id)).state is State.PENDING

    async def test_a_stored_newcomer_is_announced(self, store: Store) -> None:
        now, ear = await store.time(), Ear()
        store.subscribe(ear)
        numbers = iter(range(1_000))

        async def act() -> None:
            await store.add_unique(job(now, unique_key=f"{next(numbers)}"), rule())

        assert await ear.hears(act, calls_for(QUEUE, PRIORITY, now)), ear.heard

    async def test_a_job_rescheduled_to_sooner_is_announced(self, store: Store) -> None:
        now, ear = await store.time(), Ear()
        await add(store, job(now + DAY, unique_key=KEY))
        store.subscribe(ear)
        act = job(now, unique_key=KEY, queue="elsewhere")
        heard = await ear.hears(
            lambda: store.add_unique(act, rule(RESCHEDULE)), calls_for(LANE.queue, LANE.priority, now)
        )
        assert heard, ear.heard


class AdmissionRaceConformance:
    async def rivals(self, store: Store, second: Store, kind: Rule) -> tuple[list[JobDraft], list[Admission]]:
        now = await store.time()
        drafts = [job(now + DAY + at, unique_key=KEY) for at in range(8)]
        handles = [store, second] * 4
        calls = (handle.add_unique(draft, kind) for handle, draft in zip(handles, drafts, strict=True))
        return drafts, list(await asyncio.gather(*calls))

    async def test_of_many_at_once_one_is_stored(self, store: Store, second_store: Store) -> None:
        """I15."""
        drafts, answers = await self.rivals(store, second_store, rule())
        [winner] = {answer.id for answer in answers}
        assert winner in {draft.id for draft in drafts}
        assert Counter(answer.conflict for answer in answers) == {None: 1, "skipped": 7}
        assert len(await store.list_jobs(JobFilter(TENANT), 100)) == 1

    async def test_of_many_that_replace_one_another_one_is_left(
        self, store: Store, second_store: Store
    ) -> None:
        drafts, answers = await self.rivals(store, second_store, rule(REPLACE))
        assert [answer.id for answer in answers] == [draft.id for draft in drafts]
        assert Counter(answer.conflict for answer in answers) == {None: 1, "replaced": 7}
        listed = await store.list_jobs(JobFilter(TENANT), 100)
        assert Counter(found.state for found in listed) == {State.PENDING: 1, State.CANCELLED: 7}
        assert len(await live_holders(store)) == 1

    async def test_of_many_that_reschedule_the_last_counts(self, store: Store, second_store: Store) -> None:
        drafts, answers = await self.rivals(store, second_store, rule(RESCHEDULE))
        [winner] = {answer.id for answer in answers}
        assert Counter(answer.conflict for answer in answers) == {None: 1, "rescheduled": 7}
        assert (await stored(store, winner)).due_at in {draft.due_at for draft in drafts}

    async def test_replacing_what_is_being_claimed(self, store: Store, second_store: Store) -> None:
        """Either it runs and the newcomer was skipped, or it was replaced and never runs."""
        node, now = await joined(store), await store.time()
        for number in range(20):
            earlier, newcomer = job(now, unique_key=f"{number}"), job(now + DAY, unique_key=f"{number}")
            await add(store, earlier)
            admission, claimed = await asyncio.gather(
                second_store.add_unique(newcomer, rule(REPLACE)), claim(store, request(node))
            )
            if claimed:
                assert admission == Admission(earlier.id, "skipped")
            else:
                assert admission == Admission(newcomer.id, "replaced")
                assert (await stored(store, earlier.id)).state is State.CANCELLED
