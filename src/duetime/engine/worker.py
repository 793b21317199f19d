"""The worker: jobs come in, start at their instant, and leave as settlements.

Claimed jobs wait in `ready` (due) or in the heap (claimed a little ahead, to start exactly on time). A pool of runner tasks performs
them; one runner is always armed, so that a task that suspends does not hold up the next. Settlements collect in `done`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from contextvars import Context, copy_context
from heapq import heappop, heappush
from itertools import count
from uuid import UUID

from duetime.clock import Clock
from duetime.engine.failpoint import failpoint
from duetime.engine.pace import Pace
from duetime.engine.perform import Run, Stop, classify, decide, effective, perform
from duetime.errors import StoreError
from duetime.invoker import Handler
from duetime.model.attempt import Ending, Outcome
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed, State
from duetime.model.settle import Settlement

_PENDING = State.PENDING
Begin = Callable[[UUID, int], Awaitable[bool]]


class Worker:
    def __init__(self, handlers: Mapping[str, Handler], clock: Clock, slots: int, on_done: Callable[[], None], begin: Begin) -> None:
        self._handlers = handlers
        self._clock = clock
        self._slots = slots
        self._on_done = on_done
        self._begin = begin
        self._alone = asyncio.Lock()
        self._ready: deque[Run] = deque()
        self._later: list[tuple[Micros, int, list[Run]]] = []
        self._sequence = count()
        self._alarm = clock.alarm(self._tick)
        self._idle: list[asyncio.Future[None]] = []
        self._runners: set[asyncio.Task[None]] = set()
        self._armed = False
        self._closed = False
        self._emptied: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self.running: dict[UUID, Run] = {}
        self.done: list[Settlement] = []
        self.hints: dict[tuple[str, int], Micros] = {}  # lane -> from when on a settlement gives somebody something to claim there
        self.held = 0  # claimed by this node and not yet settled in the store
        self.pace = Pace()
        self.may_start: Callable[[], bool] = lambda: True
        self.doubtful = False  # the reply to a claim was lost: the node may hold jobs this worker does not know of
        self.sweeping = False  # a claim of the sweeper is under way

    @property
    def room(self) -> int:
        """How many more jobs to hold: the slots, and what will start within a moment at the present pace."""
        return 0 if self._closed else self._slots + self.pace.soon() - self.held

    def take(self, jobs: list[Claimed]) -> None:
        """Jobs just claimed by this node."""
        if not jobs:
            return
        failpoint("worker.after_claim")
        now = self._clock.now()
        self.held += len(jobs)
        later: dict[Micros, list[Run]] = {}
        if not self._ready:
            self.pace.begin(self._clock.monotonic())
        for job in jobs:
            if job.due_at <= now:
                self._ready.append(Run(job))
            else:
                later.setdefault(job.due_at, []).append(Run(job))
        for due_at, runs in later.items():
            heappush(self._later, (due_at, next(self._sequence), runs))
        self._tick()

    def give_back_strangers(self, held: list[Claimed]) -> None:
        """Jobs the store says this node holds: those this worker has never seen go back to the queue."""
        runs = [*self._waiting(), *self.running.values()]
        # By attempt, too: a job given back a moment ago may have come again with the next lost reply.
        known = {(run.job.id, run.job.attempt) for run in runs} | {(settlement.id, settlement.attempt) for settlement in self.done}
        strangers = [Run(job) for job in held if (job.id, job.attempt) not in known]
        self.held += len(strangers)
        for run in strangers:
            self._finish_unstarted(run, Outcome(Ending.RELEASED))

    def inherit(self, finished: list[Settlement]) -> None:
        self.held += len(finished)
        self.done.extend(finished)
        self._on_done()

    def stop(self, job_id: UUID, why: Stop) -> None:
        """Ask a running attempt to end; one that has not started yet ends right here."""
        run = self.running.get(job_id)
        if run is None:
            for waiting in self._withdraw(lambda waiting: waiting.job.id == job_id):
                self._finish_unstarted(waiting, Outcome(Ending.CANCELLED, error="cancelled before it started"))
        elif run.stop is None and run.runner is not None:
            run.stop = why
            run.runner.cancel()

    def close(self, why: Stop) -> None:
        """Take no more and give back what has not started."""
        self._closed = True
        self._alarm.cancel()
        for waiting in self._withdraw(lambda _: True):
            if why is Stop.SHUTDOWN:
                self._finish_unstarted(waiting, Outcome(Ending.RELEASED))

    async def drain(self, grace: Micros) -> None:
        """Wait for what runs; interrupt what does not end within the grace period."""
        await self._wait_for_running(grace)
        self.interrupt(Stop.SHUTDOWN)
        await self._wait_for_running(SECOND)

    def interrupt(self, why: Stop) -> None:
        for job_id in list(self.running):
            self.stop(job_id, why)

    def dismiss(self) -> None:
        """Let go of the runners; whatever still runs is on its own and its settlement will be refused."""
        for runner in self._runners:
            runner.cancel()

    # -- starting -----------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        now = self._clock.now()
        while self._later and self._later[0][0] <= now:
            self._ready.extend(heappop(self._later)[2])
        self.arm()
        if self._later:
            self._alarm.set(self._later[0][0])

    def arm(self) -> None:
        """Have a runner start what is ready, if one is free."""
        if not self._armed and self._ready and (self._idle or len(self._runners) < self._slots):
            self._armed = True
            self._loop.call_soon(self._kick)

    def _kick(self) -> None:
        self._armed = False
        if not self._ready or self._closed:
            return
        if self._idle:
            self._idle.pop().set_result(None)
        elif len(self._runners) < self._slots:
            runner = self._loop.create_task(self._run_jobs())
            self._runners.add(runner)
            runner.add_done_callback(self._runners.discard)

    async def _run_jobs(self) -> None:
        """A runner: performs jobs one after the other. It retires when a task left something behind in it."""
        me = asyncio.current_task()
        assert me is not None
        base = copy_context()
        while True:
            while self._ready and self.may_start():
                run = self._ready.popleft()
                self.arm()
                run.runner = me
                if not await self._run_one(run) or me.cancelling() or _differs(copy_context(), base):
                    self._runners.discard(me)
                    self.arm()
                    return
            if not self._ready:
                self.pace.end(self._clock.monotonic())
            free: asyncio.Future[None] = self._loop.create_future()
            self._idle.append(free)
            await free

    async def _run_one(self, run: Run) -> bool:
        """False when the attempt was told to stop: the cancellation may still be under way in this runner."""
        job = run.job
        handler = self._handlers[job.target]
        if job.cancel_requested:
            self._finish_unstarted(run, Outcome(Ending.CANCELLED, error="cancelled before it started"))
            return True
        self.running[job.id] = run
        self.pace.started()
        settlement = await (self._perform(run, handler) if job.losses == 0 else self._perform_suspect(run, handler))
        del self.running[job.id]
        if settlement is None:
            self.held -= 1
        else:
            self._settle(job, settlement)
        if not self.running and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)
        return run.stop is None

    async def _perform(self, run: Run, handler: Handler) -> Settlement:
        job = run.job
        run.started_at = self._clock.now()
        timeout = handler.policies.timeout if job.policies is None else effective(job, handler.policies).timeout
        if timeout is not None:
            run.timer = self._loop.call_later(timeout / SECOND, self.stop, job.id, Stop.TIMEOUT)
        settlement = await perform(run, handler, self._clock)
        if run.timer is not None:
            run.timer.cancel()
        return settlement

    async def _perform_suspect(self, run: Run, handler: Handler) -> Settlement | None:
        """A job that was lost with a worker before announces itself, and after the second loss it starts alone among its like: should
        this worker die too, the store knows which of them did it. None when the job is somebody else's by now."""
        try:
            async with self._alone if run.job.losses > 1 else nullcontext():
                if not await self._begin(run.job.id, run.job.attempt):
                    return None
                if not self.may_start():  # the reply was long on its way, or this process stood still meanwhile
                    return decide(run, handler.policies, Outcome(Ending.RELEASED), self._clock)
                return await self._perform(run, handler)
        except (StoreError, asyncio.CancelledError) as problem:
            outcome = Outcome(Ending.RELEASED) if run.stop is None else classify(problem, run.stop)
            return decide(run, handler.policies, outcome, self._clock)

    # -- ending -------------------------------------------------------------------------------------------------------
    def _settle(self, job: Claimed, settlement: Settlement) -> None:
        if settlement.state is _PENDING:
            self._hint(job, settlement.due_at)
        elif job.overlap is not None:
            self._hint(job, 0)  # the next one of its schedule may have waited since any time
        self.done.append(settlement)
        if len(self.done) == 1:
            self._on_done()

    def _finish_unstarted(self, run: Run, outcome: Outcome) -> None:
        self._settle(run.job, decide(run, self._handlers[run.job.target].policies, outcome, self._clock))

    def _hint(self, job: Claimed, due_at: Micros) -> None:
        lane = (job.queue, job.priority)
        self.hints[lane] = min(due_at, self.hints.get(lane, due_at))

    def _waiting(self) -> list[Run]:
        return [*self._ready, *(run for _, _, runs in self._later for run in runs)]

    def _withdraw(self, wanted: Callable[[Run], bool]) -> list[Run]:
        """Take waiting jobs out of `ready` and the heap."""
        chosen = [run for run in self._waiting() if wanted(run)]
        gone = {id(run) for run in chosen}
        self._ready = deque(run for run in self._ready if id(run) not in gone)
        for _, _, runs in self._later:
            runs[:] = [run for run in runs if id(run) not in gone]
        return chosen

    async def _wait_for_running(self, most: Micros) -> None:
        if self.running:
            self._emptied = self._loop.create_future()
            await asyncio.wait([self._emptied], timeout=most / SECOND)


def _differs(now: Context, base: Context) -> bool:
    """Whether a task set a context variable. Comparing asks the values themselves, and some refuse to be compared."""
    try:
        return now != base
    except Exception:
        return True
