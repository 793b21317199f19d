"""The heartbeat: renews the one lease of a process.

It runs on its own thread with its own connection, so that a task that blocks the event loop or holds every
connection cannot stop it; and it ends with the process. A heartbeat that could not renew in time stops
trusting itself before the store stops trusting the node."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Sequence
from types import FrameType
from typing import Any, Protocol, TypeVar
from uuid import UUID

from duetime.clock import Clock
from duetime.engine.failpoint import failpoint
from duetime.engine.node.loop import Loop, LoopBody, LoopThread
from duetime.engine.run.perform import perform
from duetime.errors import DuetimeError
from duetime.model.events import LoopBlocked
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.model.lease import NodeDraft, NodeId
from duetime.observer import Observers
from duetime.store import Store

BEATS_PER_LEASE = 5
Result = TypeVar("Result")


class HeartbeatListener(Protocol):
    """Called on the event loop of the node."""

    def fenced(self, reason: str) -> None: ...

    def cancels(self, job_ids: Sequence[UUID]) -> None: ...


class Heartbeat:
    """`trusted` is asked by the worker before every start. Without a thread it beats on the caller's event
    loop, as a simulation does."""

    name = "heartbeat"

    def __init__(
        self, store: Store, clock: Clock, observers: Observers, thread: LoopThread | None = None
    ) -> None:
        self._store = store if thread is None else store.clone()
        self._clock = clock
        self._observers = observers
        self._thread = thread
        self._node: NodeId | None = None
        self._ttl: Micros = 0
        self._listener: HeartbeatListener | None = None
        self._caller: asyncio.AbstractEventLoop | None = None
        self._watchdog: Watchdog | None = None
        self._loops: list[tuple[Loop, asyncio.Task[None]]] = []
        self._fenced = False
        self._trusted_until: Micros = 0
        self.peers = 0  # other workers that were alive at the last beat

    async def start(self, draft: NodeDraft, ttl: Micros, listener: HeartbeatListener) -> None:
        """Join the fleet and begin to beat."""
        self._ttl, self._listener, self._caller = ttl, listener, asyncio.get_running_loop()
        if self._thread is not None:
            self._watchdog = Watchdog(self._clock, self._observers)
            await self._thread.start()
        try:
            await self._call(self._begin(draft))
        except BaseException:
            if self._thread is not None:
                await self._thread.stop()
            raise

    async def stop(self, leave: bool) -> None:
        try:
            await self._call(self._end(leave))
        finally:
            if self._thread is not None:
                await self._thread.stop()

    @property
    def node(self) -> NodeId:
        assert self._node is not None
        return self._node

    @property
    def age(self) -> Micros:
        """How long ago the lease was renewed."""
        return self._clock.monotonic() - (self._trusted_until - self._trust())

    def trusted(self) -> bool:
        return not self._fenced and self._clock.monotonic() < self._trusted_until

    def lag(self) -> Micros:
        """Of the event loop that the jobs run on."""
        return 0 if self._watchdog is None else self._watchdog.lag()

    async def run_once(self) -> Micros | None:
        failpoint("heartbeat.before_beat")
        began = self._clock.monotonic()
        try:
            beat = await self._store.beat(self.node, self._ttl)
        except DuetimeError:
            if not self.trusted():
                self._fence("its lease could not be renewed in time")
                return None
            raise
        if not beat.alive:
            self._fence("it was declared dead")
            return None
        self._trusted_until = began + self._trust()
        self.peers = beat.peers
        if beat.cancels and self._listener is not None:
            self._notify(self._listener.cancels, beat.cancels)
        return self._ttl // BEATS_PER_LEASE

    # -- on the thread of the heartbeat
    async def _begin(self, draft: NodeDraft) -> None:
        began = self._clock.monotonic()
        try:
            if self._thread is not None:
                await self._store.open()
            self._node = await self._store.join(draft, self._ttl)
        except BaseException:
            if self._thread is not None:
                await self._store.close()
            raise
        self._trusted_until = began + self._trust()
        self._run(self)
        if self._watchdog is not None:
            self._run(self._watchdog)

    async def _end(self, leave: bool) -> None:
        for loop, task in reversed(self._loops):
            loop.stop()
            await asyncio.wait([task])
        try:
            if leave and self._node is not None:
                await self._store.leave(self._node)
        finally:
            if self._thread is not None:
                await self._store.close()

    def _run(self, body: LoopBody) -> None:
        loop = Loop(body, self._clock, self._observers)
        self._loops.append((loop, asyncio.create_task(loop.run())))

    def _fence(self, reason: str) -> None:
        self._fenced = True
        if self._listener is not None:
            self._notify(self._listener.fenced, reason)

    def _notify(self, call: Callable[[Any], None], argument: object) -> None:
        if self._thread is None:
            call(argument)
        elif self._caller is not None and not self._caller.is_closed():
            self._caller.call_soon_threadsafe(call, argument)

    def _trust(self) -> Micros:
        return self._ttl - self._ttl // BEATS_PER_LEASE

    async def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        return await (work if self._thread is None else self._thread.call(work))


# The watchdog: on the thread of the heartbeat it checks that the node's event loop responds, and reports
# the task that blocks it.
#
# An async task that computes or waits without `await` blocks everything else on its node. The heartbeat
# runs on its own thread, so the node keeps its lease and its jobs; the watchdog names the cause.


CHECK_INTERVAL = SECOND // 4
REPORT_AFTER = SECOND
REPORT_FACTOR = 10  # each further report of the same block comes after so many times the last delay
MAX_FRAMES = 12


class Watchdog:
    """A body of the heartbeat's loop. Created on the thread and event loop that it watches."""

    name = "watchdog"

    def __init__(self, clock: Clock, observers: Observers) -> None:
        self._clock = clock
        self._observers = observers
        self._watched = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._asked_at: Micros | None = None
        self._report_after = REPORT_AFTER
        self._last_lag: Micros = 0

    def lag(self) -> Micros:
        """How long the event loop takes to run a callback."""
        asked_at = self._asked_at
        return self._last_lag if asked_at is None else max(self._last_lag, self._clock.monotonic() - asked_at)

    async def run_once(self) -> Micros | None:
        if self._watched.is_closed():
            return None
        if self._asked_at is None:
            self._asked_at, self._report_after = self._clock.monotonic(), REPORT_AFTER
            self._watched.call_soon_threadsafe(self._answer)
        elif (silent := self._clock.monotonic() - self._asked_at) > self._report_after:
            self._report_after *= REPORT_FACTOR
            self._report(silent)
        return CHECK_INTERVAL

    def _answer(self) -> None:
        """Runs on the watched event loop."""
        if self._asked_at is not None:
            self._last_lag = self._clock.monotonic() - self._asked_at
            self._asked_at = None

    def _report(self, silent: Micros) -> None:
        frames = _frames(sys._current_frames().get(self._thread))
        job = next((_job_of(frame) for frame in frames if frame.f_code is perform.__code__), None)
        self._observers(
            LoopBlocked(
                silent,
                None if job is None else job.target,
                None if job is None else job.id,
                "".join(_shown(frames)).rstrip(),
            )
        )


def _frames(innermost: FrameType | None) -> list[FrameType]:
    """Outermost first."""
    frames: list[FrameType] = []
    while innermost is not None:
        frames.append(innermost)
        innermost = innermost.f_back
    return frames[::-1]


def _job_of(frame: FrameType) -> Claimed | None:
    job = frame.f_locals.get("job")
    return job if isinstance(job, Claimed) else None


def _shown(frames: list[FrameType]) -> list[str]:
    """The task's own frames: those called by the engine and the invoker."""
    inside = [
        number
        for number, frame in enumerate(frames)
        if frame.f_globals.get("__name__", "").partition(".")[0] == "duetime"
    ]
    own = frames[inside[-1] + 1 :] if inside else frames
    summary = traceback.StackSummary.extract(
        ((frame, frame.f_lineno) for frame in own or frames), lookup_lines=True
    )
    return summary.format()[-MAX_FRAMES:]
