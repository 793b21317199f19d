"""Gates: how many more of each may start, and in which order those that wait behind them take turns."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from operator import itemgetter

from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import NodeId
from duetime.model.limit import Bound
from duetime.store import ClaimRequest, Lane
from duetime.stores.sqlite.rows import text_of
from duetime.stores.sqlite.session import Row, Session, Transaction

# Of one claim: gates looked at in a lane, and jobs that move behind their gate once they are due. Whatever lies beyond comes next time.
MOST_LOOKS = 5_000
MOST_DUE = 5_000
MOST_UPCOMING = 1_000
FEWEST_LOOKS, FIRST_LOOKS = 16, 256
UNLIMITED = 1 << 31
# A rate that allows a start since no longer than this: the last claim may have come a moment too early.
JUST_NOW = SECOND

# A candidate is its row id, and then a model.job.Claimed.
_TARGET, _DUE_AT, _QUEUE, _PRIORITY, _GATE = 3, 5, 6, 7, 20
due_at_of = itemgetter(_DUE_AT)
lane_of = itemgetter(_QUEUE, _PRIORITY)
gate_of = itemgetter(_GATE)

LaneKey = tuple[str, int]
First = dict[str, tuple[int, defaultdict[str, list[Row]]]]
Cursors = dict[LaneKey, str]  # the gate of each lane that had the last turn; "" is the turn of the jobs without


class Admission:
    """How many of each gate run and started, kept up while a claim chooses."""

    def __init__(self, transaction: Transaction, node: NodeId, bounds: Iterable[Bound]) -> None:
        self._transaction = transaction
        self._node = node
        self._bounds = {bound.target: bound for bound in bounds}
        self._counted: dict[str, int] | None = None
        self._elsewhere: set[str] = set()  # gates of which somebody else has a job
        self.ahead_too = True  # not where what waits on the node would hold a queue's places
        self._spent: dict[str, Micros] = {}
        self._changed: set[str] = set()

    def places(self, target: str, gate: str, at: Micros) -> int:
        """How many more may start at this instant."""
        bound = self._bounds.get(target)
        if bound is None:
            return UNLIMITED
        running = 0 if bound.most is None else self._running().get(gate, 0)
        places = UNLIMITED if bound.most is None else bound.most + self._ahead(bound, gate, at) - running
        return places if places <= 0 or bound.rate is None else min(places, bound.rate.allowed(self._spent_until(gate), at))

    def admitted(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Those that may start, oldest first. Each is taken as soon as it is asked for."""
        for row in rows:
            # A job claimed ahead starts when it is due.
            at = max(self._transaction.now, row[_DUE_AT])
            if self.places(row[_TARGET], row[_GATE], at) <= 0:
                return
            self._take(row[_TARGET], row[_GATE], at)
            yield row

    def write(self) -> None:
        for gate in self._changed:
            self._transaction.change("spend_gate", (gate, self._spent[gate]))

    def _take(self, target: str, gate: str, at: Micros) -> None:
        bound = self._bounds.get(target)
        if bound is None:
            return
        if bound.most is not None:
            self._running()[gate] = self._running().get(gate, 0) + 1
        if bound.rate is not None:
            self._spent[gate] = bound.rate.spend(self._spent_until(gate), at, 1)
            self._changed.add(gate)

    def _ahead(self, bound: Bound, gate: str, at: Micros) -> int:
        """What starts later than now need not be claimed ahead."""
        allowed = self.ahead_too and at <= self._transaction.now and gate not in self._elsewhere
        return bound.ahead if allowed else 0

    def _running(self) -> dict[str, int]:
        if self._counted is None:
            counted = self._transaction.all("running_by_gate", (self._node,))
            self._counted = {gate: running for gate, running, _ in counted}
            self._elsewhere = {gate for gate, running, mine in counted if mine < running}
        return self._counted

    def _spent_until(self, gate: str) -> Micros:
        if gate not in self._spent:
            self._spent[gate] = self._transaction.value("gate_spent", (gate,))
        return self._spent[gate]


class Waiting:
    """What waits behind gates, lane by lane."""

    def __init__(self, transaction: Transaction, request: ClaimRequest, cursors: Cursors) -> None:
        self._transaction = transaction
        self._until = transaction.now + request.prefetch
        self._cursors = cursors
        self.admission = Admission(transaction, request.node, request.bounds)
        self._targets: dict[LaneKey, list[str]] = {}
        self._others: defaultdict[LaneKey, dict[str, list[Row]]] = defaultdict(dict)
        self._looked_up_to: Cursors = {}  # where there were more gates than a claim may look at

    def look(self, lanes: str, targets: Sequence[str]) -> None:
        """Find out which lanes have any."""
        self._transaction.change("let_wait", (lanes, self._transaction.now, MOST_DUE))
        self._targets = _targets_by_lane(self._transaction, targets)
        if self._until > self._transaction.now:
            self.add(self._transaction.all("upcoming_gated", (lanes, text_of(targets), self._until, MOST_UPCOMING)))

    def add(self, rows: Iterable[Row]) -> None:
        """Candidates with a gate that do not wait behind it: they are not due yet, or run one at a time."""
        for row in rows:
            self._others[lane_of(row)].setdefault(row[_GATE], []).append(row)

    @property
    def lanes(self) -> set[LaneKey]:
        return self._targets.keys() | self._others.keys()

    def take_turns(self, lane: LaneKey, ungated: Iterator[Row], most: int) -> list[Row]:
        """One of each gate and one of those without, in turn, going on behind whoever had the last turn."""
        gates = self._open_gates(lane, most)
        first = self._first_rows(lane, gates, share=-(-most // (len(gates) + 1)))
        streams = {gate: self.admission.admitted(self._behind(lane, gate, targets, first)) for gate, targets in gates.items()}
        last = self._cursors.get(lane, "")
        order = deque([*(gate for gate in streams if gate > last), "", *(gate for gate in streams if gate <= last)])
        streams[""] = ungated
        taken: list[Row] = []
        while order and len(taken) < most:
            gate = order.popleft()
            if (row := next(streams[gate], None)) is not None:
                taken.append(row)
                order.append(gate)
                self._cursors[lane] = gate
        # Those looked at had their chance, full or not: the next claim begins with the others.
        self._cursors |= self._looked_up_to
        return taken

    def _open_gates(self, lane: LaneKey, most: int) -> dict[str, list[str]]:
        """Gates that admit somebody, by name from the last turn on, each with the targets that wait behind it; no more than can have a
        turn, and no more than a claim may look at."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for gate in self._others.get(lane, {}):
            found[gate] = []
        last = self._cursors.get(lane, "")
        for target in self._targets.get(lane, ()):
            names = self._walk(lane, target, last, most)
            admitting = (gate for gate in names if self.admission.places(target, gate, self._transaction.now) > 0)
            for gate in islice(admitting, most):
                found[gate].append(target)
        return {gate: found[gate] for gate in sorted(found)}

    def _walk(self, lane: LaneKey, target: str, last: str, most: int) -> Iterator[str]:
        """Once round the gates, beginning behind the last, as many as may have a turn at first and then more at a time."""
        looks, chunk, at, wrapped = 0, max(FEWEST_LOOKS, min(most, FIRST_LOOKS)), last, last == ""
        while looks < MOST_LOOKS:
            names = [gate for (gate,) in self._transaction.all("waiting_gates", (*lane, target, at, chunk))]
            looks += len(names)
            for gate in names:
                if wrapped and last and gate > last:
                    return
                yield gate
            if len(names) == chunk:
                at, chunk = names[-1], min(2 * chunk, MOST_LOOKS)
            elif wrapped:
                return
            else:
                at, wrapped = "", True
        self._looked_up_to[lane] = at

    def _first_rows(self, lane: LaneKey, gates: dict[str, list[str]], share: int) -> First:
        """Of each target: how many of each gate were asked for, and what was found."""
        first: First = {}
        for target in self._targets.get(lane, ()):
            names = [gate for gate, targets in gates.items() if target in targets]
            most = min(share, max((self.admission.places(target, gate, self._transaction.now) for gate in names), default=0))
            rows = defaultdict[str, list[Row]](list)
            for row in self._transaction.all("first_waiting_jobs", (*lane, target, text_of(names), self._until, most)):
                rows[row[_GATE]].append(row)
            first[target] = (most, rows)
        return first

    def _behind(self, lane: LaneKey, gate: str, targets: list[str], first: First) -> Iterator[Row]:
        streams = [self._rows(lane, target, gate, first[target][0], first[target][1][gate]) for target in targets]
        others = sorted(self._others.get(lane, {}).get(gate, ()), key=due_at_of)
        return merge(*streams, others, key=due_at_of) if others or len(streams) > 1 else streams[0]

    def _rows(self, lane: LaneKey, target: str, gate: str, chunk: int, rows: list[Row]) -> Iterator[Row]:
        """These, and if there may be more, more of them at a time."""
        offset = 0
        while True:
            yield from sorted(rows, key=due_at_of)
            if len(rows) < chunk or not any(self.admission.places(target, gate, at) > 0 for at in (self._transaction.now, self._until)):
                return
            offset, chunk = offset + chunk, 2 * chunk
            rows = self._transaction.all("waiting_jobs", (*lane, target, gate, self._until, chunk, offset))


def next_start(session: Session, request: ClaimRequest, lanes: Sequence[Lane], now: Micros) -> Micros | None:
    """When a rate allows the next start of a job that is due and held up by it."""
    rated = {bound.target: bound for bound in request.bounds if bound.rate is not None}
    if not rated:
        return None
    wanted = {(lane.queue, lane.priority) for lane in lanes}
    instants = [
        instant
        for lane, targets in _targets_by_lane(session, rated).items()
        for target in targets
        if lane in wanted and (instant := _free_at(session, lane, rated[target], now)) is not None
    ]
    return min([*instants, *_upcoming_starts(session, request, lanes, now)], default=None)


def _free_at(session: Session, lane: LaneKey, bound: Bound, now: Micros) -> Micros | None:
    target, most, rate, _ = bound
    assert rate is not None
    since = now - JUST_NOW + rate.period - rate.interval
    spent = session.value("earliest_spent", (*lane, target, MOST_LOOKS, since, most))
    return None if spent is None else rate.free_at(spent)


def _upcoming_starts(session: Session, request: ClaimRequest, lanes: Sequence[Lane], now: Micros) -> Iterator[Micros]:
    """Of jobs the prefetch would have taken, had their rate allowed it."""
    rates = {bound.target: bound.rate for bound in request.bounds if bound.rate is not None}
    parameters = (text_of(lanes), text_of(list(rates)), now + request.prefetch, MOST_UPCOMING)
    for target, due_at, spent in session.all("upcoming_spent", parameters) if request.prefetch else ():
        if (free_at := rates[target].free_at(spent)) > now:
            yield max(free_at, due_at)


def tell_freed(transaction: Transaction, gates: Iterable[str]) -> None:
    """Whoever waits behind one of these gates may have a chance now."""
    names = sorted(set(gates))
    for queue, priority, target in transaction.all("waiting_lanes") if names else ():
        if transaction.value("waits_behind", (queue, priority, target, text_of(names))):
            transaction.tell([JobHint(queue, priority, transaction.now)])


def _targets_by_lane(session: Session, targets: Iterable[str]) -> dict[LaneKey, list[str]]:
    known = frozenset(targets)
    found: defaultdict[LaneKey, list[str]] = defaultdict(list)
    for queue, priority, target in session.all("waiting_lanes"):
        if target in known:
            found[queue, priority].append(target)
    return dict(found)
