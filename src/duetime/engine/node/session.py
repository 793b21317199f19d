"""One session of a node under one node id: the loops of its roles, wired together. When the id is lost, a new
session takes over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from duetime.clock import Clock
from duetime.engine.alert.notices import ALERT, ALERT_QUEUE
from duetime.engine.alert.sweep import AlertSweep
from duetime.engine.dispatch.dispatcher import Dispatcher
from duetime.engine.fetch.broker import BrokerLink
from duetime.engine.fetch.claimer import Backpressure, Claimer, Fetch
from duetime.engine.fetch.consumer import Consumer
from duetime.engine.fetch.cursors import ClaimCursors
from duetime.engine.fetch.sweeper import Sweeper
from duetime.engine.node.heartbeat import Heartbeat
from duetime.engine.node.loop import Loop, LoopBody
from duetime.engine.node.options import HandlerRegistry, NodeOptions
from duetime.engine.node.reaper import Reaper
from duetime.engine.node.registry import TaskDefaultsPublisher, TaskRegistryPublisher
from duetime.engine.plan.archiver import history_of
from duetime.engine.plan.leases import LeaseKeeper, StoreLeases
from duetime.engine.plan.planner import Planner, Retention
from duetime.engine.plan.queue_depth import DepthSampler
from duetime.engine.plan.watchdog import OutsideMonitor
from duetime.engine.run.capacity import Capacity
from duetime.engine.run.checkpoints import CheckpointWriter
from duetime.engine.run.outbox import Outbox
from duetime.engine.run.output import OutputWriter
from duetime.engine.run.perform import Stop
from duetime.engine.run.settler import Settler
from duetime.engine.run.start_check import StartCheck
from duetime.engine.run.worker import Worker
from duetime.invoker import Handler
from duetime.lease import LeaseHolder, LeaseTable
from duetime.model.events import JobsClaimed, NodeWaits
from duetime.model.hint import CancelHint, Hint, JobHint, ScheduleHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import DEFAULT_QUEUE, Claimed
from duetime.model.limit import TaskLimit
from duetime.model.profile import NodeProfile
from duetime.model.settle import Settlement
from duetime.observer import Observers
from duetime.queue import TicketQueue
from duetime.store import AttemptUpdate, Store, Successors

FLUSH_TIMEOUT = 5 * SECOND
Unwritten = list[tuple[Settlement, Claimed]]


class NodeSession:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        tasks: HandlerRegistry,
        options: NodeOptions,
        observers: Observers,
        heartbeat: Heartbeat,
        on_settled: Callable[[list[UUID]], None],
        defaults: TaskDefaultsPublisher,
        unwritten: Unwritten,
        connect: Callable[[], TicketQueue] | None = None,
        leases: LeaseTable | None = None,
    ) -> None:
        """`unwritten`: settlements that an earlier session of this node could not write."""
        self.node = heartbeat.node
        self.heartbeat = heartbeat
        self._store = store
        self._clock = clock
        self._options = options
        self._observers = observers
        self._loops: list[Loop] = []
        self._tasks: dict[Loop, asyncio.Task[None]] = {}
        self._planner: Loop | None = None
        self._dispatcher: Dispatcher | None = None
        self._dispatching: Loop | None = None
        self._connect = connect
        self._links: list[BrokerLink] = []
        self._work: _Work | None = None
        self._add(Reaper(store, clock, self.node, observers, tasks.handlers))
        self._add(TaskRegistryPublisher(store, clock, self.node, _profile(tasks.handlers, options), defaults))
        holder: LeaseHolder = StoreLeases(store, self.node, heartbeat.trusted)
        if leases is not None:
            holder = leases.holder(self.node, options.roles, options.lease)
        self._keeper = keeper = LeaseKeeper(
            holder, self.node, self._wake_lease_holders, options.roles, observers
        )
        if "planner" in options.roles or "dispatcher" in options.roles:
            self._add(keeper)
        if "planner" in options.roles:
            self._add_planner(keeper, tasks.retentions)
        if "dispatcher" in options.roles:
            self._add_dispatcher(keeper)
        if ALERT in tasks.handlers:
            self._add(
                AlertSweep(
                    store, clock, lambda: keeper.leads, self.node, options.name, options.alert_interval
                )
            )
        if (served := _served(tasks.handlers, options)) is not None:
            bounded = options.threads is not None and options.threads < options.concurrency
            threaded = tasks.threaded if bounded else frozenset()
            self._work = _Work(self, *served, tasks.retentions, on_settled, threaded)
            self._work.restore(unwritten)
        self._unsubscribe = store.subscribe(self._hinted)

    @property
    def running(self) -> int:
        return 0 if self._work is None else len(self._work.worker.running)

    def start(self) -> None:
        for loop in self._loops:
            self._tasks[loop] = asyncio.create_task(loop.run(), name=f"duetime-{loop.body.name}")

    def cancel(self, job_ids: Sequence[UUID]) -> None:
        for job_id in job_ids:
            if self._work is not None:
                self._work.worker.stop(job_id, Stop.CANCEL)

    def interrupt(self) -> None:
        """The node stops: do not wait for running jobs. The worker closes first, so that this node does
        not claim again what it releases."""
        if self._work is not None:
            self._work.worker.close(Stop.SHUTDOWN)
            self._work.worker.hurry()
            self._work.worker.interrupt(Stop.SHUTDOWN)

    async def stop(self) -> list[asyncio.Task[None]]:
        """Orderly: claim nothing more, finish or release, write every settlement. Until that is done, this
        node plans and dispatches its segments: it lives, so no other node takes them. Returns the runners
        whose tasks ignore their cancellation."""
        work = self._work
        if work is not None:
            await self._end(work.stop_fetching())
            await work.close_link()
            work.worker.close(Stop.SHUTDOWN)
            grace = self._options.grace
            await work.worker.drain(
                grace, lambda running: self._observers(NodeWaits(self.node, running, grace))
            )
            await self._flush(work)
        self._unsubscribe()
        await self._end(self._loops)
        await self._disconnect()
        if work is None:
            return []
        stubborn = work.worker.dismiss()
        await work.output.close()
        return stubborn

    async def abort(self) -> Unwritten:
        """The node id is lost: stop everything that runs under it. Returns settlements that are not written
        yet: the store still takes them for jobs that no other node has claimed."""
        self._unsubscribe()
        work = self._work
        unwritten = [] if work is None else work.outbox.unwritten()
        if work is not None:
            work.worker.close(Stop.FENCED)
            work.worker.interrupt(Stop.FENCED)
            work.stop_fetching()
        await self._end(self._loops)
        await self._disconnect()
        if work is not None:
            work.worker.dismiss()
            await work.output.close()
        return unwritten

    # -- wiring
    def _add(self, body: LoopBody) -> Loop:
        loop = Loop(body, self._clock, self._observers)
        self._loops.append(loop)
        return loop

    def link(self, part: str, on_change: Callable[[], None] = lambda: None) -> BrokerLink | None:
        """A connection to the broker for this part of the node, if there is a broker."""
        if self._connect is None:
            return None
        link = BrokerLink(self._connect(), part, self._observers, on_change)
        self._links.append(link)
        return link

    @property
    def broker_up(self) -> bool | None:
        return all(link.up for link in self._links) if self._links else None

    @property
    def leases_up(self) -> bool:
        return self._keeper.up

    def _add_dispatcher(self, keeper: LeaseKeeper) -> None:
        link = self.link("dispatcher")
        assert link is not None, "a node checks it when it starts"
        self._dispatcher = Dispatcher(
            self._store,
            self._clock,
            self.node,
            link,
            lambda: keeper.dispatched,
            self._options.queue_depth,
            self._observers,
        )
        self._dispatching = self._add(self._dispatcher)

    def _add_planner(self, keeper: LeaseKeeper, retentions: Mapping[str, Micros]) -> None:
        self._add(
            Retention(
                self._store,
                self._clock,
                lambda: keeper.leads,
                self._options.retention,
                retentions,
                history_of(self._store, self._options, retentions),
            )
        )
        self._add(DepthSampler(self._store, self._clock, lambda: keeper.leads))
        planner = Planner(
            self._store, self._clock, lambda: keeper.segments, self._options.lookahead, self._observers
        )
        self._planner = self._add(planner)
        if self._options.ping is not None:
            self._add(
                OutsideMonitor(
                    self._store,
                    self._clock,
                    lambda: keeper.leads,
                    self._options.ping,
                    self._options.watchdog_interval,
                )
            )

    def _hinted(self, hint: Hint) -> None:
        match hint:
            case JobHint():
                if self._work is not None:
                    self._work.hinted(hint)
                if self._dispatcher is not None and self._dispatcher.hinted(hint):
                    self._wake(self._dispatching)
            case ScheduleHint(next_fire_time):
                if next_fire_time < self._clock.now() + 2 * self._options.lookahead:
                    self._wake(self._planner)
            case CancelHint(node, job_id) if node == self.node:
                self.cancel([job_id])
            case _:
                pass

    def _wake_lease_holders(self) -> None:
        self._wake(self._planner)
        self._wake(self._dispatching)

    def _wake(self, loop: Loop | None) -> None:
        if loop is not None:
            loop.wake()

    # -- ending
    async def _disconnect(self) -> None:
        await self._keeper.close()
        for link in self._links:
            await link.close()

    async def _end(self, loops: list[Loop]) -> None:
        for loop in loops:
            loop.stop()
        tasks = [self._tasks[loop] for loop in loops if loop in self._tasks]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=FLUSH_TIMEOUT / SECOND)
            for task in late:
                task.cancel()

    async def _flush(self, work: _Work) -> None:
        """What cannot be written in time is left to the reaper: the node leaves, and its jobs are lost
        attempts."""
        deadline = self._clock.monotonic() + FLUSH_TIMEOUT
        work.settling.wake()  # once: a store that is away must not be asked in a busy loop
        while len(work.outbox) and self._clock.monotonic() < deadline:
            await self._clock.sleep(SECOND // 200)
        await self._end([work.settling])


class _Work:
    """The loops of the worker role."""

    def __init__(
        self,
        session: NodeSession,
        handlers: Mapping[str, Handler],
        queues: tuple[str, ...],
        concurrency: int,
        retentions: Mapping[str, Micros],
        on_settled: Callable[[list[UUID]], None],
        threaded: frozenset[str],
    ) -> None:
        """`threaded`: the targets whose jobs the option `threads` bounds."""
        store, clock, options, heartbeat = session._store, session._clock, session._options, session.heartbeat
        self._store = store
        self._on_settled = on_settled
        cursors, self._other_cursors = (
            ClaimCursors(queues or (DEFAULT_QUEUE,), fixed=bool(queues)) for _ in range(2)
        )
        self._cursors = cursors
        self.outbox = Outbox(self._wake_settler)
        capacity = Capacity(
            concurrency, heartbeat.trusted, clock.monotonic, cursors.tenants, options.threads or 0, threaded
        )
        self.output = OutputWriter(store, clock, handlers, options.output_retention, retentions)
        checkpoints = CheckpointWriter(
            store, clock, session.node, heartbeat.trusted, self._fence, self.output
        )
        observers, targets = session._observers, tuple(sorted(handlers))
        self._observers = observers
        self.worker = Worker(
            handlers,
            clock,
            capacity,
            self.outbox,
            self._record_start,
            checkpoints,
            StartCheck(store, clock),
            self._claimed,
            lambda: cursors.has_news,
        )
        backpressure = Backpressure(heartbeat.lag, clock.load, options.max_load)
        fetch = Fetch(store, self.worker, backpressure, session.node, targets)
        self.consumer: Consumer | None = None
        claimer = Claimer(fetch, clock, cursors, lambda: heartbeat.peers, self._broker_delivers)
        self._claiming = session._add(claimer)
        self._claimers = [(claimer, self._claiming)]
        if threaded:
            # While all threads are taken, jobs that need none are claimed with cursors of their own: the
            # others stay in front of the first cursors.
            others = tuple(target for target in targets if target not in threaded)
            fetch_others = Fetch(store, self.worker, backpressure, session.node, others, for_threads=False)
            claimer = Claimer(
                fetch_others, clock, self._other_cursors, lambda: heartbeat.peers, self._broker_delivers
            )
            self._claimers.append((claimer, session._add(claimer)))
        self._link = session.link("worker", self._wake_claimers)
        if self._link is not None:
            self.consumer = Consumer(fetch, clock, self._link, cursors, observers)
            self._consuming = session._add(self.consumer)
        self._sweeper = Sweeper(fetch, clock, cursors, self.outbox, self._wake_claimers, self.consumer)
        self._sweeping = session._add(self._sweeper)
        settler = Settler(
            store,
            self.worker,
            self.outbox,
            observers,
            self._settled,
            lambda: Successors(session.node, 0, cursors.queues, targets),
        )
        self.settling = session._add(settler)

    def restore(self, unwritten: Unwritten) -> None:
        """Settlements of an earlier session count as held until they are written."""
        self.worker.capacity.claimed(job for _, job in unwritten)
        self.outbox.restore(unwritten)

    def stop_fetching(self) -> list[Loop]:
        """Returns the loops that must end."""
        loops = [*(loop for _, loop in self._claimers), self._sweeping]
        if self.consumer is None:
            return loops
        self.consumer.stop()
        return [*loops, self._consuming]

    async def close_link(self) -> None:
        """The broker gives what this worker has received and not acknowledged to another."""
        if self._link is not None:
            await self._link.close()

    def hinted(self, hint: JobHint) -> None:
        for claimer, loop in self._claimers:
            if claimer.hinted(hint):
                loop.wake()
        if self._sweeper.hinted(hint):
            self._sweeping.wake()

    def _broker_delivers(self) -> bool:
        return self.consumer is not None and self.consumer.delivers

    def _wake_claimers(self) -> None:
        self._other_cursors.learn(self._cursors.from_start(), complete=True)
        self._other_cursors.limited = self._cursors.limited
        for _, loop in self._claimers:
            loop.wake()

    def _wake_hungry_claimers(self) -> None:
        for claimer, loop in self._claimers:
            if claimer.settled():
                loop.wake()

    def _claimed(self, jobs: list[Claimed], lapse: Micros) -> None:
        self._observers(JobsClaimed(jobs, lapse))
        if len(self._claimers) > 1:  # the last thread may be taken now
            self._wake_hungry_claimers()

    def _wake_settler(self) -> None:
        self.settling.wake()

    def _fence(self, job_id: UUID, attempt: int) -> None:
        self.worker.fence(job_id, attempt)

    async def _record_start(self, job_id: UUID, attempt: int) -> bool:
        return not await self._store.save_progress([AttemptUpdate(job_id, attempt, started=True)])

    def _settled(self, job_ids: list[UUID]) -> None:
        self._on_settled(job_ids)
        self._wake_hungry_claimers()
        if self.consumer is not None and self.consumer.hungry:
            self._consuming.wake()


ALERT_CONCURRENCY = 4


def _served(
    handlers: Mapping[str, Handler], options: NodeOptions
) -> tuple[Mapping[str, Handler], tuple[str, ...], int] | None:
    """The handlers, queues and slots of this node's worker. Every planner delivers alerts, also that there is
    no worker."""
    delivers = ALERT in handlers and "planner" in options.roles
    if "worker" in options.roles:
        more = (ALERT_QUEUE,) if delivers and options.queues and ALERT_QUEUE not in options.queues else ()
        return handlers, (*options.queues, *more), options.concurrency
    return ({ALERT: handlers[ALERT]}, (ALERT_QUEUE,), ALERT_CONCURRENCY) if delivers else None


def _profile(handlers: Mapping[str, Handler], options: NodeOptions) -> NodeProfile:
    known = handlers if "worker" in options.roles else {}
    return NodeProfile(
        tuple(sorted(known)),
        options.queues,
        options.concurrency,
        limits_of(known),
        options.broker,
        options.permissions,
    )


def limits_of(handlers: Mapping[str, Handler]) -> tuple[TaskLimit, ...]:
    """Of every target, also those without: a limit that was removed from the code no longer holds."""
    return tuple(
        TaskLimit(target)
        if handler.limit is None
        else TaskLimit(target, handler.limit.max_running, handler.limit.parsed_rate)
        for target, handler in sorted(handlers.items())
    )
