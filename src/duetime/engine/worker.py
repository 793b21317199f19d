"""The worker: jobs come in, start at their instant, and leave as settlements.

Claimed jobs wait in `ready` (due), in the heap (claimed a little ahead, to start exactly on time) or behind their gate (more were claimed
than may run at once). A pool of runner tasks performs them; one runner is always armed, so that a task that suspends does not hold up the
next. Settlements collect in `done`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Set
from contextlib import nullcontext
from contextvars import Context, copy_context
from heapq import heappop, heappush
from itertools import count
from uuid import UUID

from duetime.clock import Clock
from duetime.engine.desk import WritingDesk
from duetime.engine.failpoint import failpoint
from duetime.engine.pace import Pace
from duetime.engine.perform import Slot, Stop, classify, decide, effective, perform
from duetime.engine.places import Places
from duetime.engine.turns import Turns
from duetime.errors import StoreError
from duetime.invoker import Handler
from duetime.model.attempt import Ending, Outcome
from duetime.model.instant import SECOND, Micros
from duetime.model.job import HIGHEST_PRIORITY, Claimed, State
from duetime.model.limit import Bound
from duetime.model.settle import Settlement

_PENDING = State.PENDING
MOST_STARTS = 64  # in one turn of the event loop: what is due together leaves together, before the answers to the first come in
LONG_TURN = SECOND // 50  # then fewer: other things than starts have to be seen to
Begin = Callable[[UUID, int], Awaitable[bool]]


class Worker:
    def __init__(
        self, handlers: Mapping[str, Handler], clock: Clock, slots: int, on_done: Callable[[], None], begin: Begin, desk: WritingDesk
    ) -> None:
        self._handlers = handlers
        self._clock = clock
        self._most_slots = slots
        self._on_done = on_done
        self._begin = begin
        self._desk = desk
        self._alone = asyncio.Lock()
        self._ready: deque[Claimed] = deque()
        self._turns = Turns()
        self._places = Places(handlers)
        self._last_priority = HIGHEST_PRIORITY  # of what was taken last: the least urgent of it
        self._later: list[tuple[Micros, int, list[Claimed]]] = []
        self._sequence = count()
        self._alarm = clock.alarm(self._tick)
        self._idle: list[asyncio.Future[None]] = []
        self._slots: dict[Slot, None] = {}  # each with its runner; a dict keeps their order
        self._armed = False
        self._armed_at: Micros = 0
        self._starts = 1  # runners to wake in one turn
        self._woken = 0
        self._found = 0  # of those that were woken, how many found something to do
        self._closed = False
        self._emptied: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self.monotonic = clock.monotonic
        self.done: list[Settlement] = []
        self.ended: list[Claimed] = []  # the job of each settlement in `done`
        self.hints: dict[tuple[str, int], Micros] = {}  # lane -> from when on a settlement gives somebody something to claim there
        self.limited: frozenset[str] = frozenset()  # queues of which not everything that is due may run at once
        self.held = 0  # claimed by this node and not yet settled in the store
        self.reserved = 0  # room given to claims whose reply is on its way
        self.pace = Pace()
        self.may_start: Callable[[], bool] = lambda: True
        self.on_claimed: Callable[[list[Claimed], Micros], None] = lambda jobs, lapse: None
        self.doubtful_since: Micros | None = None  # a claim's reply was lost: the node may hold, or get, jobs this worker does not know of
        self.sweeping = False  # a claim of the sweeper is under way
        self.more = 1  # doubled by each claim in a row that left some behind: so many jobs of gates to take beyond the slots
        self.running_low = False  # behind a gate there is less to do than there should be

    @property
    def room(self) -> int:
        """How many more jobs to hold: the slots, and what will start within a moment at the present pace."""
        if self._closed:
            return 0
        return self._most_slots + self._soon() - self.held - self.reserved

    def _soon(self) -> int:
        """Jobs of gates are worth having beyond the slots only behind places that are taken here, or if nobody else comes for them: what is
        held here may be all that could run now, and others idle."""
        pace, part = self.pace.soon(), self._places.part
        if not part:
            return pace
        behind = 0 if self._crowded else self._places.soon(self._most_slots)
        # Those that have ended hold nobody up here while they are written.
        return int(pace * (1 - part) + len(self.done) * part) + behind + min(self.more, pace)

    def bounds(self, bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
        """What a claim goes by: of gates whose jobs are short it may take some ahead, unless slots are what they would wait for."""
        return bounds if self._crowded else self._places.bounds(bounds)

    @property
    def fresh(self) -> int | None:
        """How many jobs to take of gates that are new here, where gates play a part."""
        if not self._places.part:
            return None
        free = self._most_slots - len(self._slots) + len(self._idle) - len(self._ready)
        return max(0, free) + min(self.more, self.pace.soon() + 1)

    @property
    def _crowded(self) -> bool:
        """More wait for a slot than a moment's chance brings about: other nodes may have slots to spare."""
        return len(self._ready) > self._most_slots // 2

    @property
    def running(self) -> list[Claimed]:
        return [slot.job for slot in self._slots if slot.job is not None]

    def passes(self, priority: int) -> bool:
        """Whether a job this urgent would start before others that wait here, are on their way or are claimed next."""
        return self._last_priority < priority and bool(self._ready or self.reserved or self.more > 1)

    def take(self, jobs: list[Claimed], *, passing: bool = False) -> None:
        """Jobs just claimed by this node; `passing` others that wait."""
        if not jobs:
            return
        failpoint("worker.after_claim")
        if not passing:
            self._last_priority = jobs[-1].priority
        now = self._clock.now()
        self.held += len(jobs)
        self._places.came(jobs)
        later: dict[Micros, list[Claimed]] = {}
        if not self._ready:
            self.pace.begin(self._clock.monotonic())
        due = [job for job in jobs if job.due_at <= now]
        if len(due) < len(jobs):
            for job in jobs:
                if job.due_at > now:
                    later.setdefault(job.due_at, []).append(job)
        self._turns.add(self._ready, self._places.admit(due))
        for due_at, due_together in later.items():
            heappush(self._later, (due_at, next(self._sequence), due_together))
        self._tick()

    def known(self) -> Set[tuple[UUID, int]]:
        """Jobs this worker has; by attempt, too: one given back a moment ago may have come again with the next lost reply."""
        known = {(job.id, job.attempt) for job in [*self._waiting(), *self.running]}
        return known | {(settlement.id, settlement.attempt) for settlement in self.done}

    def give_back_strangers(self, held: list[Claimed], known_before: Set[tuple[UUID, int]] = frozenset()) -> None:
        """Jobs the store says this node holds: those this worker has never seen go back to the queue. Those `known_before` it was asked
        may have been settled since it looked."""
        known = known_before | self.known()
        strangers = [job for job in held if (job.id, job.attempt) not in known]
        self.held += len(strangers)
        for job in strangers:
            self._finish_unstarted(job, Outcome(Ending.RELEASED))

    def inherit(self, finished: list[tuple[Settlement, Claimed]]) -> None:
        self.held += len(finished)
        self.done.extend(settlement for settlement, _ in finished)
        self.ended.extend(job for _, job in finished)
        self._on_done()

    def stop(self, job_id: UUID, why: Stop) -> None:
        """Ask a running attempt to end; one that has not started yet ends right here."""
        for slot in self._slots:
            if slot.job is not None and slot.job.id == job_id:
                self._interrupt(slot, slot.job, why)
                return
        for job in self._withdraw(lambda job: job.id == job_id):
            self._finish_unstarted(job, Outcome(Ending.CANCELLED, error="cancelled before it started"))

    def fence(self, job_id: UUID, attempt: int) -> None:
        """This attempt does not count any more; another one of the same job may be here, too."""
        for slot in self._slots:
            if slot.job is not None and slot.job[:2] == (job_id, attempt):
                self._interrupt(slot, slot.job, Stop.FENCED)

    def close(self, why: Stop) -> None:
        """Take no more and give back what has not started."""
        self._closed = True
        self._alarm.cancel()
        for job in self._withdraw(lambda _: True):
            if why is Stop.SHUTDOWN:
                self._finish_unstarted(job, Outcome(Ending.RELEASED))

    async def drain(self, grace: Micros) -> None:
        """Wait for what runs; interrupt what does not end within the grace period."""
        await self._wait_for_running(grace)
        self.interrupt(Stop.SHUTDOWN)
        await self._wait_for_running(SECOND)

    def interrupt(self, why: Stop) -> None:
        for slot in self._slots:
            if slot.job is not None:
                self._interrupt(slot, slot.job, why)

    def dismiss(self) -> None:
        """Let go of the runners; whatever still runs is on its own and its settlement will be refused."""
        for slot in self._slots:
            if slot.runner is not None:
                slot.runner.cancel()

    # -- starting -----------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        now = self._clock.now()
        while self._later and self._later[0][0] <= now:
            self._turns.add(self._ready, self._places.admit(heappop(self._later)[2]))
        if not self._armed:
            self._kick()
        if self._later:
            self._alarm.set(self._later[0][0])

    def arm(self) -> None:
        """Have a runner start what is ready, if one is free."""
        if not self._armed and self._ready and (self._idle or len(self._slots) < self._most_slots):
            self._armed = True
            self._armed_at = self.monotonic()
            self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        """Tasks that never suspend are all performed by the first runner: more would find nothing to do."""
        more = self._found >= self._woken and self.monotonic() - self._armed_at < LONG_TURN
        self._starts = min(2 * self._starts, MOST_STARTS) if more else max(1, self._starts // 2)
        self._kick()

    def _kick(self) -> None:
        self._armed = False
        if not self._ready or self._closed:
            return
        self._woken, self._found = min(self._starts, len(self._ready)), 0
        for _ in range(self._woken):
            if self._idle:
                self._idle.pop().set_result(None)
            elif len(self._slots) < self._most_slots:
                self._add_runner()
            else:
                break

    def _add_runner(self) -> None:
        slot = Slot()
        self._slots[slot] = None
        slot.runner = self._loop.create_task(self._run_jobs(slot))
        slot.runner.add_done_callback(lambda _: self._retire(slot))

    def _retire(self, slot: Slot) -> None:
        self._slots.pop(slot, None)

    async def _run_jobs(self, slot: Slot) -> None:
        """A runner: performs jobs one after the other in its slot. It retires when a task left something behind in it."""
        me = asyncio.current_task()
        assert me is not None
        base = copy_context()
        while True:
            self._found += bool(self._ready)
            while self._ready and self.may_start():
                slot.job = job = self._ready.popleft()
                if not self._armed:
                    self.arm()
                self.pace.starts += 1
                handler = self._handlers[job.target]
                if _is_plain(job, handler):
                    settlement: Settlement | None = await perform(job, slot, handler, self._clock, self._desk)
                else:
                    settlement = await self._perform_with_care(job, slot, handler)
                slot.job = None
                self._finish(job, settlement)
                # What was told to stop may have a cancellation on its way.
                if slot.stop is not None or me.cancelling() or _differs(copy_context(), base):
                    self._retire(slot)
                    self.arm()
                    return
            if not self._ready:
                self.pace.end(self._clock.monotonic())
            free: asyncio.Future[None] = self._loop.create_future()
            self._idle.append(free)
            await free

    async def _perform_with_care(self, job: Claimed, slot: Slot, handler: Handler) -> Settlement | None:
        """Jobs that are unwanted, under suspicion or bounded in time. None when the job is somebody else's by now."""
        if job.cancel_requested:
            return decide(job, Outcome(Ending.CANCELLED, error="cancelled before it started"), handler.policies, None, self._clock)
        return await (self._perform_bounded(job, slot, handler) if job.losses == 0 else self._perform_suspect(job, slot, handler))

    async def _perform_bounded(self, job: Claimed, slot: Slot, handler: Handler) -> Settlement:
        timeout = effective(job, handler.policies).timeout
        if timeout is None:
            return await perform(job, slot, handler, self._clock, self._desk)
        timer = self._loop.call_later(timeout / SECOND, self._interrupt, slot, job, Stop.TIMEOUT)
        settlement = await perform(job, slot, handler, self._clock, self._desk)
        timer.cancel()
        return settlement

    async def _perform_suspect(self, job: Claimed, slot: Slot, handler: Handler) -> Settlement | None:
        """A job that was lost with a worker before announces itself, and after the second loss it starts alone among its like: should
        this worker die too, the store knows which of them did it."""
        try:
            async with self._alone if job.losses > 1 else nullcontext():
                if not await self._begin(job.id, job.attempt):
                    return None
                if not self.may_start():  # the reply was long on its way, or this process stood still meanwhile
                    return decide(job, Outcome(Ending.RELEASED), handler.policies, None, self._clock)
                return await self._perform_bounded(job, slot, handler)
        except (StoreError, asyncio.CancelledError) as problem:
            outcome = Outcome(Ending.RELEASED) if slot.stop is None else classify(problem, slot.stop)
            return decide(job, outcome, handler.policies, None, self._clock)

    # -- ending -------------------------------------------------------------------------------------------------------
    def _interrupt(self, slot: Slot, job: Claimed, why: Stop) -> None:
        if slot.job is job and slot.stop is None and slot.runner is not None:
            slot.stop = why
            slot.runner.cancel(why.value)  # hooks want to know

    def _finish(self, job: Claimed, settlement: Settlement | None) -> None:
        if job.gate is not None:
            self._leave_gate(job, settlement)
        if settlement is None:
            self.held -= 1
        else:
            self._settle(job, settlement)
        if self._emptied is not None and not self._emptied.done() and not self.running:
            self._emptied.set_result(None)

    def _leave_gate(self, job: Claimed, settlement: Settlement | None) -> None:
        following = self._places.leave(job)
        if following is not None:
            self._turns.add(self._ready, [following])
        if settlement is not None and settlement.started_at is not None:
            self._places.took(job, settlement.finished_at - settlement.started_at)

    def _settle(self, job: Claimed, settlement: Settlement) -> None:
        if job.gate is not None and settlement.state is not _PENDING and (waiting := self._places.waiting_behind(job)):
            # While others wait for this place here, nobody elsewhere can have it.
            self.running_low = self.running_low or 2 * waiting < self._places.ahead(job.target)
        elif job.gate is not None or (self.limited and job.queue in self.limited):
            self._hint(job, 0)  # however this one ends, the next one may start, and may have waited since any time
        elif settlement.state is _PENDING:
            self._hint(job, settlement.due_at)
        elif job.overlap is not None:
            self._hint(job, 0)  # the next one of its schedule may have waited since any time
        self.done.append(settlement)
        self.ended.append(job)
        if len(self.done) == 1:
            self._on_done()

    def _finish_unstarted(self, job: Claimed, outcome: Outcome) -> None:
        self._settle(job, decide(job, outcome, self._handlers[job.target].policies, None, self._clock))

    def _hint(self, job: Claimed, due_at: Micros) -> None:
        lane = (job.queue, job.priority)
        self.hints[lane] = min(due_at, self.hints.get(lane, due_at))

    def _waiting(self) -> list[Claimed]:
        later = (job for _, _, due_together in self._later for job in due_together)
        return [*self._ready, *later, *self._places.waiting()]

    def _withdraw(self, wanted: Callable[[Claimed], bool]) -> list[Claimed]:
        """Take waiting jobs out of `ready`, the heap and the gates."""
        chosen = [job for job in self._waiting() if wanted(job)]
        gone = {id(job) for job in chosen}
        for _, _, due_together in self._later:
            due_together[:] = [job for job in due_together if id(job) not in gone]
        self._places.forget(gone)
        admitted = [job for job in self._ready if id(job) in gone]
        followers = [job for job in map(self._places.leave, admitted) if job is not None]
        self._ready = deque([*(job for job in self._ready if id(job) not in gone), *followers])
        return chosen

    async def _wait_for_running(self, most: Micros) -> None:
        if self.running:
            self._emptied = self._loop.create_future()
            await asyncio.wait([self._emptied], timeout=most / SECOND)


def _is_plain(job: Claimed, handler: Handler) -> bool:
    """Nothing to look after but the task itself: nearly all jobs, so they take the short way."""
    return job.losses == 0 and not job.cancel_requested and job.policies is None and handler.policies.timeout is None


def _differs(now: Context, base: Context) -> bool:
    """Whether a task set a context variable. Comparing asks the values themselves, and some refuse to be compared."""
    try:
        return now != base
    except Exception:
        return True
