"""Queues: what an operator says about them, and what that leaves a claim to take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.limit import Queue, Rate
from duetime.store import ClaimRequest, Lane
from duetime.stores.sqlite.gates import UNLIMITED
from duetime.stores.sqlite.rows import text_of
from duetime.stores.sqlite.session import Row, Session, Transaction


def known(session: Session) -> list[Queue]:
    return [_queue_of(row) for row in session.all("queues")]


def set_queue(transaction: Transaction, queue: Queue) -> None:
    count, period = (None, None) if queue.rate is None else queue.rate
    transaction.change("set_queue", (queue.name, queue.paused, queue.pause_note, queue.paused_at, queue.most, count, period))
    transaction.queues.add(queue.name)
    transaction.tell([JobHint("*", 0, 0)])


class Rules:
    """Queues that are paused or limited, and how many more of each may start."""

    def __init__(self, session: Session, now: Micros, any_ruled: bool = True) -> None:
        self._now = now
        self._rates: dict[str, tuple[Rate, Micros]] = {}
        self.left: dict[str, int] = {}
        self.paused: set[str] = set()
        for name, paused, most, count, period, spent in session.all("ruled_queues") if any_ruled else ():
            if count is not None:
                self._rates[name] = (Rate(count, period), spent)
            if paused:
                self.paused.add(name)
            else:
                self.left[name] = min(self._places(session, name, most), self._starts(name))

    def open_lanes(self, lanes: Iterable[Lane]) -> tuple[Lane, ...]:
        """Those to be read at all. What a limit held up lies below the bound when its turn comes, so there is none."""
        wanted = (lane for lane in lanes if lane.queue not in self.paused and self.left.get(lane.queue, 1) > 0)
        return tuple(lane._replace(low=0) if lane.queue in self.left else lane for lane in wanted)

    def spend(self, transaction: Transaction, queues: Iterable[str]) -> None:
        """These started."""
        for name, starts in Counter(queues).items():
            if name in self._rates:
                rate, spent = self._rates[name]
                transaction.change("spend_queue", (name, rate.spend(spent, self._now, starts)))

    def next_start(self, session: Session, request: ClaimRequest) -> Micros | None:
        """When a rate allows the next start of a job that is due."""
        held_up = (name for name in self._spent_rates() if name not in self.paused and _any_due(session, request, name, self._now))
        return min(map(self._free_at, held_up), default=None)

    def _spent_rates(self) -> list[str]:
        """Those that allow the next start later, or since a moment ago: the last claim may have come a moment too early."""
        since = self._now - JUST_NOW
        return [name for name in self._rates if self._free_at(name) > (since if self.left.get(name, 0) > 0 else self._now)]

    def _free_at(self, name: str) -> Micros:
        rate, spent = self._rates[name]
        return rate.free_at(spent)

    def _starts(self, name: str) -> int:
        if name not in self._rates:
            return UNLIMITED
        rate, spent = self._rates[name]
        return rate.allowed(spent, self._now)

    @staticmethod
    def _places(session: Session, name: str, most: int | None) -> int:
        return UNLIMITED if most is None else most - int(session.value("running_in_queue", (name, most)))


JUST_NOW = SECOND // 20


def _any_due(session: Session, request: ClaimRequest, queue: str, now: Micros) -> bool:
    lanes = [lane for lane in request.lanes if lane.queue == queue]
    return bool(session.value("any_due", (text_of(lanes), text_of(request.targets), now)))


def tell_freed(transaction: Transaction, ended: Sequence[Row]) -> None:
    """A place in a limited queue is free. Rows: id, attempt."""
    transaction.tell([JobHint(queue, priority, transaction.now) for queue, priority in transaction.all_many("limited_queues_of", ended)])


def _queue_of(row: Row) -> Queue:
    name, paused, note, paused_at, most, count, period = row
    return Queue(name, paused == 1, note, paused_at, most, None if count is None else Rate(count, period))
