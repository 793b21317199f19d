"""Waiting for jobs. The store notifies waiters when a job is done; a worker in this process notifies them
even sooner.

Waiters also poll every 5 s in case a notification is lost; without notifications they poll often at first,
then less often."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from uuid import UUID

from duetime.clock import Clock
from duetime.errors import WaitTimeout
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.hint import DoneHint, Hint, JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Job
from duetime.store import Store, Unsubscribe

POLL_INTERVAL = 5 * SECOND
MIN_POLL_INTERVAL, MAX_POLL_INTERVAL = SECOND // 100, SECOND // 2  # without notifications
Read = Callable[[UUID], Awaitable[Job]]


class JobWaiter:
    """The waits of this process. Subscribes to the store with the first wait, until it is closed."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: dict[UUID, list[asyncio.Event]] = {}
        self._unsubscribe: Unsubscribe | None = None
        # Until the store's subscription works: then one notification says that anything may have changed
        self._connecting = False

    @property
    def size(self) -> int:
        """The number of jobs that are waited for."""
        return len(self._waiting)

    async def wait_for(self, job_id: UUID, read: Read, timeout: Duration | None) -> Job:
        """The row once it is final."""
        deadline = None if timeout is None else self._clock.monotonic() + duration.parse(timeout, "timeout")
        job = await read(job_id)
        if job.state.final:
            return job
        self._subscribe()
        notified = asyncio.Event()
        self._waiting.setdefault(job_id, []).append(notified)
        interval = POLL_INTERVAL if self._store.capabilities.hints else MIN_POLL_INTERVAL
        try:
            while not job.state.final:
                notified.clear()
                announced = await self._store.get_job(job.tenant, job_id, announce=True)
                if (announced is not None and not announced.state.final) or not (
                    job := await read(job_id)
                ).state.final:
                    await self._until(
                        notified, interval, deadline, f"job {job_id} is still {job.state} after {timeout}"
                    )
                    interval = max(interval, min(interval * 3 // 2, MAX_POLL_INTERVAL))
                    job = await read(job_id)
            return job
        finally:
            self._forget(job_id, notified)

    def settled(self, job_ids: list[UUID]) -> None:
        """Called by a worker of this process, on this event loop."""
        if self._waiting:
            for job_id in job_ids:
                self._wake(job_id)

    def close(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    async def _until(
        self, notified: asyncio.Event, interval: Micros, deadline: Micros | None, too_late: str
    ) -> None:
        """Wait for a notification, or until it is time to poll."""
        left = interval if deadline is None else min(interval, deadline - self._clock.monotonic())
        if left <= 0:
            raise WaitTimeout(too_late)
        with suppress(TimeoutError):
            async with asyncio.timeout(left / SECOND):
                await notified.wait()

    def _subscribe(self) -> None:
        if self._unsubscribe is not None:
            return
        loop = asyncio.get_running_loop()

        def on_hint(hint: Hint) -> None:
            """Called on any thread: all threads share a store in memory."""
            match hint:
                case DoneHint(job_id) if job_id in self._waiting:
                    _call(loop, lambda: self._wake(job_id))
                case JobHint(queue="*") if self._connecting:
                    self._connecting = False
                    _call(loop, self._wake_all)

        self._connecting = True
        self._unsubscribe = self._store.subscribe(on_hint)

    def _wake(self, job_id: UUID) -> None:
        for notified in self._waiting.get(job_id, ()):
            notified.set()

    def _wake_all(self) -> None:
        for job_id in self._waiting:
            self._wake(job_id)

    def _forget(self, job_id: UUID, notified: asyncio.Event) -> None:
        self._waiting[job_id].remove(notified)
        if not self._waiting[job_id]:
            del self._waiting[job_id]


def _call(loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop has been closed, and its waits with it
        loop.call_soon_threadsafe(wake)
