"""One life of a node under one node id: the loops of its roles, wired together. When the id is lost, a new incarnation takes over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from duetime.clock import Clock
from duetime.engine.brake import Brake
from duetime.engine.claimer import Asked, Claimer, Sweeper
from duetime.engine.desk import WritingDesk
from duetime.engine.heart import Heart
from duetime.engine.herald import Herald
from duetime.engine.keeper import Keeper
from duetime.engine.lanes import ANY_QUEUE, Lanes
from duetime.engine.loop import Loop, Part
from duetime.engine.options import NodeOptions
from duetime.engine.perform import Stop
from duetime.engine.planner import Planner
from duetime.engine.reaper import Reaper
from duetime.engine.retention import Retention
from duetime.engine.settler import Settler
from duetime.engine.tasks import Tasks
from duetime.engine.terms import Publisher
from duetime.engine.worker import Worker
from duetime.invoker import Handler
from duetime.model.events import JobsClaimed
from duetime.model.hint import CancelHint, Hint, JobHint, ScheduleHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.model.lease import NodeId
from duetime.model.limit import Bound
from duetime.model.profile import Profile
from duetime.model.settle import Settlement
from duetime.observer import Observers
from duetime.store import Store

FLUSH_WITHIN = 5 * SECOND


class Incarnation:
    def __init__(
        self,
        node: NodeId,
        store: Store,
        clock: Clock,
        tasks: Tasks,
        options: NodeOptions,
        observers: Observers,
        heart: Heart,
        on_settled: Callable[[list[UUID]], None],
        terms: Publisher,
    ) -> None:
        self.node = node
        self.heart = heart
        self._store = store
        self._clock = clock
        self._options = options
        self._grace = options.grace
        self._observers = observers
        self._on_settled = on_settled
        self._loops: list[Loop] = []
        self._tasks: dict[Loop, asyncio.Task[None]] = {}
        self._planner: Loop | None = None
        self._claimer: Claimer | None = None
        self._claiming: Loop | None = None
        self._settling: Loop | None = None
        self._worker: Worker | None = None
        self._add(Reaper(store, clock, node, observers, tasks.handlers))
        self._add(Herald(store, clock, node, _profile(tasks.handlers, options), terms))
        if "planner" in options.roles:
            self._add_planner(tasks.retentions)
        if "worker" in options.roles:
            self._add_worker(tasks.handlers, heart)
        self._unsubscribe = store.subscribe(self._heard)

    @property
    def running(self) -> int:
        return len(self._worker.running) if self._worker is not None else 0

    def start(self) -> None:
        for loop in self._loops:
            self._tasks[loop] = asyncio.create_task(loop.run(), name=f"duetime-{loop.part.name}")

    def cancel(self, job_ids: Sequence[UUID]) -> None:
        for job_id in job_ids:
            if self._worker is not None:
                self._worker.stop(job_id, Stop.CANCEL)

    def _fence(self, job_id: UUID, attempt: int) -> None:
        if self._worker is not None:
            self._worker.fence(job_id, attempt)

    def interrupt(self) -> None:
        self._grace = 0  # what is given back here may be claimed again before the stop
        if self._worker is not None:
            self._worker.interrupt(Stop.SHUTDOWN)

    async def stop(self) -> None:
        """Orderly: claim nothing more, finish or give back, write every settlement."""
        self._unsubscribe()
        await self._end([loop for loop in self._loops if loop is not self._settling])
        if self._worker is not None and self._settling is not None:
            self._worker.close(Stop.SHUTDOWN)
            await self._worker.drain(self._grace)
            await self._flush(self._worker, self._settling)
            self._worker.dismiss()

    async def abort(self) -> list[tuple[Settlement, Claimed]]:
        """The id is lost: stop everything that runs under it. What had ended before and is not written yet is handed on: the store
        still takes it for jobs that nobody else has got meanwhile."""
        finished = [] if self._worker is None else list(zip(self._worker.done, self._worker.ended, strict=True))
        self._unsubscribe()
        if self._worker is not None:
            self._worker.close(Stop.FENCED)
            self._worker.interrupt(Stop.FENCED)
        await self._end(self._loops)
        if self._worker is not None:
            self._worker.dismiss()
        return finished

    def inherit(self, finished: list[tuple[Settlement, Claimed]]) -> None:
        """Settlements an earlier incarnation could not write."""
        if self._worker is not None and finished:
            self._worker.inherit(finished)

    # -- wiring -------------------------------------------------------------------------------------------------------
    def _add(self, part: Part) -> Loop:
        loop = Loop(part, self._clock, self._observers)
        self._loops.append(loop)
        return loop

    def _add_planner(self, retentions: Mapping[str, Micros]) -> None:
        keeper = Keeper(self._store, self.node, self._wake_planner)
        self._add(keeper)
        self._add(Retention(self._store, self._clock, lambda: keeper.leads, self._options.retention, retentions))
        planner = Planner(self._store, self._clock, lambda: keeper.segments, self._options.lookahead, self._observers)
        self._planner = self._add(planner)

    def _add_worker(self, handlers: Mapping[str, Handler], heart: Heart) -> None:
        only = self._options.queues
        lanes = Lanes(only or ("default",))
        desk = WritingDesk(self._store, self._clock, self.node, heart.trusted, self._fence)
        worker = Worker(handlers, self._clock, self._options.concurrency, self._wake_settler, self._store.begin, desk)
        worker.may_start = heart.trusted
        worker.on_claimed = lambda jobs, lapse: self._observers(JobsClaimed(jobs, lapse))
        brake = Brake(heart.lag, self._clock.load, self._options.max_load)
        asked = Asked(self.node, tuple(sorted(handlers)), _bounds(handlers))
        claimer = Claimer(self._store, self._clock, worker, lanes, brake, asked, lambda: heart.peers)
        self._worker, self._claimer, self._lanes = worker, claimer, lanes
        self._claiming = self._add(claimer)
        self._sweeper = Sweeper(self._store, self._clock, worker, lanes, brake, asked, only, self._claiming.wake)
        self._sweeping = self._add(self._sweeper)
        self._settling = self._add(Settler(self._store, worker, self._observers, self._settled))

    def _heard(self, hint: Hint) -> None:
        match hint:
            case JobHint() if self._claimer is not None and self._claiming is not None:
                self._meet_queue(hint.queue)
                if self._claimer.heard(hint):
                    self._claiming.wake()
                if self._sweeper.heard(hint):
                    self._sweeping.wake()
            case ScheduleHint(next_fire_time) if self._planner is not None:
                if next_fire_time < self._clock.now() + 2 * self._options.lookahead:
                    self._planner.wake()
            case CancelHint(node, job_id) if node == self.node:
                self.cancel([job_id])
            case _:
                pass

    def _meet_queue(self, queue: str) -> None:
        if queue != ANY_QUEUE and queue not in self._lanes and not self._options.queues:
            self._lanes.add([queue])

    def _wake_planner(self) -> None:
        if self._planner is not None:
            self._planner.wake()

    def _wake_settler(self) -> None:
        if self._settling is not None:
            self._settling.wake()

    def _settled(self, job_ids: list[UUID]) -> None:
        self._on_settled(job_ids)
        if self._claimer is None or self._claiming is None or self._worker is None:
            return
        if self._claimer.hungry or self._worker.running_low:
            self._worker.running_low = False
            self._claiming.wake()

    # -- ending -------------------------------------------------------------------------------------------------------
    async def _end(self, loops: list[Loop]) -> None:
        for loop in loops:
            loop.stop()
        tasks = [self._tasks[loop] for loop in loops if loop in self._tasks]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=FLUSH_WITHIN / SECOND)
            for task in late:
                task.cancel()

    async def _flush(self, worker: Worker, settling: Loop) -> None:
        """What cannot be written in time is left to the reaper: the node leaves, and its jobs are lost attempts."""
        deadline = self._clock.monotonic() + FLUSH_WITHIN
        settling.wake()  # once: a store that is away is not to be hammered
        while worker.done and self._clock.monotonic() < deadline:
            await self._clock.sleep(SECOND // 200)
        await self._end([settling])


def _profile(handlers: Mapping[str, Handler], options: NodeOptions) -> Profile:
    known = handlers if "worker" in options.roles else {}
    return Profile(tuple(sorted(known)), options.queues, options.concurrency, _bounds(known))


def _bounds(handlers: Mapping[str, Handler]) -> tuple[Bound, ...]:
    limits = {target: handler.limit for target, handler in sorted(handlers.items())}
    return tuple(Bound(target, limit.most, limit.parsed_rate) for target, limit in limits.items() if limit is not None)
