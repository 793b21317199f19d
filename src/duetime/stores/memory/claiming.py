"""One claim: which pending jobs a node gets, and what becomes of those that may not run beside an earlier one."""

from __future__ import annotations

from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import Overlap, State
from duetime.store import CancelHint, ClaimRequest, Hint, Lane
from duetime.stores.memory.jobs import Jobs
from duetime.stores.memory.row import Row


class Claiming:
    def __init__(self, jobs: Jobs, request: ClaimRequest, now: Micros) -> None:
        self._jobs = jobs
        self._request = request
        self._targets = frozenset(request.targets)
        self._now = now
        self._until = now + request.prefetch
        self._passed_over: list[Row] = []
        self.taken: list[Row] = []
        self.hints: list[Hint] = []

    def run(self) -> None:
        for lane in self._request.lanes:
            if not self._full():
                self._take_from(lane)
        for row in self._passed_over:
            self._jobs.lanes.push(row)

    def _take_from(self, lane: Lane) -> None:
        for row in self._jobs.lanes.drain(lane.queue, lane.priority, self._targets, self._request.exclusive, self._until):
            if row.exclusive:
                self._take_exclusive(row)
            elif row.draft.due_at < lane.low:
                self._passed_over.append(row)
            else:
                self._start(row)
            if self._full():
                return

    def _full(self) -> bool:
        return len(self.taken) >= self._request.room

    def _start(self, row: Row) -> None:
        self._jobs.start(row, self._request.node, self._now)
        self.taken.append(row)

    def _take_exclusive(self, row: Row) -> None:
        in_the_way = self._jobs.in_the_way(row)
        if in_the_way is None:
            # One that has started before and was put back goes on first: it is what the others wait for.
            in_the_way = row if row.attempt > 0 else self._oldest_fire(row)
            self._start(in_the_way)
        if in_the_way is not row:
            self._hold_back(row, in_the_way)

    def _oldest_fire(self, row: Row) -> Row:
        """Jitter and rescheduling let a later fire fall due first; among those due now the oldest fire goes first."""
        if row.draft.schedule_id is None:
            return row
        rivals = [other for other in self._jobs.of_schedule(row.draft.schedule_id) if other is row or self._rivals(row, other)]
        return min(rivals, key=_fire_order)

    def _rivals(self, row: Row, other: Row) -> bool:
        mine, theirs = row.draft, other.draft
        waits_in_a_lane = other.exclusive and other.ticket != 0
        same_lane = (mine.queue, mine.priority) == (theirs.queue, theirs.priority)
        return waits_in_a_lane and same_lane and theirs.target in self._targets and theirs.due_at <= self._until

    def _hold_back(self, row: Row, in_the_way: Row) -> None:
        if row.draft.due_at > self._now:
            self._passed_over.append(row)  # it may yet be free when it falls due
        elif row.draft.overlap == Overlap.SKIP and row.attempt == 0:
            self._jobs.finish(row, State.SKIPPED, self._now, f"overlap: job {in_the_way.draft.id} has started and not finished")
        else:
            if row.draft.overlap == Overlap.CANCEL_PREVIOUS:
                self._ask_to_stop(in_the_way)
            self._jobs.park(row)

    def _ask_to_stop(self, row: Row) -> None:
        if not row.cancel_requested:
            row.cancel_requested = True
            if row.node is not None:
                self.hints.append(CancelHint(row.node, row.draft.id))


def _fire_order(row: Row) -> tuple[Micros, UUID]:
    return row.draft.fire_time, row.draft.id
