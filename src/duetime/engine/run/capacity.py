"""How many more jobs this node takes. Claims reserve room; the worker reports jobs it has claimed; settling
releases them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import takewhile
from types import TracebackType

from duetime.errors import StoreError
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed

MAX_BACKLOG = 1_000
AHEAD = SECOND // 10  # claim what starts within this time
MAX_AHEAD = 4_000
MIN_STARTS = 20  # worth a measurement


class StartRate:
    """How fast jobs start here. Measured only while jobs wait: the time one start takes, whatever limits it
    (slots, processor, task)."""

    def __init__(self) -> None:
        self._since: Micros | None = None
        self.starts = 0  # since the measurement began; counted by the worker
        self._spent: Micros = 0  # by measurements too small to count alone, as on a node with few slots
        self._counted = 0
        self._per_start: float | None = None

    def begin(self, now: Micros) -> None:
        self._since, self.starts = now, 0

    def end(self, now: Micros) -> None:
        if self._since is None:
            return
        self._spent += now - self._since
        self._counted += self.starts
        self._since, self.starts = None, 0
        if self._counted >= MIN_STARTS:
            sample = max(self._spent, 1) / self._counted
            self._per_start = sample if self._per_start is None else (self._per_start + sample) / 2
            self._spent = self._counted = 0

    def soon(self) -> int:
        """Jobs that start within the next tenth of a second; none before there is a measurement."""
        return 0 if self._per_start is None else min(int(AHEAD / self._per_start), MAX_AHEAD)


class Reservation:
    """Every claim makes one, before it is sent: a generator would take three times as long."""

    __slots__ = ("_capacity", "_number", "_sweep", "_threads")

    def __init__(self, capacity: Capacity, number: int, sweep: bool, threads: int) -> None:
        self._capacity, self._number, self._sweep, self._threads = capacity, number, sweep, threads

    def __enter__(self) -> None:
        self._capacity._reserved += self._number
        self._capacity._threads_taken += self._threads
        self._capacity._sweeps += self._sweep

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._capacity._reserved -= self._number
        self._capacity._threads_taken -= self._threads
        self._capacity._sweeps -= self._sweep
        if isinstance(problem, StoreError):
            self._capacity.lost_reply_at = self._capacity.monotonic()


class Capacity:
    def __init__(
        self,
        slots: int,
        trusted: Callable[[], bool],
        monotonic: Callable[[], Micros],
        tenants: Set[str] = frozenset(),
        threads: int = 0,
        threaded: Set[str] = frozenset(),
    ) -> None:
        self.slots = slots
        self.threads = threads
        self.threaded = threaded  # targets whose jobs take one of these threads; empty: they are not bounded
        self.trusted = trusted  # whether the node's lease allows starts
        self.rate = StartRate()
        self.monotonic = monotonic
        self._tenants = tenants  # those with jobs for this node
        self._held: Counter[str] = Counter()  # by tenant
        self._held_in_all = 0
        self._reserved = 0  # given to claims whose reply is under way
        self._threads_taken = 0  # by jobs held, and given to such claims
        self._closed = False
        self._backlog = 1
        self._sweeps = 0  # claims under way of the sweeper and the consumer
        # The claimer asks the store which jobs the node holds: claim nothing by ticket, take no successors
        self.recalling = False
        self.passing_on = False  # a settlement that may bring successors is under way
        self.lost_reply_at: Micros | None = (
            None  # the node may hold, or get, jobs that its worker does not know
        )

    @property
    def room(self) -> int:
        """For jobs of any target: with a bound on threads no more than there are free threads, so that no job
        is claimed that would wait for one."""
        if self.threaded:
            return min(self.room_without_threads, self.threads - self._threads_taken)
        return self.room_without_threads

    @property
    def room_without_threads(self) -> int:
        """The free slots, and what will start soon at the present rate. Slots that tenants share are not
        given away ahead of time."""
        if self._closed:
            return 0
        soon = 0 if len(self._tenants) > 1 else self.rate.soon()
        return self.slots + soon - self._held_in_all - self._reserved

    @property
    def threads_are_taken(self) -> bool:
        return bool(self.threaded) and self._threads_taken >= self.threads

    @property
    def shared(self) -> bool:
        """Several tenants share the slots: see `model/fairness.py`."""
        return len(self._tenants) > 1

    @property
    def held(self) -> int:
        """Jobs claimed by this node and not yet settled in the store."""
        return self._held_in_all

    @property
    def held_by(self) -> Mapping[str, int]:
        """The same by tenant."""
        return self._held

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def backlogged(self) -> bool:
        """The last claim came back full: more jobs are due than this node takes."""
        return self._backlog > 1

    @property
    def expecting(self) -> bool:
        return self._reserved > 0 or self.backlogged

    @property
    def sweeping(self) -> bool:
        """A claim of the sweeper or the consumer is under way."""
        return self._sweeps > 0

    def reserve(self, number: int, *, sweep: bool, threads: bool = True) -> Reservation:
        """While a claim for so many jobs is under way, which may be jobs for threads. If its reply is lost,
        it is unknown which jobs the node holds."""
        return Reservation(self, number, sweep, number if threads else 0)

    def claimed(self, jobs: Iterable[Claimed]) -> None:
        self._count(jobs, 1)

    def release(self, jobs: Iterable[Claimed]) -> None:
        self._count(jobs, -1)

    def _count(self, jobs: Iterable[Claimed], change: int) -> None:
        held = self._held
        for job in jobs:
            held[job.tenant] += change
            self._held_in_all += change
            if job.target in self.threaded:
                self._threads_taken += change

    def claim_was_full(self, full: bool) -> None:
        self._backlog = min(2 * self._backlog, MAX_BACKLOG) if full else 1

    def close(self) -> None:
        self._closed = True


# The run queue: claimed jobs that wait for a slot. An urgent job passes the others, but only so many in a
# row.


MAX_PASSING = 64  # urgent jobs in a row before those they pass have a turn


class RunQueue(deque[Claimed]):
    """Jobs in the order taken, except that more urgent ones go to the front. Runners take from the left."""

    def __init__(self) -> None:
        super().__init__()
        self._length = 0  # when it was last looked at: what is missing since has started
        self._ahead = 0  # urgent jobs in front of the first that was passed
        self._passed_by = 0  # urgent jobs that went before that one in all

    def add(self, jobs: Sequence[Claimed]) -> None:
        """`jobs`: most urgent first."""
        if self and jobs and jobs[0].priority > self[-1].priority:
            self._let_pass(jobs)
        else:
            self.extend(jobs)
            self._length += len(jobs)

    def _let_pass(self, jobs: Sequence[Claimed]) -> None:
        self._ahead -= self._length - len(self)
        if self._ahead < 0:  # the first that was passed has had its turn
            self._ahead = self._passed_by = 0
        others = self[-1].priority
        urgent = list(takewhile(lambda job: job.priority > others, jobs))[: MAX_PASSING - self._passed_by]
        if urgent:
            place = self._ahead if urgent[0].priority <= self[0].priority else 0
            self.rotate(-place)
            self.extendleft(reversed(urgent))
            self.rotate(place)
        self._ahead += len(urgent)
        self._passed_by += len(urgent)
        self.extend(jobs[len(urgent) :])
        self._length = len(self)
