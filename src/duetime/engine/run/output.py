"""Writes the output of running attempts into records of the store: about once a second while they run, and
before their end is settled. An attempt that prints nothing is not known here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from duetime.clock import Clock
from duetime.errors import StoreError
from duetime.invoker import Handler
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.model.output import (
    KIND,
    PLACES,
    OutputBuffer,
    Stream,
    key_prefix,
    level_name,
    record_key,
)
from duetime.model.stored import Record
from duetime.store import Store

WRITE_INTERVAL = SECOND
LAST_WRITE_TIMEOUT = 2 * SECOND  # that the end of an attempt waits for its last output
MAX_WRITES = 8  # at the same time
_logger = logging.getLogger("duetime")


class AttemptOutput:
    """The output of one attempt on its way to the store."""

    __slots__ = ("_now", "attempt", "buffer", "expires_after", "job_id", "tenant", "writing")

    def __init__(self, job: Claimed, expires_after: Micros, now: Callable[[], Micros]) -> None:
        self._now = now
        self.job_id = job.id
        self.attempt = job.attempt
        self.tenant = job.tenant
        self.expires_after = expires_after
        self.buffer = OutputBuffer()
        self.writing = asyncio.Lock()  # one write at a time: an older state must not replace a newer one

    def add(self, stream: Stream, level: int, text: str, logged: bool, age: Micros = 0) -> None:
        self.buffer.add(self._now() - age, stream, level_name(level), text)

    def leave_out(self, lines: int) -> None:
        self.buffer.leave_out(lines)

    async def write(self, store: Store) -> None:
        now = self._now()
        async with self.writing:
            parts = self.buffer.take()
            for index, (place, value) in enumerate(parts):
                key = record_key(self.job_id, self.attempt, place)
                try:
                    await store.put_record(KIND, self.tenant, key, value, expires_at=now + self.expires_after)
                except BaseException:
                    self.buffer.put_back(place for place, _ in parts[index:])
                    raise
                self.buffer.written([place])


class OutputWriter:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        handlers: Mapping[str, Handler],
        retention: Micros,
        retentions: Mapping[str, Micros],
    ) -> None:
        """`retentions`: of targets whose jobs are kept for a shorter time; their output goes with them."""
        self._store = store
        self._clock = clock
        self._handlers = handlers
        self._retention = retention
        self._retentions = retentions
        self._open: dict[tuple[UUID, int], AttemptOutput] = {}
        self._writer: asyncio.Task[None] | None = None
        self._slots = asyncio.Semaphore(MAX_WRITES)
        self._failing = False
        self._loop = asyncio.get_running_loop()
        self._last: set[asyncio.Task[None]] = set()  # writes of attempts that have ended

    def open(self, job: Claimed) -> AttemptOutput | None:
        """The output of an attempt; None if that of its target is not kept. From any thread."""
        if not self._retention or not getattr(self._handlers.get(job.target), "keeps_output", True):
            return None
        keep = min(self._retention, self._retentions.get(job.target, self._retention))
        output = self._open.setdefault((job.id, job.attempt), AttemptOutput(job, keep, self._clock.now))
        self._on_loop(self._wake)
        return output

    async def end(self, job_id: UUID, attempt: int) -> None:
        """The attempt has ended: returns when its last lines are written, or that takes too long."""
        output = self._open.pop((job_id, attempt), None)
        if output is None:
            return
        if not output.buffer.waiting and not output.writing.locked():
            return
        writing = self._loop.create_task(self._write(output))
        self._last.add(writing)
        writing.add_done_callback(self._last.discard)
        await asyncio.wait([writing], timeout=LAST_WRITE_TIMEOUT / SECOND)

    async def close(self) -> None:
        """Write what is left, if that does not take too long."""
        if self._writer is not None:
            self._writer.cancel()
        left = [self._loop.create_task(self._write(output)) for output in self._open.values()]
        self._open.clear()
        if left or self._last:
            await asyncio.wait([*left, *self._last], timeout=LAST_WRITE_TIMEOUT / SECOND)

    def _on_loop(self, call: Callable[[], None]) -> None:
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            call()
        else:
            self._loop.call_soon_threadsafe(call)

    def _wake(self) -> None:
        if self._writer is None and self._open:
            self._writer = self._loop.create_task(self._write_all())

    async def _write_all(self) -> None:
        try:
            while self._open:
                await self._clock.sleep(WRITE_INTERVAL)
                waiting = [output for output in self._open.values() if output.buffer.waiting]
                await asyncio.gather(*(self._write(output) for output in waiting))
        finally:
            self._writer = None

    async def _write(self, output: AttemptOutput) -> None:
        try:
            async with self._slots:
                await output.write(self._store)
        except StoreError as problem:
            if not self._failing:
                _logger.warning("the output of jobs is not stored: %s; the next write tries again", problem)
            self._failing = True
        else:
            self._failing = False


async def append_output(
    store: Store,
    job: Claimed,
    lines: Iterable[tuple[Stream, int, str]],
    keep: Micros,
    now: Callable[[], Micros],
) -> None:
    """Store lines of an attempt that runs elsewhere, after those that were stored before."""
    output = AttemptOutput(job, keep, now)
    output.buffer = OutputBuffer(await stored_output(store, job.tenant, job.id, job.attempt))
    for stream, level, text in lines:
        output.add(stream, level, text, False)
    await output.write(store)


async def stored_output(store: Store, tenant: str, job_id: UUID, attempt: int) -> list[Record]:
    prefix = key_prefix(job_id, attempt)
    found = await store.list_records(KIND, tenant, PLACES, (tenant, prefix))
    return [record for record in found if record.key.startswith(prefix)]
