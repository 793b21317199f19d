"""Waiting for jobs without polling: the store tells when one is done, a worker in this process tells even sooner.

A hint may be lost, so whoever waits looks again by himself once in a long while; where no hints come at all, soon and then less often.
"""

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

SAFETY_LOOK = 5 * SECOND
FIRST_LOOK, LONGEST_LOOK = SECOND // 100, SECOND // 2  # without hints
Read = Callable[[UUID], Awaitable[Job]]


class Waiting:
    """Who waits for which job in this process. Listens to the store from the first wait on, until it is closed."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: dict[UUID, list[asyncio.Event]] = {}
        self._unsubscribe: Unsubscribe | None = None
        self._deaf = False  # a store may need a moment until it hears others: then it says once that everything may have changed

    async def wait_for(self, job_id: UUID, read: Read, timeout: Duration | None) -> Job:
        """The job once it is final."""
        deadline = None if timeout is None else self._clock.monotonic() + duration.parse(timeout, "timeout")
        job = await read(job_id)
        if job.state.final:
            return job
        self._listen()
        told = asyncio.Event()
        self._waiting.setdefault(job_id, []).append(told)
        look = SAFETY_LOOK if self._store.capabilities.hints else FIRST_LOOK
        try:
            while not job.state.final:
                told.clear()
                if await self._store.await_job(job_id) or not (job := await read(job_id)).state.final:
                    await self._until(told, look, deadline, f"job {job_id} is still {job.state} after {timeout}")
                    look = max(look, min(look * 3 // 2, LONGEST_LOOK))
                    job = await read(job_id)
            return job
        finally:
            self._forget(job_id, told)

    def settled(self, job_ids: list[UUID]) -> None:
        """Told by a worker in this process, on this event loop."""
        if self._waiting:
            for job_id in job_ids:
                self._wake(job_id)

    def close(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    async def _until(self, told: asyncio.Event, look: Micros, deadline: Micros | None, too_late: str) -> None:
        """Until somebody tells, or it is time for a look."""
        left = look if deadline is None else min(look, deadline - self._clock.monotonic())
        if left <= 0:
            raise WaitTimeout(too_late)
        with suppress(TimeoutError):
            async with asyncio.timeout(left / SECOND):
                await told.wait()

    def _listen(self) -> None:
        if self._unsubscribe is not None:
            return
        loop = asyncio.get_running_loop()

        def heard(hint: Hint) -> None:
            """On whichever thread: a store in memory is shared by all of them."""
            match hint:
                case DoneHint(job_id) if job_id in self._waiting:
                    _call(loop, lambda: self._wake(job_id))
                case JobHint(queue="*") if self._deaf:
                    self._deaf = False
                    _call(loop, self._wake_all)

        self._deaf = True
        self._unsubscribe = self._store.subscribe(heard)

    def _wake(self, job_id: UUID) -> None:
        for told in self._waiting.get(job_id, ()):
            told.set()

    def _wake_all(self) -> None:
        for job_id in self._waiting:
            self._wake(job_id)

    def _forget(self, job_id: UUID, told: asyncio.Event) -> None:
        self._waiting[job_id].remove(told)
        if not self._waiting[job_id]:
            del self._waiting[job_id]


def _call(loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # that loop has been closed: nobody waits there any more
        loop.call_soon_threadsafe(wake)
