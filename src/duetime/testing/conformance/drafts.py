"""What the suite stores and sends: small makers with defaults, so that a test states only what it is
about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from duetime.engine.plan.leases import StoreLeases, read_leases
from duetime.model.ids import SEGMENTS, Ids, fire_id
from duetime.model.instant import SECOND, Micros
from duetime.model.job import DEFAULT_TENANT, Claimed, Ending, Job, JobDraft, State
from duetime.model.lease import NodeDraft, NodeId
from duetime.model.limit import QueueCounts, Rate, TaskLimit
from duetime.model.schedule import Fire, Firing, Missed, Schedule, ScheduleDraft
from duetime.model.settle import Settlement
from duetime.model.when import Every
from duetime.store import AttemptUpdate, ClaimRequest, Lane, ScheduleState, Store, Successors

MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
TENANT, QUEUE, PRIORITY, TARGET = DEFAULT_TENANT, "queue", 5, "task"
LANE = Lane(QUEUE, PRIORITY, 0)
ALL_SEGMENTS = range(SEGMENTS)
Decide = Callable[[Claimed, Micros], Settlement]
_ids = Ids()


# -- jobs
def job(due_at: Micros, **changes: Any) -> JobDraft:
    """A one-off whose fire time is its due time."""
    fire_time = changes.pop("fire_time", due_at)
    plain = JobDraft(
        id=_ids.new(fire_time),
        tenant=TENANT,
        schedule_id=None,
        schedule=None,
        fire_time=fire_time,
        due_at=due_at,
        queue=QUEUE,
        priority=PRIORITY,
        overlap=None,
        target=TARGET,
        target_spec=None,
        payload=b"{}",
        policies=None,
        owner=None,
        labels=None,
        unique_key=None,
        retry_of=None,
    )
    return plain._replace(**changes)


def jobs(number: int, first_due_at: Micros, **changes: Any) -> list[JobDraft]:
    """Due one microsecond after another."""
    return [job(first_due_at + position, **changes) for position in range(number)]


def of_schedule(schedule_id: UUID, due_at: Micros, overlap: str | None, **changes: Any) -> JobDraft:
    return job(due_at, schedule_id=schedule_id, schedule="schedule", overlap=overlap, **changes)


def new_id(fire_time: Micros) -> UUID:
    return _ids.new(fire_time)


async def add(store: Store, draft: JobDraft) -> JobDraft:
    assert await store.add_jobs([draft]) == [draft.id]
    return draft


async def stored(store: Store, job_id: UUID, tenant: str = TENANT) -> Job:
    found = await store.get_job(tenant, job_id)
    assert found is not None, f"job {job_id} is gone"
    return found


# -- nodes and claims
async def joined(store: Store, ttl: Micros = HOUR, name: str = "node") -> NodeId:
    return await store.join(NodeDraft(name, ("worker",), "1"), ttl)


async def expired(store: Store) -> NodeId:
    """A node whose lease has ended and that is not declared dead yet."""
    node = await joined(store, ttl=1)
    await lapsed(store)
    return node


async def lapsed(store: Store) -> None:
    """Until a lease of one microsecond taken before this call has ended."""
    await passed(store, await store.time() + 2)


async def passed(store: Store, moment: Micros) -> None:
    """Until the store's clock has reached this instant, which must not be far."""
    while await store.time() < moment:
        pass


def request(node: NodeId, *lanes: Lane, **changes: Any) -> ClaimRequest:
    plain = ClaimRequest(node=node, lanes=lanes or (LANE,), targets=(TARGET,), room=100, prefetch=0)
    return replace(plain, **changes)


def limit(max_running: int | None = None, rate: Rate | None = None, target: str = TARGET) -> TaskLimit:
    return TaskLimit(target, max_running, rate)


async def set_limits(store: Store, *limits: TaskLimit) -> None:
    """As a node whose code states these limits does when it starts."""
    await store.leave(await store.join(NodeDraft("limits", (), "1", limits), HOUR))


async def claim(store: Store, wanted: ClaimRequest, limits: tuple[TaskLimit, ...] = ()) -> list[Claimed]:
    """Everything a worker gets that asks again as long as the store says that there may be more."""
    if limits:
        await set_limits(store, *limits)
    jobs, more = await store.claim(wanted)
    while more and len(jobs) < wanted.room:
        found, more = await store.claim(replace(wanted, room=wanted.room - len(jobs)))
        jobs = jobs + found
    return jobs


async def claim_one(
    store: Store, node: NodeId, limits: tuple[TaskLimit, ...] = (), **changes: Any
) -> Claimed:
    [claimed] = await claim(store, request(node, **changes), limits)
    return claimed


async def started(store: Store, node: NodeId, draft: JobDraft) -> Claimed:
    """Store this job and claim it."""
    await add(store, draft)
    lane = Lane(draft.queue, draft.priority, 0, draft.tenant)
    claimed = await claim(store, request(node, lane, room=1, targets=(draft.target,), prefetch=DAY))
    assert [row.id for row in claimed] == [draft.id]
    return claimed[0]


async def record_start(store: Store, job_id: UUID, attempt: int) -> bool:
    return await store.save_progress([AttemptUpdate(job_id, attempt, started=True)]) == []


async def extend_deadline(store: Store, job_id: UUID, attempt: int, deadline: Micros) -> bool:
    return await store.save_progress([AttemptUpdate(job_id, attempt, deadline=deadline)]) == []


async def announce(store: Store, job_id: UUID, tenant: str = TENANT) -> bool:
    """Have the end of this job announced; whether it is live."""
    found = await store.get_job(tenant, job_id, announce=True)
    return found is not None and not found.state.final


async def live_counts(store: Store) -> dict[str, QueueCounts]:
    """By queue, where there are live jobs."""
    queues = await store.queues(counted=True)
    return {queue.name: queue.counts for queue in queues if queue.counts is not None and any(queue.counts)}


# -- settlements
def ended(claimed: Claimed, state: State, ending: Ending, finished_at: Micros, **changes: Any) -> Settlement:
    plain = Settlement(
        id=claimed.id,
        attempt=claimed.attempt,
        state=state,
        due_at=claimed.due_at,
        failures=claimed.failures,
        losses=claimed.losses,
        ending=ending,
        started_at=finished_at - 1_000,
        finished_at=finished_at,
        result=None,
        error=None,
    )
    return plain._replace(**changes)


def success(claimed: Claimed, finished_at: Micros, **changes: Any) -> Settlement:
    return ended(claimed, State.SUCCEEDED, Ending.SUCCEEDED, finished_at, **changes)


def death(claimed: Claimed, finished_at: Micros, **changes: Any) -> Settlement:
    return ended(
        claimed,
        State.DEAD,
        Ending.FAILED,
        finished_at,
        **{"failures": claimed.failures + 1, "error": "boom", **changes},
    )


def retry(claimed: Claimed, due_at: Micros, finished_at: Micros, **changes: Any) -> Settlement:
    changes = {"failures": claimed.failures + 1, "error": "boom", "due_at": due_at, **changes}
    return ended(claimed, State.PENDING, Ending.FAILED, finished_at, **changes)


def retry_later(claimed: Claimed, finished_at: Micros) -> Settlement:
    return retry(claimed, finished_at + HOUR, finished_at)


def release(claimed: Claimed, finished_at: Micros, **changes: Any) -> Settlement:
    return ended(claimed, State.PENDING, Ending.RELEASED, finished_at, **{"started_at": None, **changes})


def loss(claimed: Claimed, finished_at: Micros, **changes: Any) -> Settlement:
    changes = {"losses": claimed.losses + 1, "started_at": None, "error": "its worker died", **changes}
    return ended(claimed, State.PENDING, Ending.LOST, finished_at, **changes)


def hand_over(claimed: Claimed, due_at: Micros, finished_at: Micros, **changes: Any) -> Settlement:
    return ended(claimed, State.RUNNING, Ending.SNOOZED, finished_at, **{"due_at": due_at, **changes})


async def handed_over(store: Store, node: NodeId, draft: JobDraft, due_at: Micros) -> Claimed:
    """Store this job, claim it and hand it over to a worker outside, who must report by this instant."""
    claimed = await started(store, node, draft)
    assert await settle(store, [hand_over(claimed, due_at, await store.time())]) == []
    return claimed._replace(due_at=due_at)


async def finished(
    store: Store, node: NodeId, draft: JobDraft, finished_at: Micros, state: State = State.SUCCEEDED
) -> JobDraft:
    """Store this job, claim it and end it."""
    claimed = await started(store, node, draft)
    decision = success(claimed, finished_at) if state is State.SUCCEEDED else death(claimed, finished_at)
    assert await settle(store, [decision]) == []
    return draft


async def settle(
    store: Store, settlements: list[Settlement], successors: Successors | None = None
) -> list[UUID]:
    """The ids that were refused."""
    refused, following = await store.settle(settlements, successors)
    assert successors is not None or following == []
    return refused


# -- schedules
def schedule(name: str = "schedule", **changes: Any) -> ScheduleDraft:
    plain = ScheduleDraft(
        id=_ids.new(0),
        tenant=TENANT,
        name=name,
        when=Every("1h"),
        target=TARGET,
        target_spec=None,
        payload=b"{}",
        policies=None,
        queue=QUEUE,
        priority=PRIORITY,
        overlap=None,
        missed=Missed(),
        jitter="0s",
        start_at=None,
        end_at=None,
        max_runs=None,
        owner=None,
        labels=None,
    )
    return replace(plain, **changes)


async def put(store: Store, draft: ScheduleDraft, cursor: Micros | None) -> Schedule:
    made = await put_schedule(store, draft, cursor)
    assert made is not None
    return made


async def put_schedule(
    store: Store,
    draft: ScheduleDraft,
    cursor: Micros | None,
    expect_version: int | None = None,
    author: str | None = None,
) -> Schedule | None:
    """Create or replace; a schedule that is paused stays so."""
    found = await store.get_schedule(draft.tenant, draft.name)
    paused, note = (False, None) if found is None else (found.paused, found.pause_note)
    expected = expect_version if expect_version is not None else 0 if found is None else found.version
    return await store.write_schedule(
        draft.tenant, draft.name, ScheduleState(draft, cursor, paused, note), expected, author
    )


async def pause_schedule(
    store: Store, tenant: str, name: str, note: str | None, author: str | None = None
) -> Schedule | None:
    """Repeated when another writer was first."""
    while (found := await store.get_schedule(tenant, name)) is not None:
        state = ScheduleState(found.draft, found.next_fire_time, True, note)
        if (paused := await store.write_schedule(tenant, name, state, found.version, author)) is not None:
            return paused
    return None


async def resume_schedule(
    store: Store,
    tenant: str,
    name: str,
    cursor: Micros | None,
    author: str | None = None,
    expect_version: int | None = None,
) -> Schedule | None:
    found = await store.get_schedule(tenant, name)
    if found is None or not found.paused:
        return found
    expected = found.version if expect_version is None else expect_version
    return (
        await store.write_schedule(tenant, name, ScheduleState(found.draft, cursor), expected, author)
        or found
    )


async def remove_schedule(
    store: Store, tenant: str, name: str, author: str | None = None, expect_version: int | None = None
) -> Schedule | None:
    found = await store.get_schedule(tenant, name)
    expected = expect_version if expect_version is not None else 0 if found is None else found.version
    return await store.write_schedule(tenant, name, None, expected, author)


async def known(store: Store, name: str = "schedule") -> Schedule:
    found = await store.get_schedule(TENANT, name)
    assert found is not None, f"schedule {name!r} is gone"
    return found


def fires(schedule_id: UUID, *moments: Micros, skip_reason: str | None = None) -> tuple[Fire, ...]:
    return tuple(Fire(fire_id(schedule_id, moment), moment, moment, skip_reason) for moment in moments)


def firing(planned: Schedule, next_fire_time: Micros | None, *moments: Micros, **changes: Any) -> Firing:
    """The step from the cursor the schedule has now."""
    assert planned.next_fire_time is not None
    runs = planned.runs + len(moments)
    made = fires(planned.id, *moments)
    return replace(
        Firing(planned.id, planned.version, planned.next_fire_time, next_fire_time, runs, made), **changes
    )


async def fired(
    store: Store, planned: Schedule, next_fire_time: Micros | None, *moments: Micros
) -> list[UUID]:
    """Turn these moments into jobs; answers their ids."""
    step = firing(planned, next_fire_time, *moments)
    assert await store.fire([step]) == 1
    return [fire.id for fire in step.fires]


# -- leases, records, events
async def take_leases(store: Store, node: NodeId, names: list[str]) -> list[str]:
    """Besides those the node holds already."""
    holder = StoreLeases(store, node, lambda: True)
    await holder.hold([*await _held_by(store, node), *names])
    return [name for name in names if name in holder.held]


async def drop_leases(store: Store, node: NodeId, names: list[str]) -> None:
    kept = [name for name in await _held_by(store, node) if name not in names]
    await StoreLeases(store, node, lambda: True).hold(kept)


async def _held_by(store: Store, node: NodeId) -> list[str]:
    return [lease.name for lease in await read_leases(store) if lease.holder == node]


async def delete_record(store: Store, kind: str, tenant: str, key: str) -> bool:
    return await store.put_record(kind, tenant, key, None) > 0


async def events_after(store: Store, after: int, limit: int) -> list[tuple[int, bytes]]:
    return (await store.list_events(after, limit)).events


async def last_event(store: Store) -> int:
    return (await store.list_events(0, 0)).last_id
