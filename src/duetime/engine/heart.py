"""The heart: one lease per process, renewed from a thread and a connection of its own, so that a task that blocks the event loop or holds
every connection cannot stop it; and it dies with the process.

A heart that could not renew in time stops trusting itself before the store stops trusting the node.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar
from uuid import UUID

from duetime.clock import Clock
from duetime.engine.failpoint import failpoint
from duetime.engine.loop import Loop
from duetime.engine.watchdog import Watchdog
from duetime.errors import DuetimeError
from duetime.model.instant import Micros
from duetime.model.lease import NodeDraft, NodeId
from duetime.observer import Observers
from duetime.store import Store

BEATS_PER_LEASE = 5
Answer = TypeVar("Answer")


class HeartListener(Protocol):
    def fenced(self, reason: str) -> None: ...

    def cancels(self, job_ids: Sequence[UUID]) -> None: ...


class Heart:
    """A part: one beat a turn. `trusted_until` is read by the worker before every start."""

    name = "heart"

    def __init__(self, store: Store, clock: Clock, node: NodeId, ttl: Micros, listener: HeartListener, joined_at: Micros) -> None:
        self._store = store
        self._clock = clock
        self.node = node
        self._ttl = ttl
        self._listener = listener
        self._fenced = False
        self.lag: Callable[[], Micros] = lambda: 0  # of the event loop the jobs run on
        self.trusted_until = joined_at + self._trust()
        self.peers = 0  # other workers that were alive at the last beat

    def trusted(self) -> bool:
        return not self._fenced and self._clock.monotonic() < self.trusted_until

    @property
    def age(self) -> Micros:
        """How long ago the lease was renewed."""
        return self._clock.monotonic() - (self.trusted_until - self._trust())

    async def run_once(self) -> Micros | None:
        failpoint("heart.before_beat")
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
        self.trusted_until = began + self._trust()
        self.peers = beat.peers
        if beat.cancels:
            self._listener.cancels(beat.cancels)
        return self._ttl // BEATS_PER_LEASE

    def _trust(self) -> Micros:
        return self._ttl - self._ttl // BEATS_PER_LEASE

    def _fence(self, reason: str) -> None:
        self._fenced = True
        self._listener.fenced(reason)


class HeartRunner(Protocol):
    """Where a heart beats: in a thread for real, beside everything else in a simulation."""

    async def start(self, draft: NodeDraft, ttl: Micros, listener: HeartListener) -> Heart: ...

    async def stop(self, leave: bool) -> None: ...


class InlineHeart:
    """Beats on the caller's event loop."""

    def __init__(self, store: Store, clock: Clock, observers: Observers) -> None:
        self._store = store
        self._clock = clock
        self._observers = observers
        self._loop: Loop | None = None
        self._task: asyncio.Task[None] | None = None
        self._node: NodeId | None = None

    async def start(self, draft: NodeDraft, ttl: Micros, listener: HeartListener) -> Heart:
        began = self._clock.monotonic()
        self._node = await self._store.join(draft, ttl)
        heart = Heart(self._store, self._clock, self._node, ttl, listener, began)
        self._loop = Loop(heart, self._clock, self._observers)
        self._task = asyncio.create_task(self._loop.run())
        return heart

    async def stop(self, leave: bool) -> None:
        if self._loop is not None and self._task is not None:
            self._loop.stop()
            await asyncio.wait([self._task])
        if leave and self._node is not None:
            await self._store.leave(self._node)


class _Relay:
    """Hands what the heart has to say from its thread to the event loop of the node."""

    def __init__(self, listener: HeartListener) -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()

    def fenced(self, reason: str) -> None:
        self._send(self._listener.fenced, reason)

    def cancels(self, job_ids: Sequence[UUID]) -> None:
        self._send(self._listener.cancels, job_ids)

    def _send(self, call: Callable[..., None], argument: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, argument)


class ThreadedHeart:
    """Beats in a daemon thread on a twin of the store."""

    def __init__(self, store: Store, clock: Clock, observers: Observers) -> None:
        self._store = store.twin()
        self._clock = clock
        self._observers = observers
        self._thread: threading.Thread | None = None
        self._inner: asyncio.AbstractEventLoop | None = None
        self._inline = InlineHeart(self._store, clock, observers)
        self._watching: Loop | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self, draft: NodeDraft, ttl: Micros, listener: HeartListener) -> Heart:
        watchdog = Watchdog(self._clock, self._observers)
        ready = threading.Event()
        self._thread = threading.Thread(target=self._live, args=(ready,), name="duetime-heart", daemon=True)
        self._thread.start()
        await asyncio.to_thread(ready.wait)
        try:
            return await self._call(self._begin(draft, ttl, _Relay(listener), watchdog))
        except BaseException:
            await self._end_thread()
            raise

    async def stop(self, leave: bool) -> None:
        try:
            await self._call(self._end(leave))
        finally:
            await self._end_thread()

    async def _end_thread(self) -> None:
        assert self._inner is not None
        assert self._thread is not None
        self._inner.call_soon_threadsafe(self._inner.stop)
        await asyncio.to_thread(self._thread.join)

    def _live(self, ready: threading.Event) -> None:
        self._inner = asyncio.new_event_loop()
        self._inner.call_soon(ready.set)
        try:
            self._inner.run_forever()
        finally:
            self._inner.close()

    async def _begin(self, draft: NodeDraft, ttl: Micros, listener: HeartListener, watchdog: Watchdog) -> Heart:
        try:
            await self._store.open()
            heart = await self._inline.start(draft, ttl, listener)
        except BaseException:
            await self._store.close()  # the next try has a twin of its own
            raise
        heart.lag = watchdog.lag
        self._watching = Loop(watchdog, self._clock, self._observers)
        self._watch = asyncio.create_task(self._watching.run())
        return heart

    async def _end(self, leave: bool) -> None:
        if self._watching is not None and self._watch is not None:
            self._watching.stop()
            await asyncio.wait([self._watch])
        try:
            await self._inline.stop(leave)
        finally:
            await self._store.close()

    async def _call(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        assert self._inner is not None
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._inner))
