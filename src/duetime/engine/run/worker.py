"""The worker: jobs come in, start at their instant, and leave as settlements.

Claimed jobs wait in the run queue (due), in a heap (claimed a little ahead, to start exactly on time) or
behind their permit. A pool of runner tasks performs them; one runner is always armed, so that a task that
suspends does not delay the next. Settlements go to the outbox."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Set
from contextlib import nullcontext
from contextvars import Context, copy_context
from heapq import heappop, heappush
from itertools import count
from uuid import UUID

from duetime.clock import Clock
from duetime.engine.failpoint import failpoint
from duetime.engine.run.capacity import Capacity, RunQueue
from duetime.engine.run.checkpoints import CheckpointWriter
from duetime.engine.run.outbox import Outbox
from duetime.engine.run.perform import Slot, Stop, classify, decide, effective, perform
from duetime.engine.run.permit_chains import PermitChains
from duetime.engine.run.start_check import StartCheck
from duetime.errors import StoreError
from duetime.invoker import Handler
from duetime.model.instant import SECOND, Micros
from duetime.model.job import HIGHEST_PRIORITY, Claimed, Ending, Outcome
from duetime.model.settle import QUARANTINE_LOSSES, Settlement, poisoned, skip
from duetime.model.trace import is_only_origin

# In one turn of the event loop: jobs due together start together, before the replies to the first come in
MAX_STARTS = 64
LONG_TURN = SECOND // 50  # then fewer starts: the event loop has other work
GIVE_WAY_INTERVAL = SECOND // 20
SHORT_WAIT = 2 * SECOND  # for running jobs when the node stops
RecordStart = Callable[[UUID, int], Awaitable[bool]]


class Worker:
    def __init__(
        self,
        handlers: Mapping[str, Handler],
        clock: Clock,
        capacity: Capacity,
        outbox: Outbox,
        record_start: RecordStart,
        checkpoints: CheckpointWriter,
        start_check: StartCheck,
        on_claimed: Callable[[list[Claimed], Micros], None] = lambda jobs, lapse: None,
        has_news: Callable[[], bool] = lambda: False,
    ) -> None:
        self.capacity = capacity
        self.chains = PermitChains()
        self._handlers = handlers
        self._clock = clock
        self._outbox = outbox
        self._record_start = record_start
        self._checkpoints = checkpoints
        self._start_check = start_check
        self._on_claimed = on_claimed
        self._has_news = has_news  # whether something came that no claim has looked for
        self._alone = asyncio.Lock()
        # A claim takes no more jobs than there are threads; a successor or an urgent job may wait for one
        self._threads = asyncio.Semaphore(capacity.threads)
        self._ready = RunQueue()
        self._gave_way_at: Micros = 0  # or the store chose among all jobs, by a claim
        self._last_priority = HIGHEST_PRIORITY  # the least urgent of the jobs taken last
        self._later: list[tuple[Micros, int, list[Claimed]]] = []
        self._sequence = count()
        self._timer = clock.alarm(self._tick)
        self._idle: list[asyncio.Future[None]] = []
        self._slots: dict[Slot, None] = {}  # each with its runner; a dict keeps their order
        self._armed = False
        self._armed_at: Micros = 0
        self._starts = 1  # runners to wake in one turn
        self._woken = 0
        self._found = 0  # of those that were woken, how many found something to do
        self._emptied: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._hurried: asyncio.Future[None] = self._loop.create_future()

    @property
    def running(self) -> list[Claimed]:
        return [slot.job for slot in self._slots if slot.job is not None]

    def passes(self, priority: int) -> bool:
        """Whether a job this urgent would start before others that wait here, are being claimed or are
        claimed next."""
        return self._last_priority < priority and bool(self._ready or self.capacity.expecting)

    @property
    def free_permits(self) -> int:
        """How many more jobs with a limit key this node can run at the same time."""
        return max(0, self.capacity.slots - len(self.chains) - self._outbox.with_limit_key())

    def take(self, jobs: list[Claimed], lapse: Micros = 0, *, passing: bool = False) -> None:
        """Jobs just claimed by this node; `passing` others that wait."""
        if jobs:
            failpoint("worker.after_claim")
            self._start_or_hold(jobs, passing)
        self._loop.call_soon(self._on_claimed, jobs, lapse)  # the first of them starts before it is reported

    def _start_or_hold(self, jobs: list[Claimed], passing: bool) -> None:
        if not passing:
            self._last_priority = jobs[-1].priority
            self._gave_way_at = self.capacity.monotonic()
        now = self._clock.now()
        self.capacity.claimed(jobs)
        later: dict[Micros, list[Claimed]] = {}
        if not self._ready:
            self.capacity.rate.begin(self._clock.monotonic())
        due = [job for job in jobs if job.due_at <= now]
        if len(due) < len(jobs):
            for job in jobs:
                if job.due_at > now:
                    later.setdefault(job.due_at, []).append(job)
        self._ready.add(self.chains.admit(due))
        for due_at, due_together in later.items():
            heappush(self._later, (due_at, next(self._sequence), due_together))
        if self._later:
            self._tick()
        elif not self._armed:
            self._kick()

    def take_successors(self, jobs: list[Claimed]) -> None:
        """Jobs that got the permits of jobs settled by this node."""
        if jobs and self.capacity.closed:
            self.capacity.claimed(jobs)
            self._release(jobs)
        elif jobs:
            self.take(jobs, passing=True)

    def gives_way(self) -> bool:
        """Whether permits of settled jobs go to any node: this one closes, or other jobs wait for its slots.
        Without room it makes no claims, and the jobs of a flood would follow one another; so it gives way now
        and then."""
        capacity, now = self.capacity, self.capacity.monotonic()
        if capacity.closed or capacity.recalling or not capacity.trusted():
            return True
        others_wait = capacity.backlogged or self._has_news()
        if capacity.room > 0 or not others_wait or now - self._gave_way_at < GIVE_WAY_INTERVAL:
            return False
        self._gave_way_at = now
        return True

    def known(self) -> Set[tuple[UUID, int]]:
        """Jobs this worker has, by attempt: a job that was just released may have come again with the next
        lost reply."""
        return {(job.id, job.attempt) for job in [*self._waiting(), *self.running]} | self._outbox.attempts()

    def release_unknown(self, held: list[Claimed], known_before: Set[tuple[UUID, int]] = frozenset()) -> None:
        """Of the jobs that this node holds according to the store, release those the worker never saw. Those
        `known_before` the store was asked may have been settled since."""
        known = known_before | self.known()
        unknown = [job for job in held if (job.id, job.attempt) not in known]
        self.capacity.claimed(unknown)
        self._release(unknown)

    def stop(self, job_id: UUID, why: Stop) -> None:
        """Ask a running attempt to end; one that has not started yet ends right here."""
        for slot in self._slots:
            if slot.job is not None and slot.job.id == job_id:
                self._interrupt(slot, slot.job, why)
                return
        for job in self._withdraw(lambda job: job.id == job_id):
            self._finish_unstarted(job, Outcome(Ending.CANCELLED, error="cancelled before it started"))

    def fence(self, job_id: UUID, attempt: int) -> None:
        """Stop this attempt, which no longer counts; another attempt of the same job may be here, too."""
        for slot in self._slots:
            if slot.job is not None and slot.job[:2] == (job_id, attempt):
                self._interrupt(slot, slot.job, Stop.FENCED)

    def close(self, why: Stop) -> None:
        """Take no more and release what has not started."""
        self.capacity.close()
        self._timer.cancel()
        for job in self._withdraw(lambda _: True):
            if why is Stop.SHUTDOWN:
                self._finish_unstarted(job, Outcome(Ending.RELEASED))

    async def drain(self, grace: Micros, on_wait: Callable[[int], None]) -> None:
        """Wait for running jobs; interrupt those that do not end within the grace period. `on_wait` gets
        their number if the wait is not short."""
        await self._wait_for_running(min(grace, SHORT_WAIT), self._hurried)
        if self.running and grace > SHORT_WAIT and not self._hurried.done():
            on_wait(len(self.running))
            await self._wait_for_running(grace - SHORT_WAIT, self._hurried)
        self.interrupt(Stop.SHUTDOWN)
        await self._wait_for_running(SECOND)

    def hurry(self) -> None:
        """End the grace period of `drain`, also for jobs that ignore their cancellation."""
        if not self._hurried.done():
            self._hurried.set_result(None)

    def interrupt(self, why: Stop) -> None:
        for slot in self._slots:
            if slot.job is not None:
                self._interrupt(slot, slot.job, why)

    def dismiss(self) -> list[asyncio.Task[None]]:
        """Cancel the runners. The settlement of a task that still runs will be refused. Returns the runners
        of these tasks."""
        for slot in self._slots:
            if slot.runner is not None:
                slot.runner.cancel()
        return [slot.runner for slot in self._slots if slot.job is not None and slot.runner is not None]

    # -- starting
    def _tick(self) -> None:
        now = self._clock.now()
        while self._later and self._later[0][0] <= now:
            self._ready.add(self.chains.admit(heappop(self._later)[2]))
        if not self._armed:
            self._kick()
        if self._later:
            self._timer.set(self._later[0][0])

    def arm(self) -> None:
        """Have a free runner start the next job."""
        if not self._armed and self._ready and (self._idle or len(self._slots) < self.capacity.slots):
            self._armed = True
            self._armed_at = self.capacity.monotonic()
            self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        """The first runner performs all tasks that never suspend: more runners would find nothing to do."""
        more = self._found >= self._woken and self.capacity.monotonic() - self._armed_at < LONG_TURN
        self._starts = min(2 * self._starts, MAX_STARTS) if more else max(1, self._starts // 2)
        self._kick()

    def _kick(self) -> None:
        self._armed = False
        if not self._ready or self.capacity.closed:
            return
        self._woken, self._found = min(self._starts, len(self._ready)), 0
        for _ in range(self._woken):
            if self._idle:
                self._idle.pop().set_result(None)
            elif len(self._slots) < self.capacity.slots:
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
        """A runner: performs jobs one after the other in its slot. It retires when a task left something
        behind in it."""
        me = asyncio.current_task()
        assert me is not None
        base = copy_context()
        settlement: Settlement | None
        while True:
            self._found += bool(self._ready)
            while self._ready and self.capacity.trusted():
                slot.job = job = self._ready.popleft()
                if not self._armed:
                    self.arm()
                self.capacity.rate.starts += 1
                handler = self._handlers[job.target]
                if job.target in self.capacity.threaded:
                    settlement = await self._perform_in_thread(job, slot, handler)
                elif _is_plain(job, handler):
                    settlement = await perform(job, slot, handler, self._clock, self._checkpoints)
                else:
                    settlement = await self._perform_with_care(job, slot, handler)
                slot.job = None
                self._finish(job, settlement)
                # A job that was told to stop may have a pending cancellation.
                left = copy_context()
                if slot.stop is not None or me.cancelling() or _differs(left, base):
                    self._retire(slot)
                    self.arm()
                    return
                base = left  # equal contexts are compared quickly only if nothing was set since
            if not self._ready:
                self.capacity.rate.end(self._clock.monotonic())
            free: asyncio.Future[None] = self._loop.create_future()
            self._idle.append(free)
            await free

    async def _perform_in_thread(self, job: Claimed, slot: Slot, handler: Handler) -> Settlement | None:
        """It starts, and its timeout begins, when it has a thread."""
        try:
            await self._threads.acquire()
        except asyncio.CancelledError as problem:
            return self._not_started(job, slot, handler, problem)
        try:
            if not self.capacity.trusted():
                return self._not_started(job, slot, handler)
            return await self._perform_with_care(job, slot, handler)
        finally:
            self._threads.release()

    async def _perform_with_care(self, job: Claimed, slot: Slot, handler: Handler) -> Settlement | None:
        """Jobs that are cancelled, late or were lost before, or have a timeout. None when the job now belongs
        to another attempt."""
        if job.cancel_requested:
            return decide(
                job,
                Outcome(Ending.CANCELLED, error="cancelled before it started"),
                handler.policies,
                None,
                self._clock,
            )
        policies = effective(job, handler.policies)
        if self._start_check.needed(job, policies):
            try:
                reason = await self._start_check.reason(job, policies)
            except (StoreError, asyncio.CancelledError) as problem:
                return self._not_started(job, slot, handler, problem)
            if reason is not None:
                return skip(job, reason, self._clock.now())
            if not self.capacity.trusted():  # the reply was slow, or this process was suspended
                return self._not_started(job, slot, handler)
        return await (
            self._perform_bounded(job, slot, handler)
            if job.losses == 0
            else self._perform_suspect(job, slot, handler)
        )

    async def _perform_bounded(self, job: Claimed, slot: Slot, handler: Handler) -> Settlement:
        timeout = effective(job, handler.policies).timeout
        if timeout is None:
            return await perform(job, slot, handler, self._clock, self._checkpoints)
        timer = self._loop.call_later(timeout / SECOND, self._interrupt, slot, job, Stop.TIMEOUT)
        settlement = await perform(job, slot, handler, self._clock, self._checkpoints)
        timer.cancel()
        return settlement

    async def _perform_suspect(self, job: Claimed, slot: Slot, handler: Handler) -> Settlement | None:
        """Record that a previously lost job is starting, so that a second crash can be attributed to it. In
        quarantine such jobs run one at a time."""
        poison = poisoned(job, effective(job, handler.policies).retry, self._clock.now())
        if poison is not None:
            return poison
        try:
            async with self._alone if job.losses >= QUARANTINE_LOSSES else nullcontext():
                if not await self._record_start(job.id, job.attempt):
                    return None
                if not self.capacity.trusted():
                    return self._not_started(job, slot, handler)
                return await self._perform_bounded(job, slot, handler)
        except (StoreError, asyncio.CancelledError) as problem:
            return self._not_started(job, slot, handler, problem)

    def _not_started(
        self, job: Claimed, slot: Slot, handler: Handler, problem: BaseException | None = None
    ) -> Settlement:
        """Release the job, unless it was told to stop while the store was asked."""
        stopped = None if problem is None or slot.stop is None else classify(problem, slot.stop)
        outcome = stopped or Outcome(Ending.RELEASED)
        return decide(job, outcome, handler.policies, None, self._clock)

    # -- ending
    def _interrupt(self, slot: Slot, job: Claimed, why: Stop) -> None:
        if slot.job is job and slot.stop is None and slot.runner is not None:
            slot.stop = why
            slot.runner.cancel(why.value)  # hooks want to know

    def _finish(self, job: Claimed, settlement: Settlement | None) -> None:
        if job.limit_key is not None:
            self._leave(job, settlement)
        if settlement is None:
            self.capacity.release([job])
        else:
            self._outbox.add(job, settlement)
        if self._emptied is not None and not self._emptied.done() and not self.running:
            self._emptied.set_result(None)

    def _leave(self, job: Claimed, settlement: Settlement | None) -> None:
        started_at = None if settlement is None else settlement.started_at
        duration = None if settlement is None or started_at is None else settlement.finished_at - started_at
        following = self.chains.leave(job, duration)
        if following is not None:
            self._ready.add([following])

    def _release(self, jobs: list[Claimed]) -> None:
        for job in jobs:
            self._finish_unstarted(job, Outcome(Ending.RELEASED))

    def _finish_unstarted(self, job: Claimed, outcome: Outcome) -> None:
        self._outbox.add(job, decide(job, outcome, self._handlers[job.target].policies, None, self._clock))

    def _waiting(self) -> list[Claimed]:
        later = (job for _, _, due_together in self._later for job in due_together)
        return [*self._ready, *later, *self.chains.waiting()]

    def _withdraw(self, wanted: Callable[[Claimed], bool]) -> list[Claimed]:
        """Take waiting jobs out of the run queue, the heap and the permit chains."""
        chosen = [job for job in self._waiting() if wanted(job)]
        gone = {id(job) for job in chosen}
        for _, _, due_together in self._later:
            due_together[:] = [job for job in due_together if id(job) not in gone]
        self.chains.forget(gone)
        followers = [
            self.chains.leave(job, None)
            for job in self._ready
            if id(job) in gone and job.limit_key is not None
        ]
        kept = [job for job in [*self._ready, *followers] if job is not None and id(job) not in gone]
        self._ready.clear()
        self._ready.extend(kept)
        return chosen

    async def _wait_for_running(self, timeout: Micros, *ends: asyncio.Future[None]) -> None:
        if self.running:
            self._emptied = self._loop.create_future()
            await asyncio.wait(
                [self._emptied, *ends], timeout=timeout / SECOND, return_when=asyncio.FIRST_COMPLETED
            )


def needs_permit(job: Claimed) -> bool:
    return job.limit_key is not None or job.overlap is not None


def _is_plain(job: Claimed, handler: Handler) -> bool:
    """Only the task itself to run: nearly all jobs, so they take the short path."""
    return (
        job.losses == 0
        and not job.cancel_requested
        and (job.policies is None or is_only_origin(job.policies))
        and job.schedule_id is None
        and handler.policies.timeout is None
        and handler.policies.retry.max_age is None
    )


def _differs(now: Context, base: Context) -> bool:
    """Whether a task set a context variable. Some values cannot be compared."""
    try:
        return now != base
    except Exception:
        return True
