"""One stored job. Rows change in place, because a drain touches each of them three times; readers get frozen
copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import Attempt, Claimed, Job, JobDraft, State
from duetime.model.lease import NodeId
from duetime.model.stored import JobRow

_LIVED = JobRow._fields[len(JobDraft._fields) : JobRow._fields.index("begun")]


@dataclass(slots=True, eq=False)
class Row:
    draft: JobDraft  # as it stands now: a retry or a change replaces it
    created_at: Micros
    state: State = State.PENDING
    attempt: int = 0
    failures: int = 0
    losses: int = 0
    node: NodeId | None = None
    cancel_requested: bool = False
    begun: bool = False
    announce: bool = False  # emit a hint when it becomes final
    checkpoint: bytes | None = None
    progress: bytes | None = None
    claimed_at: Micros | None = None
    started_at: Micros | None = None
    finished_at: Micros | None = None
    result: bytes | None = None
    error: str | None = None
    disposition: str | None = None
    permit: UUID | None = None  # while it runs under a limit key
    waits_for: str | None = None  # the name of the permit it waits for, outside its lane
    ticket: int = 0  # of its one valid entry in a heap; 0 = it has none

    @property
    def needs_permit(self) -> bool:
        return self.draft.limit_key is not None or self.draft.overlap is not None

    def waits_unstarted(self) -> bool:
        return self.state is State.PENDING and self.attempt == 0


def job_of(row: Row) -> Job:
    return Job(
        *row.draft,
        state=row.state,
        attempt=row.attempt,
        failures=row.failures,
        losses=row.losses,
        node=row.node,
        cancel_requested=row.cancel_requested,
        checkpoint=row.checkpoint,
        progress=row.progress,
        created_at=row.created_at,
        claimed_at=row.claimed_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        result=row.result,
        error=row.error,
        disposition=row.disposition,
    )


def row_of(stored: JobRow) -> Row:
    """A row as another store had it."""
    copied = {name: getattr(stored, name) for name in Row.__slots__ if name in JobRow._fields}
    return Row(draft=JobDraft._make(stored[: len(JobDraft._fields)]), **copied)


def stored_of(row: Row, attempts: Iterable[Attempt], markers: Mapping[str, UUID]) -> JobRow:
    lived = (getattr(row, name) for name in _LIVED)
    live = (row.begun and not row.state.final, row.waits_for, row.permit)
    return JobRow._make((*row.draft, *lived, *live, tuple(attempts), tuple(sorted(markers.items()))))


def claimed_of(row: Row) -> Claimed:
    draft = row.draft
    return Claimed(
        draft.id,
        row.attempt,
        draft.target,
        draft.payload,
        draft.due_at,
        draft.queue,
        draft.priority,
        draft.fire_time,
        row.failures,
        row.losses,
        row.cancel_requested,
        draft.schedule_id,
        draft.schedule,
        draft.overlap,
        draft.policies,
        draft.target_spec,
        row.checkpoint,
        draft.tenant,
        row.begun,
        draft.limit_key,
        row.permit,
    )
