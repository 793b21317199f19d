"""One claim: the candidates, the decision about them, and its execution."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import merge
from itertools import islice
from uuid import UUID

from duetime.model.hint import CancelHint, Hint, JobHint
from duetime.model.ids import segment_of
from duetime.model.instant import Micros
from duetime.model.job import State
from duetime.model.limit import UNLIMITED
from duetime.model.permits import (
    READY_PER_KEY,
    SUPERSEDED,
    Candidate,
    Decision,
    Usage,
    decide,
    promotable,
    skip_reason,
)
from duetime.store import ClaimRequest, Due, DueJob, Lane
from duetime.stores.memory.jobs import MemoryJobs
from duetime.stores.memory.row import Row

WINDOW = 16 * READY_PER_KEY  # candidates beyond the room: keys that take turns


class MemoryClaim:
    def __init__(self, jobs: MemoryJobs, request: ClaimRequest, now: Micros) -> None:
        self._jobs = jobs
        self._request = request
        self._targets = frozenset(request.targets)
        self._now = now
        self.taken: list[Row] = []
        self.more = False  # another claim may find more now
        self.hints: list[Hint] = []

    def run(self) -> None:
        if self._request.sweep and not self._request.urgent:
            self._find_free_permits()
        rows = self._named() if self._request.tickets else self._candidates()
        queues = {
            queue: use
            for queue in {row.draft.queue for row in rows}
            if (use := self._jobs.limits.queue_use(queue))
        }
        if queues or any(row.needs_permit for row in rows):
            self._decide(rows, Usage(self._now, queues=queues))
        else:
            for position, row in enumerate(rows):
                if position < self._request.room:
                    self._start(row, None)
                else:
                    self._jobs.lanes.push(row)

    def _candidates(self) -> list[Row]:
        """Taken out of their lanes, in the order of the lanes."""
        found: list[Row] = []
        for lane in self._request.lanes:
            if not self._jobs.lanes.is_empty(lane) and not self._jobs.limits.paused(lane.queue):
                found += self._of_lane(lane, self._request.room - sum(not row.needs_permit for row in found))
        return found

    def _named(self) -> list[Row]:
        """The same for jobs that tickets name."""
        found: list[Row] = []
        for ticket in dict.fromkeys(self._request.tickets):
            row = self._jobs.live.get(ticket.id)
            if row is not None and row.attempt == ticket.attempt and self._is_claimable(row):
                self._jobs.lanes.forget(row)
                found.append(row)
        return found

    def _is_claimable(self, row: Row) -> bool:
        return (
            row.state is State.PENDING
            and row.waits_for is None
            and row.draft.due_at <= self._now + self._request.prefetch
            and row.draft.target in self._targets
            and not self._jobs.limits.paused(row.draft.queue)
        )

    def _of_lane(self, lane: Lane, room: int) -> Iterable[Row]:
        lanes, until = self._jobs.lanes, self._now + self._request.prefetch
        plain: list[Row] = []
        early: list[Row] = []  # below the bound: left to the sweep
        if room > 0:
            for row in lanes.take(lane, self._targets, until, bound=False):
                (plain if row.draft.due_at >= lane.low else early).append(row)
                if len(plain) >= room:
                    break
        for row in early:
            lanes.push(row)
        bound = list(islice(lanes.take(lane, self._targets, until, bound=True), self._request.room + WINDOW))
        return merge(plain, bound, key=lambda row: row.draft.due_at)

    def _decide(self, rows: list[Row], usage: Usage) -> None:
        limits, drafts = self._jobs.limits, [row.draft for row in rows]
        usage.limits = limits.by_target
        usage.keys = {
            draft.limit_key: limits.key_use(draft.limit_key)
            for draft in drafts
            if draft.limit_key is not None
        }
        usage.rivals = {
            row.draft.id: rival.draft.id for row in rows if (rival := self._jobs.rival_of(row)) is not None
        }
        permits = self._request.room if self._request.permits is None else self._request.permits
        decision = decide(
            [_candidate(row) for row in rows], usage, self._request.room, permits, self._request.keyed_first
        )
        self._execute({row.draft.id: row for row in rows}, decision)

    def _execute(self, rows: dict[UUID, Row], decision: Decision) -> None:
        jobs = self._jobs
        jobs.limits.spend(decision.keys, decision.queues)
        for job_id in decision.start:
            row = rows.pop(job_id)
            self._start(row, jobs.new_permit() if row.draft.limit_key is not None else None)
        for job_id, name in decision.wait.items():
            jobs.lanes.wait(rows.pop(job_id), name)
        for job_id, in_the_way in decision.skip.items():
            jobs.finish(rows.pop(job_id), State.SKIPPED, self._now, skip_reason(in_the_way))
        for job_id, due_at in decision.ask_at.items():
            rows[job_id].draft = rows[job_id].draft._replace(due_at=due_at)
        for row in rows.values():
            jobs.lanes.push(row)
        for job_id in decision.cancel:
            self._ask_to_stop(jobs.live[job_id])
        promoted = [
            row for name, number in decision.promote.items() for row in jobs.lanes.promote(name, number)
        ]
        self.more = decision.set_aside or bool(promoted)

    def _start(self, row: Row, permit: UUID | None) -> None:
        self._jobs.start(row, self._request.node, self._now, permit)
        self.taken.append(row)

    def _ask_to_stop(self, row: Row) -> None:
        """A retry that waits need not wait any longer to hear that it is to stop."""
        if row.cancel_requested:
            return
        row.cancel_requested, row.error = True, SUPERSEDED
        if row.node is not None:
            self.hints.append(CancelHint(row.node, row.draft.id))
        elif row.state is State.PENDING:
            self._jobs.reschedule(row, min(row.draft.due_at, self._now), row.draft.priority)
            self.hints.append(JobHint(row.draft.queue, row.draft.priority, self._now, row.draft.tenant))

    def _find_free_permits(self) -> None:
        """Jobs that wait although a permit is free: a limit was raised, or the job that was to ask is
        gone."""
        limits, lanes = self._jobs.limits, self._jobs.lanes
        for name in lanes.names():
            row = lanes.first_waiting(name)
            if row is not None and name == row.draft.limit_key:
                limit = limits.by_target.get(row.draft.target, UNLIMITED)
                lanes.promote(name, promotable(limit, limits.key_use(name), self._now))
            elif row is not None and not self._jobs.started_of(row.draft.schedule_id):
                lanes.promote(name, 1)


def next_due(jobs: MemoryJobs, request: ClaimRequest, now: Micros) -> Micros | None:
    targets = frozenset(request.targets)
    found: list[Micros | None] = []
    for lane in request.lanes:
        if jobs.lanes.is_empty(lane) or jobs.limits.paused(lane.queue):
            continue
        found.append(jobs.lanes.next_due(lane, targets, now, request.prefetch))
        free_at = jobs.limits.free_at(lane.queue, now)
        if free_at is not None and jobs.lanes.has_due(lane, targets, now + request.prefetch):
            found.append(free_at)
    return min((instant for instant in found if instant is not None), default=None)


def due_jobs(jobs: MemoryJobs, request: ClaimRequest, now: Micros) -> Due:
    until, segments = now + request.prefetch, frozenset(request.segments)
    due: list[DueJob] = []
    later: list[Micros] = []
    for lane in request.lanes:
        found: list[DueJob] = []
        for bound in (False, True) if not jobs.limits.paused(lane.queue) else ():
            low = 0 if bound else lane.low
            rows = (row for row in jobs.lanes.in_order(lane, bound=bound) if row.draft.due_at >= low)
            listed = [
                _due_job(row)
                for row in islice(
                    (row for row in rows if segment_of(row.draft.id) in segments), request.room + 1
                )
            ]
            later += [job.due_at for job in listed if job.due_at > until][:1]
            found += [job for job in listed[: request.room] if job.due_at <= until]
        due += sorted(found, key=lambda job: job.due_at)
    return Due(due, min(later, default=None))


def _due_job(row: Row) -> DueJob:
    draft = row.draft
    return DueJob(
        draft.id, row.attempt, draft.queue, draft.priority, draft.tenant, draft.due_at, row.needs_permit
    )


def _candidate(row: Row) -> Candidate:
    draft = row.draft
    return Candidate(
        draft.id,
        draft.queue,
        draft.priority,
        draft.due_at,
        draft.fire_time,
        row.attempt,
        draft.target,
        draft.limit_key,
        draft.schedule_id,
        draft.overlap,
        draft.tenant,
    )
