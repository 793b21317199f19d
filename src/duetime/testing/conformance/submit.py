"""add_jobs: all or none, once, however often it is repeated."""

from __future__ import annotations

import asyncio

import pytest

from duetime.model.instant import LATEST, SECOND
from duetime.model.job import Job, JobFilter, State
from duetime.model.limit import Queue
from duetime.store import Lane, Store
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    QUEUE,
    TENANT,
    add,
    claim,
    claim_one,
    finished,
    job,
    jobs,
    joined,
    live_counts,
    new_id,
    request,
    settle,
    started,
    stored,
    success,
)

AWKWARD = [
    "naïve café",
    'it\'s "quoted" \\ and ; -- dropped',
    "日本語のキュー",
    "🦄 emoji 👩‍👩‍👧",
    "%s {} $1 ? :name",
    "tab\tand\nnewline",
    " spaces ",
]


class SubmitConformance:
    async def test_the_answer_has_one_id_per_draft_in_order(self, store: Store) -> None:
        drafts = jobs(20, await store.time())
        assert await store.add_jobs(drafts) == [draft.id for draft in drafts]

    async def test_nothing_to_add(self, store: Store) -> None:
        assert await store.add_jobs([]) == []

    async def test_a_new_job_is_pending_and_untouched(self, store: Store) -> None:
        before = await store.time()
        draft = await add(store, job(before + HOUR))
        found = await stored(store, draft.id)
        assert before <= found.created_at <= await store.time()
        fresh = Job(*draft, State.PENDING, 0, 0, 0, None, False, None, None, found.created_at, *[None] * 6)
        assert found == fresh

    async def test_every_field_comes_back(self, store: Store) -> None:
        now = await store.time()
        draft = job(
            now + HOUR,
            fire_time=now - DAY,
            schedule_id=new_id(0),
            schedule="nightly",
            priority=9,
            overlap="queue",
            target="@http",
            target_spec=b'{"url":"https://example.org"}',
            payload=b'{"n":1}',
            policies=b'{"timeout":"1m"}',
            owner="owner",
            labels=b'{"a":"b"}',
            unique_key="key",
            retry_of=new_id(0),
            limit_key="key",
        )
        found = await stored(store, (await add(store, draft)).id)
        assert tuple(getattr(found, name) for name in draft._fields) == draft

    @pytest.mark.parametrize("text", AWKWARD)
    async def test_any_text_is_kept(self, store: Store, text: str) -> None:
        now = await store.time()
        draft = job(
            now,
            tenant=text,
            queue=text,
            target=text,
            owner=text,
            unique_key=text,
            schedule=text,
            limit_key=text,
        )
        await add(store, draft)
        found = await stored(store, draft.id, tenant=text)
        assert (
            found.tenant,
            found.queue,
            found.target,
            found.owner,
            found.unique_key,
            found.schedule,
            found.limit_key,
        ) == (text,) * 7
        assert await store.queues() == [Queue(text)]
        [listed] = await store.list_jobs(
            JobFilter(text, queue=text, owner=text, schedule=text, target=text), 10
        )
        assert listed == found

    @pytest.mark.parametrize(
        "payload", [b"", bytes(range(256)), b"\x00\xff" * 500_000], ids=["empty", "all bytes", "1 MB"]
    )
    async def test_payload_bytes_are_kept(self, store: Store, payload: bytes) -> None:
        draft = await add(store, job(await store.time(), payload=payload))
        assert (await stored(store, draft.id)).payload == payload
        assert (await claim_one(store, await joined(store))).payload == payload

    @pytest.mark.parametrize("moment", [0, 1, SECOND + 1, LATEST - 1])
    async def test_instants_are_kept_to_the_microsecond(self, store: Store, moment: int) -> None:
        draft = await add(store, job(moment))
        found = await stored(store, draft.id)
        assert (found.fire_time, found.due_at) == (moment, moment)

    async def test_a_repeated_job_is_left_alone(self, store: Store) -> None:
        """A2, C3: the reply was lost and the caller sends again."""
        draft = await add(store, job(await store.time(), payload=b"first"))
        assert await store.add_jobs([draft._replace(payload=b"second")]) == [draft.id]
        assert (await stored(store, draft.id)).payload == b"first"
        assert len(await store.list_jobs(JobFilter(TENANT), 10)) == 1

    async def test_a_job_twice_in_one_call_is_stored_once(self, store: Store) -> None:
        draft = job(await store.time())
        assert await store.add_jobs([draft, draft]) == [draft.id, draft.id]
        assert len(await claim(store, request(await joined(store)))) == 1

    async def test_a_job_repeated_while_it_runs_is_left_alone(self, store: Store) -> None:
        node = await joined(store)
        draft = job(await store.time())
        await started(store, node, draft)
        assert await store.add_jobs([draft]) == [draft.id]
        assert (await stored(store, draft.id)).state is State.RUNNING
        assert await claim(store, request(node)) == []

    async def test_a_job_repeated_after_it_finished_does_not_run_again(self, store: Store) -> None:
        """I3: the reply was so late that the job was done before the caller sent again."""
        node, now = await joined(store), await store.time()
        draft = await finished(store, node, job(now), now)
        assert await store.add_jobs([draft], is_retry=True) == [draft.id]
        assert await claim(store, request(node)) == []
        assert (await stored(store, draft.id)).state is State.SUCCEEDED

    @pytest.mark.parametrize("state", [State.PENDING, State.RUNNING, State.SUCCEEDED])
    async def test_another_job_with_a_known_id_is_taken_for_a_repetition(
        self, store: Store, state: State
    ) -> None:
        """The id decides, whatever else differs: the stored job stays as it is, the other job is not stored,
        and its tenant does not see the stored one. The rest of the batch is stored."""
        node, now = await joined(store), await store.time()
        draft = job(now, payload=b"first")
        if state is State.PENDING:
            await add(store, draft)
        elif state is State.RUNNING:
            await started(store, node, draft)
        else:
            await finished(store, node, draft, now)
        before = await stored(store, draft.id)
        other = draft._replace(
            tenant="other",
            queue="other queue",
            priority=9,
            due_at=now - HOUR,
            target="other task",
            payload=b"second",
            unique_key="other key",
        )
        next_one = job(now + HOUR, tenant="other", queue="other queue")
        repeated = state is State.SUCCEEDED
        assert await store.add_jobs([other, next_one], is_retry=repeated) == [other.id, next_one.id]
        assert await stored(store, draft.id) == before
        assert await store.get_job("other", other.id) is None
        assert [row.id for row in await store.list_jobs(JobFilter("other"), 10)] == [next_one.id]
        lane = Lane(other.queue, other.priority, 0, other.tenant)
        assert await claim(store, request(node, lane, targets=(other.target,))) == []

    async def test_one_stored_job_does_not_keep_a_large_batch_out(self, store: Store) -> None:
        drafts = jobs(500, await store.time())
        await store.add_jobs(drafts[100:103])
        assert await store.add_jobs(drafts) == [draft.id for draft in drafts]
        assert [(queue, count.pending) for queue, count in (await live_counts(store)).items()] == [
            (QUEUE, 500)
        ]

    async def test_many_are_added_at_once(self, store: Store) -> None:
        drafts = jobs(5_000, await store.time() - DAY)
        assert await store.add_jobs(drafts) == [draft.id for draft in drafts]
        [count] = (await live_counts(store)).values()
        assert count == (5_000, 5_000, 0)

    async def test_two_handles_sending_the_same_jobs_store_them_once(
        self, store: Store, second_store: Store
    ) -> None:
        drafts = jobs(100, await store.time() - DAY)
        answers = await asyncio.gather(
            store.add_jobs(drafts), second_store.add_jobs(drafts), store.add_jobs(drafts[::-1])
        )
        assert [sorted(answer) for answer in answers] == [sorted(draft.id for draft in drafts)] * 3
        assert len(await store.list_jobs(JobFilter(TENANT), 1_000)) == 100


class UniqueKeyConformance:
    async def test_the_live_holder_of_a_key_answers_for_it(self, store: Store) -> None:
        """I15."""
        now = await store.time()
        first, second = job(now, unique_key="key"), job(now, unique_key="key")
        assert await store.add_jobs([first]) == [first.id]
        assert await store.add_jobs([second]) == [first.id]
        assert await store.get_job(TENANT, second.id) is None

    async def test_a_key_twice_in_one_call(self, store: Store) -> None:
        now = await store.time()
        first, other, second = job(now, unique_key="key"), job(now), job(now, unique_key="key")
        assert await store.add_jobs([first, other, second]) == [first.id, other.id, first.id]

    async def test_a_key_belongs_to_its_tenant(self, store: Store) -> None:
        now = await store.time()
        mine, theirs = job(now, unique_key="key"), job(now, unique_key="key", tenant="other")
        assert await store.add_jobs([mine, theirs]) == [mine.id, theirs.id]

    async def test_a_running_job_still_holds_its_key(self, store: Store) -> None:
        now = await store.time()
        first = job(now, unique_key="key")
        await started(store, await joined(store), first)
        assert await store.add_jobs([job(now, unique_key="key")]) == [first.id]

    async def test_a_finished_job_frees_its_key(self, store: Store) -> None:
        now = await store.time()
        await finished(store, await joined(store), job(now, unique_key="key"), now)
        await add(store, job(now, unique_key="key"))

    async def test_a_repeated_job_with_a_key_answers_itself(self, store: Store) -> None:
        """Its key may be held by another job since: the id decides."""
        node, now = await joined(store), await store.time()
        first = await finished(store, node, job(now, unique_key="key"), now)
        await add(store, job(now, unique_key="key"))
        assert await store.add_jobs([first]) == [first.id]

    async def test_keys_in_a_large_batch(self, store: Store) -> None:
        now = await store.time()
        held = await add(store, job(now, unique_key="0"))
        drafts = [job(now, unique_key=str(position % 300)) for position in range(600)]
        expected = [held.id, *(draft.id for draft in drafts[1:300])] * 2
        assert await store.add_jobs(drafts) == expected

    async def test_of_two_handles_one_gets_the_key(self, store: Store, second_store: Store) -> None:
        now = await store.time()
        for number in range(10):
            rivals = [job(now, unique_key=f"key {number}") for _ in range(4)]
            handles = [store, second_store, store, second_store]
            answers = await asyncio.gather(
                *(handle.add_jobs([rival]) for handle, rival in zip(handles, rivals, strict=True))
            )
            [winner] = {answer for [answer] in answers}
            assert winner in {rival.id for rival in rivals}
            assert (await stored(second_store, winner)).unique_key == f"key {number}"

    async def test_a_key_can_be_used_again_and_again(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        for _ in range(3):
            claimed = await started(store, node, job(now, unique_key="key"))
            assert await settle(store, [success(claimed, now)]) == []
        assert len(await store.list_jobs(JobFilter(TENANT), 10)) == 3
