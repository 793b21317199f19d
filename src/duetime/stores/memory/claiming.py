"""One claim: which pending jobs a node gets, and what becomes of those that may not run beside an earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from duetime.model.hint import CancelHint, Hint, JobHint
from duetime.model.instant import Micros
from duetime.model.job import Overlap, State
from duetime.store import ClaimRequest, Lane
from duetime.stores.memory.jobs import Jobs
from duetime.stores.memory.row import Row
from duetime.stores.memory.turns import Gates, Turn


class Claiming:
    def __init__(self, jobs: Jobs, request: ClaimRequest, now: Micros) -> None:
        self._jobs = jobs
        self._request = request
        self._targets = frozenset(request.targets)
        self._bounds = {bound.target: bound for bound in request.bounds}
        self._now = now
        self._until = now + request.prefetch
        self._most = request.room  # to be taken by the end of the lane at hand
        self._passed_over: list[Row] = []
        self._to_be_told: list[Row] = []  # retries that wait, and need not wait any longer to hear that they are to stop
        self.taken: list[Row] = []
        self.hints: list[Hint] = []

    def run(self) -> None:
        for lane in self._request.lanes:
            if len(self.taken) < self._request.room and self._jobs.lanes.waits_in(lane.queue, lane.priority):
                self._take_from(lane)
        for row in self._passed_over:
            self._jobs.lanes.push(row)
        for row in self._to_be_told:
            if row.state is State.PENDING:  # and was not claimed after that
                self._jobs.move(row, min(row.draft.due_at, self._now), row.draft.priority)

    def _take_from(self, lane: Lane) -> None:
        quotas, before = self._jobs.quotas, len(self.taken)
        room = quotas.room_in(lane.queue, self._now)
        if not room:
            return
        self._most = min(self._request.room, before + room)
        if gated := self._jobs.lanes.gated(lane.queue, lane.priority):
            self._take_turns(lane, [self._limited(target, gates, lane) for target, gates in gated.items() if target in self._targets])
        else:
            for _ in self._without_gate(lane):
                if self._full():
                    break
        quotas.spend_in(lane.queue, len(self.taken) - before, self._now)

    def _limited(self, target: str, gates: Gates, lane: Lane) -> Gates:
        bound = self._bounds.get(target)
        if bound is not None and bound.ahead and self._jobs.quotas.limited(lane.queue):
            bound = bound._replace(ahead=0)  # what waits on the node would hold the queue's places
        gates.under(bound, self._request.node)
        return gates

    def _without_gate(self, lane: Lane) -> Iterator[None]:
        """Starts one job after the other; comes back after each."""
        for row in self._jobs.lanes.drain(lane.queue, lane.priority, self._targets, self._request.exclusive, self._until):
            before = len(self.taken)
            if row.exclusive:
                self._take_exclusive(row)
            elif row.draft.due_at < lane.low:
                self._passed_over.append(row)
            else:
                self._start(row)
            if len(self.taken) > before:
                yield

    def _take_turns(self, lane: Lane, gated: list[Gates]) -> None:
        lanes, name, without_gate = self._jobs.lanes, (lane.queue, lane.priority), self._without_gate(lane)
        more = True
        while not self._full():
            turns = [turn for gates in gated if (turn := gates.first(self._until, self._now)) is not None]
            turn = min(turns, key=_order, default=None)
            if more and (turn is None or lanes.plain_order.get(name, 0) < turn.order):
                more = next(without_gate, self) is None
                lanes.plain_order[name] = next(lanes.orders)
            elif turn is None:
                return
            else:
                self._serve(turn)

    def _serve(self, turn: Turn) -> None:
        row, before = turn.owner.take(turn), len(self.taken)
        if not row.exclusive:
            self._start(row)
        elif self._request.exclusive:
            self._take_exclusive(row)
        else:
            self._passed_over.append(row)
        if len(self.taken) > before:
            turn.owner.served(turn, self._now)

    def _full(self) -> bool:
        return len(self.taken) >= self._most

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
        same_line = (mine.queue, mine.priority, mine.gate) == (theirs.queue, theirs.priority, theirs.gate)
        return waits_in_a_lane and same_line and theirs.target in self._targets and theirs.due_at <= self._until

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
        if row.cancel_requested:
            return
        row.cancel_requested = True
        if row.node is not None:
            self.hints.append(CancelHint(row.node, row.draft.id))
        elif row.state is State.PENDING:
            self._to_be_told.append(row)
            self.hints.append(JobHint(row.draft.queue, row.draft.priority, self._now))


def next_due(jobs: Jobs, request: ClaimRequest, now: Micros) -> Micros | None:
    """When there will be something to claim that is not there yet: something falls due, or a rate allows the next start."""
    moment, targets = now + request.prefetch, frozenset(request.targets)
    bounds = {bound.target: bound for bound in request.bounds}
    found: list[Micros | None] = []
    for queue, priority, _ in request.lanes:
        if not jobs.lanes.waits_in(queue, priority) or jobs.quotas.paused(queue):
            continue
        found.append(jobs.lanes.next_due(queue, priority, targets, moment))
        rests_until = jobs.quotas.queue_rests_until(queue, now)
        if rests_until is not None and jobs.lanes.has_due(queue, priority, targets, moment):
            found.append(rests_until)
        for target, gates in jobs.lanes.gated(queue, priority).items():
            if target in targets:
                gates.under(bounds.get(target), request.node)
                found += (gates.next_due(moment), gates.next_start(moment, now))
    return min((instant for instant in found if instant is not None), default=None)


def _fire_order(row: Row) -> tuple[Micros, UUID]:
    return row.draft.fire_time, row.draft.id


def _order(turn: Turn) -> int:
    return turn.order
