"""The table of jobs: live ones by id, schedule, node and unique key; past ones; and what is remembered of bad attempts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar
from uuid import UUID

from duetime.model.attempt import Attempt, Ending
from duetime.model.hint import DoneHint, Hint, JobHint
from duetime.model.instant import Micros
from duetime.model.job import JobDraft, State
from duetime.model.lease import NodeId
from duetime.model.settle import Settlement
from duetime.stores.memory.lanes import Lanes
from duetime.stores.memory.quotas import Quotas
from duetime.stores.memory.row import Row

Key = TypeVar("Key")


class Jobs:
    """Every change of a row goes through here, so that the indexes always agree with the rows."""

    def __init__(self) -> None:
        self.live: dict[UUID, Row] = {}
        self.past: dict[UUID, Row] = {}
        self.attempts: dict[UUID, list[Attempt]] = {}
        self.marks: dict[UUID, dict[str, UUID]] = {}  # by job and key: the nonce of the call that took it
        self.quotas = Quotas()
        self.lanes = Lanes(self.quotas)
        self.news: list[Hint] = []  # to be told once the verb under way has done its work
        self._by_key: dict[tuple[str, str], UUID] = {}  # live holders
        self._with_key: dict[tuple[str, str], dict[UUID, Row]] = {}  # live and past, oldest first
        self._of_schedule: dict[UUID, dict[UUID, Row]] = {}
        self._started: dict[UUID, dict[UUID, Row]] = {}  # by schedule: live rows with attempt > 0
        self._of_node: dict[NodeId, dict[UUID, Row]] = {}
        self._outside: dict[UUID, Row] = {}  # handed over: they run, and no node has them
        self._parked: dict[UUID, dict[UUID, Row]] = {}  # by schedule: due, and waiting for an earlier job to finish

    # -- looking ------------------------------------------------------------------------------------------------------
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
        return iter(()) if unique_key is None else reversed(self._with_key.get((tenant, unique_key), {}).values())

    def running(self, job_id: UUID, attempt: int) -> Row | None:
        """The job, if it runs under this attempt number."""
        row = self.live.get(job_id)
        return row if row is not None and row.state is State.RUNNING and row.attempt == attempt else None

    def outside(self, job_id: UUID, attempt: int) -> Row | None:
        """The job, if it was handed over under this attempt number."""
        row = self._outside.get(job_id)
        return row if row is not None and row.attempt == attempt else None

    def overdue(self, now: Micros) -> list[Row]:
        return sorted((row for row in self._outside.values() if row.draft.due_at <= now), key=_due_order)

    def of_schedule(self, schedule_id: UUID) -> list[Row]:
        return list(self._of_schedule.get(schedule_id, {}).values())

    def of_node(self, node: NodeId) -> list[Row]:
        return list(self._of_node.get(node, {}).values())

    def running_on(self, node: NodeId) -> int:
        return len(self._of_node.get(node, {}))

    def in_the_way(self, row: Row) -> Row | None:
        """Another job of the same schedule that has started and not finished."""
        started = self._started.get(row.draft.schedule_id, {}) if row.draft.schedule_id else {}
        return next((other for other in started.values() if other is not row), None)

    # -- coming and going ---------------------------------------------------------------------------------------------
    def add(self, draft: JobDraft, now: Micros) -> UUID:
        if self.stored(draft.id):
            return draft.id
        if (holder := self.holder(draft.tenant, draft.unique_key)) is not None:
            return holder
        row = self.live[draft.id] = Row(draft, now)
        self.quotas.know(draft.queue)
        if draft.unique_key is not None:
            self._by_key[draft.tenant, draft.unique_key] = draft.id
            self._with_key.setdefault((draft.tenant, draft.unique_key), {})[draft.id] = row
        if draft.schedule_id is not None:
            self._of_schedule.setdefault(draft.schedule_id, {})[draft.id] = row
        self.lanes.push(row)
        return draft.id

    def add_skipped(self, draft: JobDraft, reason: str, now: Micros) -> None:
        if not self.stored(draft.id):
            self.quotas.know(draft.queue)
            self.past[draft.id] = Row(draft, now, State.SKIPPED, finished_at=now, error=reason)

    def start(self, row: Row, node: NodeId, now: Micros) -> None:
        """The row must have been taken out of its lane, or be forgotten there."""
        self.unqueue(row)
        row.state, row.node, row.claimed_at = State.RUNNING, node, now
        row.attempt += 1
        self.quotas.begin(row.draft, node)
        self._of_node.setdefault(node, {})[row.draft.id] = row
        if row.draft.schedule_id is not None:
            self._started.setdefault(row.draft.schedule_id, {})[row.draft.id] = row

    def hand_over(self, row: Row, decision: Settlement) -> None:
        """It counts for its gate and queue as before."""
        assert row.node is not None
        self.quotas.hand_over(row.draft, row.node)
        _discard(self._of_node, row.node, row.draft.id)
        self._outside[row.draft.id] = row
        row.node, row.begun = None, False
        row.failures, row.losses = decision.failures, decision.losses
        self.extend(row, decision.due_at)

    def extend(self, row: Row, due_at: Micros) -> None:
        row.draft = row.draft._replace(due_at=due_at)

    def put_back(self, row: Row, decision: Settlement) -> None:
        self._stop(row)
        row.state, row.node, row.claimed_at, row.begun = State.PENDING, None, None, False
        row.failures, row.losses = decision.failures, decision.losses
        row.error = decision.error if decision.error is not None else row.error
        row.draft = row.draft._replace(due_at=decision.due_at)
        self.lanes.push(row)

    def move(self, row: Row, due_at: Micros, priority: int) -> None:
        self.unqueue(row)
        row.draft = row.draft._replace(due_at=due_at, priority=priority)
        self.lanes.push(row)

    def give_up_key(self, row: Row) -> None:
        tenant, unique_key = row.draft.tenant, row.draft.unique_key
        assert unique_key is not None
        del self._by_key[tenant, unique_key]
        _discard(self._with_key, (tenant, unique_key), row.draft.id)
        row.draft = row.draft._replace(unique_key=None)

    def finish(self, row: Row, state: State, finished_at: Micros, error: str | None) -> list[Row]:
        """Move the row to the past. Answers the jobs that waited for it to finish."""
        freed = self.remove(row)
        row.state, row.finished_at, row.error = state, finished_at, error
        self.past[row.draft.id] = row
        return freed

    def remove(self, row: Row) -> list[Row]:
        draft = row.draft
        del self.live[draft.id]
        self.unqueue(row)
        self._stop(row)
        if row.awaited:
            self.news.append(DoneHint(draft.id))
        if draft.unique_key is not None:
            del self._by_key[draft.tenant, draft.unique_key]
        if draft.schedule_id is None:
            return []
        _discard(self._of_schedule, draft.schedule_id, draft.id)
        if row.attempt == 0:
            return []
        _discard(self._started, draft.schedule_id, draft.id)
        return self._unpark(draft.schedule_id)

    def park(self, row: Row) -> None:
        """Keep a due job out of its lane until the one in its way has finished, so that claims need not step over it."""
        assert row.draft.schedule_id is not None
        self._parked.setdefault(row.draft.schedule_id, {})[row.draft.id] = row

    def unqueue(self, row: Row) -> None:
        self.lanes.forget(row)
        if row.draft.schedule_id in self._parked:
            _discard(self._parked, row.draft.schedule_id, row.draft.id)

    def record(self, row: Row, decision: Settlement) -> None:
        """Remember an attempt that ended badly; one that never started and was given back is not worth a line."""
        if decision.ending is Ending.SUCCEEDED or (decision.ending is Ending.RELEASED and decision.started_at is None):
            return
        ended = Attempt(
            row.draft.id, decision.attempt, row.node, decision.ending, decision.started_at, decision.finished_at, decision.error
        )
        self.attempts.setdefault(row.draft.id, []).append(ended)

    def prune(self, before: Micros, targets: Mapping[str, Micros]) -> int:
        gone = [row for row in self.past.values() if _finished_before(row, max(before, targets.get(row.draft.target, before)))]
        for row in gone:
            draft = row.draft
            del self.past[draft.id]
            self.attempts.pop(draft.id, None)
            self.marks.pop(draft.id, None)
            if draft.unique_key is not None:
                _discard(self._with_key, (draft.tenant, draft.unique_key), draft.id)
        return len(gone)

    def _unpark(self, schedule_id: UUID) -> list[Row]:
        freed = list(self._parked.pop(schedule_id, {}).values())
        for row in freed:
            self.lanes.push(row)
        return freed

    def _stop(self, row: Row) -> None:
        if row.state is not State.RUNNING:
            return
        if row.node is None:
            del self._outside[row.draft.id]
        else:
            _discard(self._of_node, row.node, row.draft.id)
        self.quotas.end(row.draft, row.node)
        if row.draft.gate is not None:
            self.news += (JobHint(*turn.owner.lane, 0) for turn in self.lanes.freed(row.draft.gate))


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
