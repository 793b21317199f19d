"""The table of jobs: live ones by id, schedule, node and unique key; past ones; and the attempts that did not
succeed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar
from uuid import UUID, uuid5

from duetime.model.hint import DoneHint, Hint
from duetime.model.instant import Micros
from duetime.model.job import Attempt, Ending, JobDraft, State
from duetime.model.lease import NodeId
from duetime.model.settle import Settlement
from duetime.stores.memory.lanes import Lanes
from duetime.stores.memory.limits import Limits
from duetime.stores.memory.row import Row

Key = TypeVar("Key")
PERMITS = UUID(int=0)


class MemoryJobs:
    """Every change of a row goes through here, so that the indexes always agree with the rows."""

    def __init__(self) -> None:
        self.live: dict[UUID, Row] = {}
        self.past: dict[UUID, Row] = {}
        self.attempts: dict[UUID, list[Attempt]] = {}
        self.markers: dict[UUID, dict[str, UUID]] = {}  # by job and key: the nonce of the call that took it
        self.limits = Limits()
        self.lanes = Lanes()
        self.hints: list[Hint] = []  # to be sent once the verb under way has done its work
        self._by_key: dict[tuple[str, str], UUID] = {}  # live holders
        self._with_key: dict[tuple[str, str], dict[UUID, Row]] = {}  # live and past, oldest first
        self._of_schedule: dict[UUID, dict[UUID, Row]] = {}
        self._started: dict[UUID, dict[UUID, Row]] = {}  # by schedule: live rows with attempt > 0
        self._of_node: dict[NodeId, dict[UUID, Row]] = {}
        self._external: dict[UUID, Row] = {}  # they run, and no node has them
        self._permits = 0  # given so far
        self._permit_space = PERMITS

    # -- looking
    def find(self, tenant: str, job_id: UUID) -> Row | None:
        row = self.live.get(job_id) or self.past.get(job_id)
        return row if row is not None and row.draft.tenant == tenant else None

    def every(self) -> Iterator[Row]:
        yield from self.live.values()
        yield from self.past.values()

    def stored(self, job_id: UUID) -> bool:
        return job_id in self.live or job_id in self.past

    def holder(self, tenant: str, unique_key: str | None) -> UUID | None:
        return None if unique_key is None else self._by_key.get((tenant, unique_key))

    def with_key(self, tenant: str, unique_key: str | None) -> Iterator[Row]:
        """Live and past, youngest first."""
        return (
            iter(())
            if unique_key is None
            else reversed(self._with_key.get((tenant, unique_key), {}).values())
        )

    def running(self, job_id: UUID, attempt: int) -> Row | None:
        """The job, if it runs under this attempt number."""
        row = self.live.get(job_id)
        return row if row is not None and row.state is State.RUNNING and row.attempt == attempt else None

    def past_deadline(self, now: Micros) -> list[Row]:
        return sorted((row for row in self._external.values() if row.draft.due_at <= now), key=_due_order)

    def of_schedule(self, schedule_id: UUID) -> list[Row]:
        return list(self._of_schedule.get(schedule_id, {}).values())

    def of_node(self, node: NodeId) -> list[Row]:
        return list(self._of_node.get(node, {}).values())

    def running_on(self, node: NodeId) -> int:
        return len(self._of_node.get(node, {}))

    def started_of(self, schedule_id: UUID | None) -> list[Row]:
        """The jobs of this schedule that have started and not finished."""
        return [] if schedule_id is None else list(self._started.get(schedule_id, {}).values())

    def rival_of(self, row: Row) -> Row | None:
        """Another job of its schedule that has started and not finished, if they may not overlap."""
        started = [] if row.draft.overlap is None else self.started_of(row.draft.schedule_id)
        return next((other for other in started if other is not row), None)

    def new_permit(self) -> UUID:
        self._permits += 1
        return uuid5(self._permit_space, str(self._permits))

    # -- coming and going
    def add(self, draft: JobDraft, now: Micros, waits_for: str | None = None) -> UUID:
        if self.stored(draft.id):
            return draft.id
        if (holder := self.holder(draft.tenant, draft.unique_key)) is not None:
            return holder
        row = self.live[draft.id] = Row(draft, now)
        self.limits.know(draft.queue, draft.tenant)
        if draft.unique_key is not None:
            self._by_key[draft.tenant, draft.unique_key] = draft.id
            self._with_key.setdefault((draft.tenant, draft.unique_key), {})[draft.id] = row
        if draft.schedule_id is not None:
            self._of_schedule.setdefault(draft.schedule_id, {})[draft.id] = row
        if waits_for is None:
            self.lanes.push(row)
        else:
            self.lanes.wait(row, waits_for)
        return draft.id

    def add_skipped(self, draft: JobDraft, reason: str, now: Micros) -> None:
        if not self.stored(draft.id):
            self.limits.know(draft.queue, draft.tenant)
            self.past[draft.id] = Row(draft, now, State.SKIPPED, finished_at=now, error=reason)

    def start(self, row: Row, node: NodeId, now: Micros, permit: UUID | None) -> None:
        """The row must have been taken out of its lane."""
        row.state, row.node, row.claimed_at, row.permit = State.RUNNING, node, now, permit
        row.attempt += 1
        self.limits.begin(row)
        self._of_node.setdefault(node, {})[row.draft.id] = row
        if row.draft.schedule_id is not None:
            self._started.setdefault(row.draft.schedule_id, {})[row.draft.id] = row

    def make_external(self, row: Row, decision: Settlement) -> None:
        """It keeps its permit and its place in the queue's limit."""
        assert row.node is not None
        _discard(self._of_node, row.node, row.draft.id)
        self._external[row.draft.id] = row
        row.node, row.begun = None, False
        row.failures, row.losses = decision.failures, decision.losses
        row.draft = row.draft._replace(due_at=decision.due_at)

    def put_back(self, row: Row, decision: Settlement) -> None:
        self._stop(row)
        row.state, row.node, row.claimed_at, row.begun = State.PENDING, None, None, False
        row.failures, row.losses = decision.failures, decision.losses
        if row.error is None or not row.cancel_requested:
            row.error = decision.error or row.error
        row.draft = row.draft._replace(due_at=decision.due_at)
        self.lanes.push(row)

    def reschedule(self, row: Row, due_at: Micros, priority: int) -> None:
        self.lanes.forget(row)
        row.draft = row.draft._replace(due_at=due_at, priority=priority)
        self.lanes.push(row)

    def give_up_key(self, row: Row) -> None:
        tenant, unique_key = row.draft.tenant, row.draft.unique_key
        assert unique_key is not None
        del self._by_key[tenant, unique_key]
        _discard(self._with_key, (tenant, unique_key), row.draft.id)
        row.draft = row.draft._replace(unique_key=None)

    def finish(self, row: Row, state: State, finished_at: Micros, error: str | None) -> None:
        """Move the row to the past."""
        self.remove(row)
        row.state, row.finished_at, row.error = state, finished_at, error
        self.past[row.draft.id] = row

    def remove(self, row: Row) -> None:
        draft = row.draft
        del self.live[draft.id]
        self.lanes.forget(row)
        self._stop(row)
        if row.announce:
            self.hints.append(DoneHint(draft.id))
        if draft.unique_key is not None:
            del self._by_key[draft.tenant, draft.unique_key]
        if draft.schedule_id is not None:
            _discard(self._of_schedule, draft.schedule_id, draft.id)
            _discard(self._started, draft.schedule_id, draft.id)

    def record(self, row: Row, decision: Settlement) -> None:
        """Remember an attempt that ended badly; one that never started and was given back is not worth a
        line."""
        if decision.ending is Ending.SUCCEEDED or (
            decision.ending is Ending.RELEASED and decision.started_at is None
        ):
            return
        ended = Attempt(
            row.draft.id,
            decision.attempt,
            row.node,
            decision.ending,
            decision.started_at,
            decision.finished_at,
            decision.error,
            decision.result,
        )
        self.attempts.setdefault(row.draft.id, []).append(ended)

    def prune(self, before: Micros, targets: Mapping[str, Micros]) -> int:
        gone = [
            row
            for row in self.past.values()
            if _finished_before(row, max(before, targets.get(row.draft.target, before)))
        ]
        return self.forget_finished([row.draft.id for row in gone])

    def forget_finished(self, ids: Iterable[UUID]) -> int:
        gone = [self.past[job_id] for job_id in ids if job_id in self.past]
        for row in gone:
            self.forget(row)
        return len(gone)

    def forget(self, row: Row) -> None:
        """As if the job had never been."""
        draft = row.draft
        if draft.id in self.live:
            row.announce = False
            self.remove(row)
        else:
            del self.past[draft.id]
        self.attempts.pop(draft.id, None)
        self.markers.pop(draft.id, None)
        if draft.unique_key is not None:
            _discard(self._with_key, (draft.tenant, draft.unique_key), draft.id)

    def restore(self, row: Row) -> None:
        """A job as another store had it; `waits_for` is what it waits for."""
        draft, waits_for, row.waits_for = row.draft, row.waits_for, None
        self.limits.know(draft.queue, draft.tenant)
        if draft.unique_key is not None:
            same_key = {**self._with_key.get((draft.tenant, draft.unique_key), {}), draft.id: row}
            oldest_first = sorted(same_key.items(), key=lambda item: item[1].created_at)
            self._with_key[draft.tenant, draft.unique_key] = dict(oldest_first)
        if row.state.final:
            self.past[draft.id] = row
            return
        self.live[draft.id] = row
        if draft.unique_key is not None:
            self._by_key[draft.tenant, draft.unique_key] = draft.id
        if draft.schedule_id is not None:
            self._of_schedule.setdefault(draft.schedule_id, {})[draft.id] = row
            if row.attempt:
                self._started.setdefault(draft.schedule_id, {})[draft.id] = row
        if row.state is State.RUNNING:
            self._restore_running(row)
        elif waits_for is None:
            self.lanes.push(row)
        else:
            self.lanes.wait(row, waits_for)

    def _restore_running(self, row: Row) -> None:
        self.limits.begin(row)
        if row.node is None:
            self._external[row.draft.id] = row
        else:
            self._of_node.setdefault(row.node, {})[row.draft.id] = row
        if row.permit is not None:  # permits given from now on differ from those of the other store
            self._permit_space = uuid5(self._permit_space, str(row.permit))

    def _stop(self, row: Row) -> None:
        if row.state is not State.RUNNING:
            return
        if row.node is None:
            del self._external[row.draft.id]
        else:
            _discard(self._of_node, row.node, row.draft.id)
        self.limits.end(row)


def _due_order(row: Row) -> tuple[Micros, UUID]:
    return row.draft.due_at, row.draft.id


def _finished_before(row: Row, moment: Micros) -> bool:
    return row.finished_at is not None and row.finished_at < moment


def _discard(index: dict[Key, dict[UUID, Row]], key: Key, job_id: UUID) -> None:
    rows = index.get(key)
    if rows is None:
        return
    rows.pop(job_id, None)
    if not rows:
        del index[key]
