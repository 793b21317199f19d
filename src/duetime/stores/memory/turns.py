"""Gated jobs that wait in one lane: each gate gets its turn, and one that may not start now is out of the way until it may.

A gate is in exactly one place. `ahead`: its first job is not due yet. `ready`: in the order of turns. `full`: as many run as may;
the next one to finish brings it back. `resting`: its rate allows the next start at a known instant. So a claim touches the gates it
takes from and those that became free or full since, however many wait.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from enum import Enum
from heapq import heappop, heappush
from itertools import count

from duetime.model.instant import LATEST, Micros
from duetime.model.lease import NodeId
from duetime.model.limit import Bound
from duetime.stores.memory.heap import FEW_STALE, DueHeap, Entry
from duetime.stores.memory.quotas import Quotas
from duetime.stores.memory.row import Row

AT_A_TIME = 16


class Place(Enum):
    AHEAD = "ahead"
    READY = "ready"
    FULL = "full"
    RESTING = "resting"
    GONE = "gone"  # nothing waits behind it any more


class Turn:
    """The jobs of one gate in one lane."""

    __slots__ = ("gate", "heap", "looks_at", "order", "owner", "place", "rests_until")

    def __init__(self, gate: str, owner: Gates) -> None:
        self.gate = gate
        self.owner = owner
        self.heap = DueHeap()
        self.place = Place.AHEAD
        self.order = 0  # of its next turn
        self.looks_at: Micros = LATEST  # when it comes back, while it is ahead
        self.rests_until: Micros = 0

    def waits_for_a_place(self) -> bool:
        return self.place is Place.FULL

    def rests(self, until: Micros) -> bool:
        return self.place is Place.RESTING and self.rests_until == until


class Gates:
    """All gates of one target in one lane."""

    def __init__(self, lane: tuple[str, int], quotas: Quotas, orders: count[int], full: dict[str, dict[Turn, None]]) -> None:
        self.lane = lane
        self._quotas = quotas
        self._orders = orders
        self._full = full  # by gate: turns of any lane to bring back when a job of it has finished
        self._bound: Bound | None = None
        self._node = NodeId(0)
        self._turns: dict[str, Turn] = {}
        self._ready: deque[Turn] = deque()
        self._ahead: list[tuple[Micros, int, Turn]] = []
        self._resting: list[tuple[Micros, int, Turn]] = []
        self._calendar: list[Entry] = []  # every waiting row by due time, for the question what comes next
        self.waiting = 0

    # -- rows come and go ---------------------------------------------------------------------------------------------
    def push(self, row: Row, ticket: int) -> None:
        gate = row.draft.gate
        assert gate is not None
        turn = self._turns.get(gate)
        if turn is None:
            turn = self._turns[gate] = Turn(gate, self)
        turn.heap.push(row, ticket)
        if turn.place is Place.AHEAD and row.draft.due_at < turn.looks_at:
            self._put_ahead(turn, row.draft.due_at)
        elif turn.place is Place.FULL and self._first_is(turn, row):
            self.bring_back(turn)  # what is due may be taken where what is not might not
        self.waiting += 1
        insort(self._calendar, (row.draft.due_at, row.draft.id.int, ticket, row))
        if len(self._calendar) > FEW_STALE + 2 * self.waiting:
            self._calendar = [entry for entry in self._calendar if entry[3].ticket == entry[2]]

    def forget(self, row: Row) -> None:
        assert row.draft.gate is not None
        self._turns[row.draft.gate].heap.forget(row)
        self.waiting -= 1

    def take(self, turn: Turn) -> Row:
        """The oldest of a turn that `first` has answered."""
        entry = turn.heap.first()
        assert entry is not None
        turn.heap.drop_first()
        self.waiting -= 1
        return entry[3]

    # -- turns --------------------------------------------------------------------------------------------------------
    def under(self, bound: Bound | None, node: NodeId) -> None:
        """The limits that hold from now on, and for whom. Others than before: whoever was held up by those may be free."""
        other_node = node != self._node and bound is not None and bound.ahead > 0
        self._node = node
        if bound != self._bound or other_node:
            self._bound = bound
            for turn in self._turns.values():
                if turn.place in (Place.FULL, Place.RESTING):
                    self.bring_back(turn)

    def first(self, until: Micros, now: Micros) -> Turn | None:
        """Whose turn it is: it has a job that is due and may start now."""
        self._wake(until, now)
        while self._ready:
            if self._may_start(self._ready[0], until, now):
                return self._ready[0]
            self._ready.popleft()
            if not self._ready:
                self._wake(until, now)
        return None

    def served(self, turn: Turn, now: Micros) -> None:
        """One of it was started: the others come first now."""
        assert self._ready[0] is turn
        self._ready.popleft()
        self.bring_back(turn)
        self._quotas.spend(turn.gate, self._bound, now)

    def bring_back(self, turn: Turn) -> None:
        turn.place, turn.order = Place.READY, next(self._orders)
        self._ready.append(turn)

    def _wake(self, until: Micros, now: Micros) -> None:
        """Bring back whose time has come: a few at a time, so that the first claim after a flood of new gates is no slower."""
        woken = 0
        while woken < AT_A_TIME and self._ahead and self._ahead[0][0] <= until:
            turn = heappop(self._ahead)[2]
            if turn.place is Place.AHEAD:
                self.bring_back(turn)
                woken += 1
        while self._resting and self._resting[0][0] <= now:
            rested_until, _, turn = heappop(self._resting)
            if turn.rests(rested_until):
                self.bring_back(turn)

    def _may_start(self, turn: Turn, until: Micros, now: Micros) -> bool:
        """If not, the turn is put where it belongs; the caller takes it out of the ready ones."""
        head = turn.heap.first()
        if head is None:
            self._drop(turn)
        elif head[0] > until:
            self._put_ahead(turn, head[0])
        elif self._quotas.full(turn.gate, self._bound, self._node, due=head[0] <= now):
            turn.place = Place.FULL
            self._full.setdefault(turn.gate, {})[turn] = None
        elif (rests_until := self._quotas.rests_until(turn.gate, self._bound, now)) is not None:
            turn.place, turn.rests_until = Place.RESTING, rests_until
            heappush(self._resting, (rests_until, next(self._orders), turn))
        else:
            return True
        return False

    def _first_is(self, turn: Turn, row: Row) -> bool:
        head = turn.heap.first()
        return self._bound is not None and self._bound.ahead > 0 and head is not None and head[3] is row

    def _put_ahead(self, turn: Turn, due_at: Micros) -> None:
        turn.place, turn.looks_at = Place.AHEAD, due_at
        heappush(self._ahead, (due_at, next(self._orders), turn))

    def _drop(self, turn: Turn) -> None:
        turn.place = Place.GONE
        del self._turns[turn.gate]

    # -- what comes next ----------------------------------------------------------------------------------------------
    def next_due(self, moment: Micros) -> Micros | None:
        """The earliest due time after this moment."""
        first = bisect_right(self._calendar, moment, key=_due_at)
        later = (self._calendar[at] for at in range(first, len(self._calendar)))
        return next((due_at for due_at, _, ticket, row in later if row.ticket == ticket), None)

    def next_start(self, moment: Micros, now: Micros) -> Micros | None:
        """The earliest instant at which a rate lets a job start that is due."""
        while self._ahead and self._ahead[0][0] <= moment:
            self._wake(moment, now)
        self._wake(moment, now)
        self._ready = deque(turn for turn in self._ready if self._may_start(turn, moment, now))
        while self._resting:
            rests_until, _, turn = self._resting[0]
            if turn.rests(rests_until):
                if turn.heap.first() is not None:
                    return rests_until
                self._drop(turn)
            heappop(self._resting)
        return None

    def has_due(self, moment: Micros) -> bool:
        stale = next((at for at, entry in enumerate(self._calendar) if entry[3].ticket == entry[2]), len(self._calendar))
        del self._calendar[:stale]
        return bool(self._calendar) and self._calendar[0][0] <= moment


def _due_at(entry: Entry) -> Micros:
    return entry[0]
