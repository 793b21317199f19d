"""Writing a decision about a running job, and passing its permits on."""

from __future__ import annotations

from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import State
from duetime.model.limit import UNLIMITED
from duetime.model.permits import schedule_permit
from duetime.model.settle import Settlement
from duetime.store import Successors
from duetime.stores.memory.jobs import MemoryJobs
from duetime.stores.memory.row import Row


class MemorySettle:
    def __init__(self, jobs: MemoryJobs, successors: Successors | None, now: Micros) -> None:
        self._jobs = jobs
        self._wanted = successors
        self._now = now
        self.refused: list[UUID] = []
        self.successors: list[Row] = []
        self.claimable: list[Row] = []  # may start now, on any node

    def write(self, decision: Settlement) -> None:
        row = self._jobs.running(decision.id, decision.attempt)
        if row is None:
            if not _was_written(self._jobs, decision):
                self.refused.append(decision.id)
        elif decision.state is State.RUNNING:
            if row.node is not None:  # repeated, it moves no deadline
                self._jobs.make_external(row, decision)
        else:
            self._end(row, decision)

    def _end(self, row: Row, decision: Settlement) -> None:
        jobs, draft, permit = self._jobs, row.draft, row.permit
        jobs.record(row, decision)
        if decision.state is State.PENDING:
            jobs.put_back(row, decision)
        else:
            row.failures, row.losses = decision.failures, decision.losses
            row.started_at, row.result = decision.started_at, decision.result
            reasoned = decision.state is State.CANCELLED and row.cancel_requested
            jobs.finish(row, decision.state, decision.finished_at, (reasoned and row.error) or decision.error)
        if jobs.limits.may_pass_on(row):
            wanted = 1 if self._wanted is None else self._wanted.wanted.get(draft.id, 1)
            self.pass_on(str(draft.limit_key), permit, wanted)
        row.permit = None
        if decision.state.final:
            self.free_schedule(row)

    def free_schedule(self, row: Row) -> None:
        """The job is final: the next of its schedule may start."""
        if (
            row.draft.schedule_id is not None
            and row.attempt > 0
            and not self._jobs.started_of(row.draft.schedule_id)
        ):
            self.pass_on(schedule_permit(row.draft.schedule_id), None, 1)

    def pass_on(self, name: str, permit: UUID | None, number: int) -> None:
        for _ in range(number):
            row = self._jobs.lanes.first_waiting(name)
            if row is None:
                return
            self._jobs.lanes.forget(row)
            if self._takes(row, name):
                assert self._wanted is not None
                self._jobs.start(row, self._wanted.node, self._now, permit)
                self.successors.append(row)
            else:
                self._jobs.lanes.push(row)
                self.claimable.append(row)

    def _takes(self, row: Row, name: str) -> bool:
        """Whether the settling node runs it: it can, and the job needs no other permit, queue or rate."""
        draft, wanted, limits = row.draft, self._wanted, self._jobs.limits
        return (
            wanted is not None
            and len(self.successors) < wanted.room
            and draft.queue in wanted.queues
            and draft.target in wanted.targets
            and not limits.paused(draft.queue)
            and limits.queue_use(draft.queue) is None
            and limits.by_target.get(draft.target, UNLIMITED).rate is None
            and (draft.overlap is None if name == draft.limit_key else draft.limit_key is None)
        )


def _was_written(jobs: MemoryJobs, decision: Settlement) -> bool:
    """The same decision again, after its reply was lost. Another decision about the same attempt is not
    that."""
    row = jobs.live.get(decision.id) or jobs.past.get(decision.id)
    if row is None or (row.attempt, row.state) != (decision.attempt, decision.state):
        return False
    return row.state.final or row.draft.due_at == decision.due_at
