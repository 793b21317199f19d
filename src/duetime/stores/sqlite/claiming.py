"""One claim: which pending jobs a node gets, and what becomes of those that may not run beside an earlier one.

Jobs without a gate, of queues without rules, that may run side by side are nearly all: they take one statement. The rest is looked at lane
by lane.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import merge
from operator import itemgetter

from duetime.model.hint import CancelHint, JobHint
from duetime.model.instant import Micros
from duetime.model.job import Overlap
from duetime.model.lease import NodeId
from duetime.store import ClaimRequest, Lane
from duetime.stores.sqlite import gates
from duetime.stores.sqlite.gates import UNLIMITED, Cursors, LaneKey, Waiting, due_at_of, gate_of, lane_of
from duetime.stores.sqlite.jobs import end_unstarted
from duetime.stores.sqlite.queues import Rules
from duetime.stores.sqlite.rows import text_of, uuid_of
from duetime.stores.sqlite.session import Row, Session, Transaction

# Of one claim. Whatever lies behind them comes forward as soon as these have started.
MOST_EXCLUSIVE = 1_000

# A candidate is its row id, and then a model.job.Claimed.
_fire_order = itemgetter(8, 1)
_schedule_of = itemgetter(12)
_queue_of = itemgetter(6)


def claim(transaction: Transaction, request: ClaimRequest, cursors: Cursors) -> list[Row]:
    """Answers rows for `claimed_of`, in the order of lanes and turns."""
    if not request.lanes:
        return []
    [(alive, exclusive, gated, ruled)] = transaction.all("may_claim", (request.node, transaction.now))
    if not alive:
        return []
    exclusive = exclusive and request.exclusive
    if exclusive or gated or ruled:
        rules = Rules(transaction, transaction.now, ruled)
        taken = Careful(transaction, request, rules, cursors).run(gated, exclusive)
    else:
        until = transaction.now + request.prefetch
        taken = transaction.all("claimable", (text_of(request.lanes), text_of(request.targets), until, request.room))
        _start(transaction, request.node, taken)
    return [row[1:] for row in taken]


def next_due(session: Session, request: ClaimRequest, now: Micros) -> Micros | None:
    targets, after = text_of(request.targets), now + request.prefetch
    [(found, gated, ruled)] = session.all("next_due", (text_of(request.lanes), targets, after))
    return _next_with_care(session, request, now, ruled) if gated or ruled else found


def _next_with_care(session: Session, request: ClaimRequest, now: Micros, ruled: bool) -> Micros | None:
    rules = Rules(session, now, ruled)
    lanes = [lane for lane in request.lanes if lane.queue not in rules.paused]
    open_lanes = [lane for lane in lanes if rules.left.get(lane.queue, 1) > 0]
    parameters = (text_of(lanes), text_of(request.targets), now + request.prefetch)
    found: tuple[Micros | None, ...] = (
        session.value("next_due", parameters),
        session.value("next_gated", parameters),
        rules.next_start(session, request),
        gates.next_start(session, request, open_lanes, now),
    )
    return min((instant for instant in found if instant is not None), default=None)


class Careful:
    """A claim among jobs with gates, in queues with rules, or of schedules that run one at a time."""

    def __init__(self, transaction: Transaction, request: ClaimRequest, rules: Rules, cursors: Cursors) -> None:
        self._transaction = transaction
        self._request = request
        self._until = transaction.now + request.prefetch
        self._targets = text_of(request.targets)
        self._rules = rules
        self._lanes = rules.open_lanes(request.lanes)
        self._waiting = Waiting(transaction, request, cursors)
        self._exclusive: dict[LaneKey, list[Row]] = {}
        self.taken: list[Row] = []

    def run(self, gated: bool, exclusive: bool) -> list[Row]:
        if gated:
            self._waiting.look(text_of(self._lanes), self._request.targets)
        if exclusive:
            self._exclusive = self._exclusive_by_lane()
        self._choose()
        _start(self._transaction, self._request.node, self.taken)
        self._waiting.admission.write()
        self._rules.spend(self._transaction, map(_queue_of, self.taken))
        if exclusive:
            lanes = [lane for lane in self._request.lanes if lane.queue not in self._rules.paused]
            _hold_back(self._transaction, text_of(lanes), self._targets)
        return self.taken

    def _choose(self) -> None:
        """Lanes in their order; those next to one another that hold nothing but plain jobs in one go."""
        special = self._waiting.lanes | self._exclusive.keys()
        plain: list[Lane] = []
        for lane in self._lanes:
            if (lane.queue, lane.priority) in special or lane.queue in self._rules.left:
                self._take_plain(plain)
                plain = []
                self._take_special(lane)
            else:
                plain.append(lane)
        self._take_plain(plain)

    @property
    def _room(self) -> int:
        return self._request.room - len(self.taken)

    def _take_plain(self, lanes: Sequence[Lane]) -> None:
        if lanes and self._room > 0:
            self.taken += self._claimable(lanes, self._room)

    def _take_special(self, lane: Lane) -> None:
        left = self._rules.left
        most = min(self._room, left.get(lane.queue, UNLIMITED))
        if most <= 0:
            return
        key = (lane.queue, lane.priority)
        ungated = merge(self._claimable_in_pieces(lane, most, key in self._waiting.lanes), self._exclusive.get(key, ()), key=due_at_of)
        self._waiting.admission.ahead_too = lane.queue not in left  # what waits on the node would hold the queue's places
        taken = self._waiting.take_turns(key, ungated, most)
        if lane.queue in left:
            left[lane.queue] -= len(taken)
        self.taken += taken

    def _claimable_in_pieces(self, lane: Lane, most: int, sharing: bool) -> Iterator[Row]:
        """Few at first where others have turns, too. Rows of one due time may be many, so pieces go by number, not by time."""
        size = min(most, FEW) if sharing else most
        rows: list[Row] = []
        while True:
            known = len(rows)
            rows = self._claimable([lane], size)
            yield from rows[known:]
            if len(rows) < size or size >= most:
                return
            size = min(most, 8 * size)

    def _claimable(self, lanes: Sequence[Lane], limit: int) -> list[Row]:
        return self._transaction.all("claimable", (text_of(lanes), self._targets, self._until, limit))

    def _exclusive_by_lane(self) -> dict[LaneKey, list[Row]]:
        """The oldest fire of each schedule that may start; those with a gate join the others behind it."""
        lanes = text_of(self._lanes)
        rows = [
            row
            for gated in (0, 1)
            for row in self._transaction.all("claimable_exclusive", (lanes, self._targets, self._until, MOST_EXCLUSIVE, gated))
        ]
        found: defaultdict[LaneKey, list[Row]] = defaultdict(list)
        oldest = _oldest_fires(rows)
        self._waiting.add(row for row in oldest if gate_of(row) is not None)
        for row in sorted((row for row in oldest if gate_of(row) is None), key=due_at_of):
            found[lane_of(row)].append(row)
        return dict(found)


FEW = 32


def _start(transaction: Transaction, node: NodeId, taken: Sequence[Row]) -> None:
    if taken:
        transaction.change("claim", (node, transaction.now, text_of([row[0] for row in taken])))


def _oldest_fires(candidates: list[Row]) -> list[Row]:
    """One per schedule: jitter and rescheduling let a later fire fall due first."""
    alone = [row for row in candidates if _schedule_of(row) is None]
    oldest = {_schedule_of(row): row for row in sorted(candidates, key=_fire_order, reverse=True)}
    oldest.pop(None, None)
    return alone + list(oldest.values())


def _hold_back(transaction: Transaction, lanes: str, targets: str) -> None:
    """Those that are due while an earlier job of their schedule has started and not finished."""
    blocked = {row[0]: row for row in transaction.all("blocked", (lanes, targets, transaction.now))}
    for job_id, overlap, in_the_way, node in blocked.values():
        if overlap == Overlap.SKIP:
            end_unstarted(transaction, job_id, "skipped", f"overlap: job {uuid_of(in_the_way)} has started and not finished")
        else:
            [lane_and_due] = transaction.all("ask_to_stop", (in_the_way, transaction.now))
            waits = node is None
            transaction.tell([JobHint(*lane_and_due)] if waits else [CancelHint(NodeId(node), uuid_of(in_the_way))] if node else [])
