"""Remote workers: programs in any language that claim, run and report jobs over HTTP.

Each is a node in the store. Any process of the service answers its requests: what a process remembers about a
worker is only a cache of what the store knows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple
from uuid import UUID

from duetime.app.claim_groups import LOOK_INTERVAL, ClaimGroups, GroupName
from duetime.app.reports import (
    Alive,
    Decided,
    Ended,
    OutputText,
    Released,
    ReportWriter,
    claimed_of,
    outcome_of,
    update_of,
)
from duetime.clock import Clock
from duetime.engine.node.reaper import DEFAULT_POLICIES
from duetime.engine.node.registry import ALL_TENANTS, NODE, PROFILE_TTL
from duetime.engine.run.output import append_output
from duetime.engine.run.perform import Stop, classify, decide, effective
from duetime.engine.run.start_check import StartCheck
from duetime.engine.submit.build import at_number
from duetime.errors import InvalidInput, WorkerNotFound
from duetime.invoker import Policies
from duetime.model import duration
from duetime.model.events import JobsClaimed
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed, Ending, Job, JobFilter, Outcome, State
from duetime.model.lease import NodeDraft, NodeId
from duetime.model.profile import NodeProfile
from duetime.model.retry import Retry
from duetime.model.settle import QUARANTINE_LOSSES, Settlement, poisoned, skip
from duetime.model.views import ClaimedJob, StopNotice
from duetime.observer import Observer
from duetime.store import AttemptUpdate, Store

MIN_LEASE, MAX_LEASE = SECOND, 600 * SECOND
BEATS_PER_LEASE = 3
MAX_CONCURRENCY = 1_000
MAX_HELD = 10_000  # running jobs of one worker: each process that serves it allows `concurrency`
MAX_WORKERS = 10_000  # known to this process
MIN_READ_INTERVAL = SECOND  # between heartbeats that read all jobs that the worker holds
RUNNING = frozenset({State.RUNNING})
NOT_DELIVERED = "its worker does not know it: the answer to the claim was lost"
StopReason = Literal["cancelled", "timed_out", "lost"]
AttemptKey = tuple[UUID, int]  # the id of a job, and the number of the attempt


class Held(NamedTuple):
    job: Claimed  # without payload
    started_at: Micros


class End(NamedTuple):
    key: AttemptKey
    outcome: Outcome
    started: bool = True


@dataclass(slots=True)
class RemoteNode:
    """One remote worker, as this process knows it."""

    id: NodeId
    profile: NodeProfile
    record_expires_at: Micros
    held: dict[AttemptKey, Held] = field(default_factory=dict)
    read_at: Micros | None = None  # when `held` was read from the store; None: it must be read
    claiming: asyncio.Lock = field(default_factory=asyncio.Lock)  # two claims would both use the same room
    settled: asyncio.Event = field(default_factory=asyncio.Event)  # since the last wait for room
    policies: dict[str, Policies] = field(init=False)

    def __post_init__(self) -> None:
        self.policies = {task: _policies(own) for task, own in self.profile.policies.items()}

    def policies_of(self, job: Claimed) -> Policies:
        """Of the task. Those of the job come first: `effective`."""
        return self.policies.get(job.target, DEFAULT_POLICIES)

    @property
    def free(self) -> int:
        return self.profile.concurrency - len(self.held)

    @property
    def group(self) -> GroupName:
        return GroupName(self.profile.tenant or "", self.profile.queues, self.profile.targets)

    @property
    def heartbeat_interval(self) -> Micros:
        return self.profile.lease // BEATS_PER_LEASE


class RemoteWork:
    def __init__(self, store: Store, clock: Clock, reports: ReportWriter, tell: Observer) -> None:
        self._store = store
        self._clock = clock
        self._reports = reports
        self._tell = tell
        self._groups = ClaimGroups(store, clock)
        self._start_check = StartCheck(store, clock)
        self._nodes: dict[NodeId, RemoteNode] = {}

    def close(self) -> None:
        self._groups.close()

    # -- coming and going
    async def join(self, name: str, version: str, profile: NodeProfile) -> RemoteNode:
        if not MIN_LEASE <= profile.lease <= MAX_LEASE:
            raise InvalidInput(
                "lease", f"must be from {duration.show(MIN_LEASE)} to {duration.show(MAX_LEASE)}"
            )
        draft = NodeDraft(name, ("worker",), version, remote=True)
        node = RemoteNode(await self._store.join(draft, profile.lease), profile, 0, read_at=self._clock.now())
        await self._publish(node)
        return self._remember(node)

    async def find(self, tenant: str, worker: int) -> RemoteNode:
        known = self._nodes.get(NodeId(worker))
        if known is None:
            record = await self._store.get_record(NODE, ALL_TENANTS, str(worker))
            profile = None if record is None else NodeProfile.from_bytes(record.value)
            if record is None or profile is None or profile.tenant is None:
                raise _unknown(worker)
            known = self._remember(RemoteNode(NodeId(worker), profile, record.expires_at or 0))
        if known.profile.tenant != tenant:
            raise _unknown(worker)
        return known

    async def leave(self, node: RemoteNode) -> None:
        """The worker ends in good order: what it has not reported is released."""
        await self._read_held(node)
        gone = Outcome(Ending.RELEASED, error="its worker has left")
        await self._settle(node, [End(key, gone) for key in node.held])
        await self._store.leave(node.id)
        await self._store.put_record(NODE, ALL_TENANTS, str(node.id), None)
        self._nodes.pop(node.id, None)

    # -- claiming
    async def claim(self, node: RemoteNode, room: int) -> list[ClaimedJob]:
        """Due jobs that may start now: at most `room`, and with those it holds at most its concurrency."""
        async with node.claiming:
            room = min(room, await self._free(node))
            if room <= 0:
                return []
            began = self._clock.monotonic()
            jobs = await self._groups.get(node.group).claim(node.id, room)
            if not jobs:
                return []
            ready = await self._startable(node, jobs)
            self._tell(JobsClaimed([job for job, _ in ready], self._clock.monotonic() - began))
            now = self._clock.now()
            for job, _ in ready:
                node.held[job.id, job.attempt] = Held(_without_payload(job), now)
        return [
            ClaimedJob.of(job, None if policies.timeout is None else now + policies.timeout)
            for job, policies in ready
        ]

    async def _free(self, node: RemoteNode) -> int:
        """How many jobs the worker may take. When it seems to have no room, the store counts: its reports may
        have come to another process."""
        if node.read_at is None:
            await self._read_held(node)
        held = len(node.held)
        if node.free <= 0 and await self._store.count_jobs(_held_by(node), held) < held:
            await self._read_held(node)
        return node.free

    async def wait(self, node: RemoteNode, limit: Micros) -> None:
        """Until there may be something to claim and room for it, or for so long."""
        if node.free > 0:
            await self._groups.get(node.group).wait(limit)
            return
        node.settled.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(min(limit, LOOK_INTERVAL) / SECOND):
                await node.settled.wait()

    async def _startable(self, node: RemoteNode, jobs: Sequence[Claimed]) -> list[tuple[Claimed, Policies]]:
        """Without those that are cancelled, too late, poisoned or must wait in quarantine."""
        ready: list[tuple[Claimed, Policies]] = []
        over: list[Decided] = []
        quarantine = any(_suspected(held.job) for held in node.held.values())
        for job in jobs:
            policies = effective(job, node.policies_of(job))
            end = await self._end_before_start(job, policies)
            if end is None and _suspected(job):
                end = self._later(job, policies) if quarantine else None
                quarantine = True
            if end is None:
                ready.append((job, policies))
            else:
                over.append((end, job))
        await self._reports.write(over)
        return await self._recorded(ready)

    async def _end_before_start(self, job: Claimed, policies: Policies) -> Settlement | None:
        if job.cancel_requested:
            outcome = Outcome(Ending.CANCELLED, error="cancelled before it started")
            return decide(job, outcome, policies, None, self._clock)
        if self._start_check.needed(job, policies):
            reason = await self._start_check.reason(job, policies)
            if reason is not None:
                return skip(job, reason, self._clock.now())
        return poisoned(job, policies.retry, self._clock.now()) if job.losses else None

    def _later(self, job: Claimed, policies: Policies) -> Settlement:
        """In quarantine a worker runs one job at a time."""
        released = decide(job, Outcome(Ending.RELEASED), policies, None, self._clock)
        return released._replace(due_at=max(job.due_at, self._clock.now() + SECOND))

    async def _recorded(self, ready: list[tuple[Claimed, Policies]]) -> list[tuple[Claimed, Policies]]:
        """Jobs that were lost before are recorded as started: a second loss can be attributed to them."""
        starts = [AttemptUpdate(job.id, job.attempt, started=True) for job, _ in ready if job.losses]
        refused = set(await self._store.save_progress(starts)) if starts else set()
        return [pair for pair in ready if pair[0].id not in refused]

    # -- reports
    async def settle(self, node: RemoteNode, reports: Sequence[tuple[UUID, Ended]]) -> list[AttemptKey]:
        """Returns the attempts that no longer run under this worker: their reports change nothing."""
        ends = [_end(number, job_id, report) for number, (job_id, report) in enumerate(reports)]
        await self._look_up(node, {end.key for end in ends})
        return await self._settle(node, ends)

    async def heartbeat(self, node: RemoteNode, alive: Sequence[tuple[UUID, Alive]]) -> list[StopNotice]:
        """Extend the lease. `alive` names every job of the worker whose report has not been answered."""
        beat = await self._store.beat(node.id, node.profile.lease)
        if not beat.alive:
            self._nodes.pop(node.id, None)
            raise _unknown(node.id)
        await self._publish(node)
        named = {(job_id, report.attempt) for job_id, report in alive}
        read_interval = max(MIN_READ_INTERVAL, node.heartbeat_interval // 2)
        if node.read_at is None or self._clock.now() - node.read_at >= read_interval:
            await self._read_held(node)
        else:
            await self._look_up(node, named)
            _note_cancels(node, set(beat.cancels))
        lost = named - node.held.keys()
        updates = [
            update_of(job_id, report)
            for job_id, report in alive
            if (job_id, report.attempt) not in lost and (report.checkpoint, report.progress) != (None, None)
        ]
        if updates:
            refused = set(await self._store.save_progress(updates))
            lost |= {key for key in named if key[0] in refused}
        return [_stop(key, "lost") for key in sorted(lost)] + await self._overdue(node, named - lost)

    async def add_output(
        self, node: RemoteNode, outputs: Sequence[tuple[AttemptKey, Sequence[OutputText]]], keep: Micros
    ) -> list[AttemptKey]:
        """Keep what jobs of the worker print, for so long. Returns the attempts that no longer run under this
        worker."""
        await self._look_up(node, {key for key, _ in outputs})
        for key, lines in outputs:
            if keep and key in node.held:
                await append_output(self._store, node.held[key].job, lines, keep, self._clock.now)
        return [key for key, _ in outputs if key not in node.held]

    async def _overdue(self, node: RemoteNode, named: Set[AttemptKey]) -> list[StopNotice]:
        """The jobs to stop. Ends attempts that go on long after their timeout, and those that the worker
        never received."""
        notices: list[StopNotice] = []
        ends: list[End] = []
        for key, (job, started_at) in node.held.items():
            lapse = self._clock.now() - started_at
            timeout = effective(job, node.policies_of(job)).timeout
            if key not in named and lapse > node.profile.lease:
                ends.append(End(key, Outcome(Ending.RELEASED, error=NOT_DELIVERED)))
            elif timeout is not None and lapse > timeout:
                notices.append(_stop(key, "timed_out"))
                if lapse > timeout + node.heartbeat_interval:
                    ends.append(End(key, classify(TimeoutError(), Stop.TIMEOUT)))
            elif job.cancel_requested:
                notices.append(_stop(key, "cancelled"))
        await self._settle(node, ends)
        return notices

    async def _settle(self, node: RemoteNode, ends: Iterable[End]) -> list[AttemptKey]:
        refused: list[AttemptKey] = []
        decided: list[Decided] = []
        for end in ends:
            held = node.held.pop(end.key, None)
            if held is None:
                refused.append(end.key)
                continue
            node.settled.set()
            since = held.started_at if end.started else None
            outcome = _unless_cancelled(held.job, end.outcome)
            policies = node.policies_of(held.job)
            decided.append((decide(held.job, outcome, policies, since, self._clock), held.job))
        written = await self._reports.write(decided)
        late = [one for (one, _), is_written in zip(decided, written, strict=True) if not is_written]
        return refused + [(one.id, one.attempt) for one in late]

    # -- what the store knows
    async def _read_held(self, node: RemoteNode) -> None:
        node.read_at = now = self._clock.now()
        rows = await self._store.list_jobs(_held_by(node), MAX_HELD)
        claimed_since = {key: held for key, held in node.held.items() if held.started_at >= now}
        node.held = {(row.id, row.attempt): _held(row, now) for row in rows} | claimed_since

    async def _look_up(self, node: RemoteNode, named: Set[AttemptKey]) -> None:
        """Those that this process does not know: they may have been claimed in another one."""
        ids = {job_id for job_id, _ in named - node.held.keys()}
        if not ids:
            return
        tenant, now = node.profile.tenant or "", self._clock.now()
        for row in await asyncio.gather(*(self._store.get_job(tenant, job_id) for job_id in ids)):
            if row is not None and row.state is State.RUNNING and row.node == node.id:
                node.held[row.id, row.attempt] = _held(row, now)

    async def _publish(self, node: RemoteNode) -> None:
        """Before half of its time is over, the record is renewed."""
        now = self._clock.now()
        if node.record_expires_at - now < PROFILE_TTL // 2:
            node.record_expires_at = now + PROFILE_TTL
            value = node.profile.to_bytes()
            await self._store.put_record(
                NODE, ALL_TENANTS, str(node.id), value, expires_at=node.record_expires_at
            )

    def _remember(self, node: RemoteNode) -> RemoteNode:
        if len(self._nodes) >= MAX_WORKERS:
            del self._nodes[next(iter(self._nodes))]
        self._nodes[node.id] = node
        return node


def _held_by(node: RemoteNode) -> JobFilter:
    return JobFilter(node.profile.tenant or "", states=RUNNING, node=node.id)


def _held(row: Job, now: Micros) -> Held:
    return Held(_without_payload(claimed_of(row)), row.started_at or now)


def _note_cancels(node: RemoteNode, cancels: Set[UUID]) -> None:
    for key in [key for key in node.held if key[0] in cancels] if cancels else []:
        job, started_at = node.held[key]
        node.held[key] = Held(job._replace(cancel_requested=True), started_at)


def _end(number: int, job_id: UUID, report: Ended) -> End:
    try:
        outcome = outcome_of(report)
    except InvalidInput as problem:
        raise at_number(problem, number) from None
    return End((job_id, report.attempt), outcome, not isinstance(report, Released) or report.started)


def _stop(key: AttemptKey, reason: StopReason) -> StopNotice:
    return StopNotice(id=key[0], attempt=key[1], reason=reason)


def _policies(own: Mapping[str, Any]) -> Policies:
    timeout = own.get("timeout")
    return Policies(
        retry=Retry.restore(own.get("retry") or {}),
        timeout=None if timeout is None else duration.parse(timeout, "timeout"),
    )


def _unless_cancelled(job: Claimed, outcome: Outcome) -> Outcome:
    """A job that was asked to stop ends as cancelled, unless it was quicker."""
    if not job.cancel_requested or outcome.ending is Ending.SUCCEEDED:
        return outcome
    return Outcome(Ending.CANCELLED, error=outcome.error or "cancelled while running")


def _suspected(job: Claimed) -> bool:
    return job.losses >= QUARANTINE_LOSSES


def _without_payload(job: Claimed) -> Claimed:
    return job._replace(payload=b"", checkpoint=None)


def _unknown(worker: int) -> WorkerNotFound:
    return WorkerNotFound(f"worker {worker} not found: it never joined or its lease has ended, join again")
