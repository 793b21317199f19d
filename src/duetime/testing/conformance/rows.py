"""Everything in the store as rows: read by key, written in bulk, and alive again afterwards."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from duetime.errors import Conflict
from duetime.model.job import Ending, Job, State
from duetime.model.lease import Node, NodeId
from duetime.model.limit import Queue, Rate
from duetime.model.schedule import Schedule
from duetime.model.stored import JobRow, Record, RowKind, StoredRow, row_key
from duetime.store import (
    AttemptUpdate,
    DueSchedules,
    Lane,
    OfDeadNodes,
    OfNode,
    OnceReply,
    PastDeadline,
    Store,
)
from duetime.testing.conformance.drafts import (
    ALL_SEGMENTS,
    DAY,
    HOUR,
    MINUTE,
    QUEUE,
    TENANT,
    add,
    claim,
    claim_one,
    death,
    ended,
    finished,
    fired,
    fires,
    firing,
    handed_over,
    job,
    jobs,
    joined,
    known,
    limit,
    loss,
    new_id,
    of_schedule,
    passed,
    put,
    record_start,
    remove_schedule,
    request,
    retry,
    schedule,
    set_limits,
    settle,
    started,
    stored,
    success,
)

ALL = 10_000
NOWHERE = 1_000_000  # an id that no node of the suite has


async def fill(store: Store) -> None:
    """At least two rows of each kind, in every state that rows can have."""
    node, now = await joined(store), await store.time()
    await _add_live_jobs(store, node)
    await _add_past_jobs(store, node)
    await _add_limited_jobs(store, node)
    draft = schedule("weekly", labels=b'{"team":"blue"}', overlap="skip", queue="reports")
    planned = await put(store, draft, now - MINUTE)
    skipped = fires(planned.id, now - MINUTE, skip_reason="missed")
    assert await store.fire([firing(planned, now + DAY, fires=skipped)]) == 1
    await put(store, replace(draft, payload=b'{"a":1}'), now + DAY)
    await put(store, schedule("other", tenant="another"), None)
    await put(store, schedule("removed"), now + DAY)
    await remove_schedule(store, TENANT, "removed", author="ann")
    await store.set_queue(Queue("paused", True, "a note", now))
    await store.set_queue(Queue("limited", max_running=3, rate=Rate(5, HOUR)))
    await add(store, job(now - HOUR, queue="limited"))
    await claim(store, request(node, *_lanes("limited")))
    await store.put_record("api_key", TENANT, "a", b"\x00\xff")
    await store.put_record("api_key", "another", "a", b"b", expires_at=now + DAY)
    await store.put_record("api_key", TENANT, "gone", b"c", expires_at=now + 2)
    await store.leave(await joined(store, name="left"))
    await passed(store, now + 3)


async def _add_live_jobs(store: Store, node: NodeId) -> None:
    now = await store.time()
    await add(store, job(now + 9 * DAY, unique_key="later", owner="ann", tenant="another"))
    await add(store, job(now + 9 * DAY, unique_key="later", labels=b'{"a":"b"}', policies=b"{}"))
    await handed_over(store, node, job(now - HOUR, limit_key="outside"), now + HOUR)
    tried = await started(store, node, job(now - HOUR, payload=b'{"x":[1,2]}', target_spec=None))
    assert await store.take_once(tried.id, 1, "paid", new_id(0)) is OnceReply.TAKEN
    assert await store.take_once(tried.id, 1, "mailed", new_id(0)) is OnceReply.TAKEN
    assert await store.save_progress([AttemptUpdate(tried.id, 1, b'{"at":3}', b'{"done":5}')]) == []
    assert await settle(store, [retry(tried, now + 9 * DAY, now)]) == []
    lost = await started(store, node, job(now - HOUR))
    assert await settle(store, [loss(lost, now)]) == []
    again = await claim_one(store, node)
    assert await record_start(store, again.id, again.attempt)
    await store.cancel_job(TENANT, again.id, "not needed")


async def _add_past_jobs(store: Store, node: NodeId) -> None:
    now = await store.time()
    await finished(store, node, job(now - 3 * DAY), now - 2 * DAY)
    dead = await finished(store, node, job(now - HOUR, unique_key="old"), now, State.DEAD)
    assert await store.resolve_dead_job(TENANT, dead.id, job(now + 9 * DAY, retry_of=dead.id))
    timed_out = await started(store, node, job(now - HOUR))
    assert await settle(
        store, [ended(timed_out, State.DEAD, Ending.TIMED_OUT, now, result=b"{}", error="late")]
    ) == []  # fmt: skip
    cancelled = await add(store, job(now + HOUR))
    await store.cancel_job(TENANT, cancelled.id, "not needed")


async def _add_limited_jobs(store: Store, node: NodeId) -> None:
    """One runs, and others wait for its permit; a rate holds up another key."""
    now, one, rated = await store.time(), limit(1, target="one"), limit(rate=Rate(1, HOUR), target="rated")
    await set_limits(store, one, rated)
    await store.add_jobs(jobs(3, now - HOUR, limit_key="k", target="one"))
    await store.add_jobs(jobs(2, now - HOUR, limit_key="r", target="rated"))
    await store.add_jobs(jobs(2, now - HOUR, limit_key="s", target="rated"))
    await claim(store, request(node, targets=("one", "rated")))


def _lanes(queue: str) -> list[Lane]:
    return [Lane(queue, 5, 0)]


async def everything(store: Store) -> dict[RowKind, list[StoredRow]]:
    return {kind: await store.read_rows(kind, None, ALL) for kind in RowKind}


async def rewrite(store: Store) -> None:
    """Delete everything and write it again."""
    rows = await everything(store)
    for kind in RowKind:
        await store.write_rows(kind, [], None, None)
    for kind in RowKind:
        await store.write_rows(kind, rows[kind], None, None)


class RowReadConformance:
    async def test_rows_of_every_kind_are_read(self, store: Store) -> None:
        await fill(store)
        rows = await everything(store)
        assert all(len(rows[kind]) >= 2 for kind in RowKind), {kind: len(rows[kind]) for kind in RowKind}
        found = [row for row in rows[RowKind.JOBS] if isinstance(row, JobRow)]
        assert {row.state for row in found} == set(State) - {State.QUEUED}
        assert {len(row.attempts) for row in found} >= {0, 1}
        assert any(row.waits_for == "k" for row in found)
        assert any(row.permit is not None and row.node is None for row in found)
        assert any(row.begun for row in found)
        assert not any(row.started_at for row in found if not row.state.final)
        assert [len(row.markers) for row in found if row.markers] == [2]
        assert [row.key for row in rows[RowKind.RECORDS] if isinstance(row, Record)] == ["a", "a"]

    async def test_rows_come_in_pages_by_key(self, store: Store) -> None:
        await fill(store)
        for kind, rows in (await everything(store)).items():
            keys = [row_key(row) for row in rows]
            assert keys == sorted(set(keys)), kind
            paged: list[StoredRow] = []
            while page := await store.read_rows(kind, row_key(paged[-1]) if paged else None, 2):
                assert len(page) <= 2
                paged += page
            assert paged == rows

    async def test_a_row_is_the_job_that_callers_see(self, store: Store) -> None:
        await fill(store)
        for row in await store.read_rows(RowKind.JOBS, None, ALL):
            assert isinstance(row, JobRow)
            job = Job(**{one.name: getattr(row, one.name) for one in fields(Job)})
            assert job == await store.get_job(row.tenant, row.id)
            assert list(row.attempts) == await store.list_attempts(row.id)

    async def test_an_empty_store_has_no_rows(self, store: Store) -> None:
        assert not any((await everything(store)).values())


class RowWriteConformance:
    async def test_rows_come_back_as_they_were_written(self, store: Store) -> None:
        await fill(store)
        rows = await everything(store)
        queues, schedules = await store.queues(counted=True), await store.nodes()
        await rewrite(store)
        assert await everything(store) == rows
        assert (await store.queues(counted=True), await store.nodes()) == (queues, schedules)

    async def test_only_the_range_is_replaced(self, store: Store) -> None:
        await fill(store)
        for kind, rows in (await everything(store)).items():
            keys = [row_key(row) for row in rows]
            await store.write_rows(kind, [], keys[0], keys[1])
            assert await store.read_rows(kind, None, ALL) == [rows[0], *rows[2:]], kind
            await store.write_rows(kind, rows[1:2], keys[0], keys[1])
            await store.write_rows(kind, rows[1:], keys[0], None)
            assert await store.read_rows(kind, None, ALL) == rows, kind
            await store.write_rows(kind, rows[:1], None, keys[-1])
            assert await store.read_rows(kind, None, ALL) == rows[:1], kind

    async def test_another_handle_reads_written_rows(self, store: Store, second_store: Store) -> None:
        await fill(store)
        await rewrite(second_store)
        assert await everything(store) == await everything(second_store)

    async def test_a_finished_job_takes_the_place_of_the_live_one(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        draft = await add(store, job(now + 9 * DAY, unique_key="key"))
        await finished(store, node, other := job(now - HOUR), now)
        [past] = [
            row for row in await store.read_rows(RowKind.JOBS, None, ALL) if row_key(row) == (other.id,)
        ]
        assert isinstance(past, JobRow)
        ended = past._replace(id=draft.id, unique_key="key")
        await store.write_rows(RowKind.JOBS, [ended], None, None)
        assert await store.read_rows(RowKind.JOBS, None, ALL) == [ended]
        assert await store.get_job(TENANT, other.id) is None
        assert await store.add_jobs([new := job(now, unique_key="key")]) == [new.id]

    async def test_a_name_that_is_taken_outside_of_the_range_is_a_conflict(self, store: Store) -> None:
        now = await store.time()
        first = await add(store, job(now, unique_key="key"))
        second = await add(store, job(now + HOUR))
        rows = await store.read_rows(RowKind.JOBS, None, ALL)
        assert isinstance(rows[1], JobRow)
        same = rows[1]._replace(unique_key="key")
        with pytest.raises(Conflict):
            await store.write_rows(RowKind.JOBS, [same], (first.id,), (second.id,))
        assert await store.read_rows(RowKind.JOBS, None, ALL) == rows
        await store.write_rows(RowKind.JOBS, [same], None, (second.id,))
        assert await store.read_rows(RowKind.JOBS, None, ALL) == [same]


class RowLifeConformance:
    """What was written goes on as if it had always been here."""

    async def test_a_written_pending_job_is_claimed_when_it_is_due(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        due, later = await add(store, job(now - HOUR)), await add(store, job(now + HOUR))
        await rewrite(store)
        assert (await claim_one(store, node)).id == due.id
        assert (await store.due_jobs(request(node))).next_at == later.due_at

    async def test_a_written_job_holds_its_unique_key(self, store: Store) -> None:
        now = await store.time()
        draft = await add(store, job(now + HOUR, unique_key="key"))
        await rewrite(store)
        assert await store.add_jobs([job(now + HOUR, unique_key="key")]) == [draft.id]

    async def test_a_written_job_settles_and_passes_its_permit_on(self, store: Store) -> None:
        """Also the permit of an external job, which outlives the node that claimed it."""
        node, now, one = await joined(store), await store.time(), limit(1)
        await set_limits(store, one)
        claimed = await handed_over(store, node, job(now - HOUR, limit_key="k"), now + HOUR)
        waiting = await add(store, job(now - MINUTE, limit_key="k"))
        assert await claim(store, request(node)) == []
        await rewrite(store)
        assert await claim(store, request(node, sweep=True)) == []
        assert await settle(store, [success(claimed, now)]) == []
        assert (await claim_one(store, node, sweep=True)).id == waiting.id

    async def test_a_written_external_job_has_its_deadline(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await handed_over(store, node, job(now - HOUR), now - MINUTE)
        await rewrite(store)
        assert [row.id for row in await store.running_jobs(PastDeadline(), ALL)] == [claimed.id]

    async def test_a_written_rate_is_still_spent(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(rate=Rate(1, HOUR)))
        await store.add_jobs(jobs(3, now - HOUR, limit_key="k"))
        claimed = await claim_one(store, node)
        await store.set_queue(Queue("slow", rate=Rate(1, HOUR)))
        await store.add_jobs(jobs(2, now - HOUR, queue="slow"))
        await claim_one(store, node, lanes=(Lane("slow", 5, 0),))
        assert await settle(store, [success(claimed, now)]) == []
        await rewrite(store)
        assert await claim(store, request(node, Lane(QUEUE, 5, 0), Lane("slow", 5, 0), sweep=True)) == []

    async def test_a_written_attempt_of_a_dead_node_is_found(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now - HOUR))
        await store.leave(node)
        await rewrite(store)
        assert [row.id for row in await store.running_jobs(OfNode(node), ALL)] == [claimed.id]
        assert [row.id for row in await store.running_jobs(OfDeadNodes(), ALL)] == [claimed.id]
        assert await settle(store, [loss(claimed, now)]) == []

    async def test_ids_of_nodes_and_versions_of_records_rise(self, store: Store) -> None:
        node = Node(NodeId(NOWHERE), "gone", ("worker",), "1", 5, 6, True, False, None)
        await store.write_rows(RowKind.NODES, [node], None, None)
        assert await store.nodes() == [node]
        assert await joined(store) > NOWHERE
        record = Record("kind", TENANT, "key", b"value", NOWHERE, None)
        await store.write_rows(RowKind.RECORDS, [record], None, None)
        assert await store.get_record("kind", TENANT, "key") == record
        assert await store.put_record("kind", TENANT, "other", b"") > NOWHERE
        marker = Record("a", TENANT, "key", b"value", 0, None)
        await store.write_rows(RowKind.RECORDS, [marker], None, ("a", TENANT, "key"))
        assert await store.get_record("a", TENANT, "key") == marker
        await store.put_record("a", TENANT, "key", None)
        assert await store.get_record("a", TENANT, "key") is None

    async def test_a_written_record_replaces_an_expired_one(self, store: Store) -> None:
        now = await store.time()
        await store.put_record("kind", TENANT, "key", b"old", expires_at=now + 2)
        await passed(store, now + 3)
        record = Record("kind", TENANT, "key", b"new", NOWHERE, None)
        await store.write_rows(RowKind.RECORDS, [record], None, None)
        await store.prune(now - DAY)
        assert await store.get_record("kind", TENANT, "key") == record

    async def test_a_written_schedule_fires_from_its_cursor(self, store: Store) -> None:
        now = await store.time()
        planned = await put(store, schedule(), now - MINUTE)
        await fired(store, planned, now, now - MINUTE)
        before = await known(store)
        await rewrite(store)
        assert await store.list_schedules(DueSchedules(ALL_SEGMENTS, now), ALL) == [before]
        assert await store.get_schedule(TENANT, before.id) == before
        assert [row.version for row in await store.list_versions(TENANT, "schedule", ALL)] == [1]
        assert await store.fire([firing(planned, now, now - MINUTE)]) == 0
        assert await store.fire([firing(before, now + HOUR, now - MINUTE, now)]) == 1
        assert len(await store.read_rows(RowKind.JOBS, None, ALL)) == 2

    async def test_written_versions_continue(self, store: Store) -> None:
        now = await store.time()
        await put(store, schedule(), now)
        await remove_schedule(store, TENANT, "schedule")
        await rewrite(store)
        again = await put(store, schedule(), now)
        assert isinstance(again, Schedule)
        assert again.version == 3

    async def test_a_written_schedule_runs_one_job_at_a_time(self, store: Store) -> None:
        node, now, number = await joined(store), await store.time(), new_id(0)
        first = await started(store, node, of_schedule(number, now - HOUR, "queue"))
        second = await add(store, of_schedule(number, now - MINUTE, "queue"))
        assert await claim(store, request(node)) == []
        await rewrite(store)
        assert await claim(store, request(node, sweep=True)) == []
        assert await settle(store, [death(first, now)]) == []
        assert (await claim_one(store, node, sweep=True)).id == second.id

    async def test_old_written_jobs_are_pruned(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        old = await finished(store, node, job(now - 9 * DAY), now - 8 * DAY)
        kept = await finished(store, node, job(now - 9 * DAY), now - 2 * DAY)
        await rewrite(store)
        await store.prune(now - 3 * DAY)
        assert await store.get_job(TENANT, old.id) is None
        assert (await stored(store, kept.id)).state is State.SUCCEEDED
