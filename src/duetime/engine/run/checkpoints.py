"""Writes checkpoints, progress and once-markers of running attempts, in groups. Updates of attempts that no
longer count are refused.

One write is under way at a time; updates that arrive meanwhile form the next group. Progress alone is written
a few times a second at most for each attempt; the latest goes with the next checkpoint, or when the attempt
ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar
from uuid import UUID

from duetime.clock import Clock
from duetime.engine.failpoint import failpoint
from duetime.engine.run.output import OutputWriter
from duetime.errors import Fenced, StoreUnavailable
from duetime.invoker import OutputSink
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.model.lease import NodeId
from duetime.store import AttemptUpdate, OnceReply, Store, TaskTransaction

PROGRESS_INTERVAL = SECOND // 5
MAX_GROUP = 500
RETRY_TIMEOUT = 30 * SECOND  # how long an unavailable store is asked again before the task gets an error
MIN_RETRY_INTERVAL, MAX_RETRY_INTERVAL = SECOND // 20, 2 * SECOND
LAST_PROGRESS_TIMEOUT = 2 * SECOND
Answer = TypeVar("Answer")
Entry = tuple[AttemptUpdate, asyncio.Future[None]]
Fence = Callable[[UUID, int], None]


class _Attempt:
    """One attempt that reported progress."""

    __slots__ = ("pending", "timer", "writing", "written_at")

    def __init__(self) -> None:
        self.pending: AttemptUpdate | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.writing: asyncio.Future[None] | None = None
        self.written_at: Micros | None = None


class CheckpointWriter:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        node: NodeId,
        trusted: Callable[[], bool],
        on_fenced: Fence,
        output: OutputWriter | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._trusted = trusted
        self._on_fenced = on_fenced
        self._output = output
        self._calls = count(1)
        self._waiting: list[Entry] = []
        self._flushing: asyncio.Task[None] | None = None
        self._attempts: dict[tuple[UUID, int], _Attempt] = {}
        self.loop = asyncio.get_running_loop()

    # -- called by attempts
    # ----------------------------------------------------------------------------------------
    async def save(self, update: AttemptUpdate) -> None:
        if update.checkpoint is None:
            self._keep_progress(update)
            return
        failpoint("checkpoints.before_save")
        known = self._attempts.get(update[:2])
        if known is not None and known.pending is not None and update.progress is None:
            update = update._replace(progress=self._take(known).progress)
        await self._send(update)
        failpoint("checkpoints.after_save")

    async def mark(self, job_id: UUID, attempt: int, key: str) -> bool:
        # Node ids are never used again, so no other call has this nonce
        nonce = UUID(int=self._node << 64 | next(self._calls))
        reply = await self._with_retries(lambda: self._store.take_once(job_id, attempt, key, nonce))
        if reply is OnceReply.REFUSED:
            raise _fenced(job_id, attempt)
        return reply is OnceReply.TAKEN

    async def transact(self) -> TaskTransaction:
        return await self._with_retries(self._store.begin_transaction)

    def open_output(self, job: Claimed) -> OutputSink | None:
        return None if self._output is None else self._output.open(job)

    async def end_output(self, job_id: UUID, attempt: int) -> None:
        """The attempt has ended: returns when its last output is written, or that takes too long."""
        if self._output is not None:
            await self._output.end(job_id, attempt)

    async def end(self, job_id: UUID, attempt: int, wait: bool) -> None:
        """The attempt has ended: write its last progress. `wait`: until it is written or that takes too
        long."""
        known = self._attempts.pop((job_id, attempt), None)
        if known is None:
            return
        if known.pending is not None:
            known.writing = self._send(self._take(known))
        if known.writing is not None and wait:
            await asyncio.wait([known.writing], timeout=LAST_PROGRESS_TIMEOUT / SECOND)

    # -- progress
    # -----------------------------------------------------------------------------------------------------
    def _keep_progress(self, update: AttemptUpdate) -> None:
        known = self._attempts.get(update[:2])
        if known is None:
            known = self._attempts[update[:2]] = _Attempt()
        known.pending = update
        if known.timer is None:
            due = (
                0
                if known.written_at is None
                else known.written_at + PROGRESS_INTERVAL - self._clock.monotonic()
            )
            if due <= 0:
                self._write_progress(known)
            else:
                known.timer = self.loop.call_later(due / SECOND, self._write_progress, known)

    def _write_progress(self, known: _Attempt) -> None:
        if known.pending is not None:
            known.writing = self._send(self._take(known))
            known.writing.add_done_callback(self._progress_written)

    def _take(self, known: _Attempt) -> AttemptUpdate:
        assert known.pending is not None
        if known.timer is not None:
            known.timer.cancel()
        update, known.pending, known.timer, known.written_at = (
            known.pending,
            None,
            None,
            self._clock.monotonic(),
        )
        return update

    def _progress_written(self, written: asyncio.Future[None]) -> None:
        """The attempt does not wait for its progress. Stop it if it no longer counts; ignore an outage."""
        problem = None if written.cancelled() else written.exception()
        if isinstance(problem, _Refused) and (problem.job_id, problem.attempt) in self._attempts:
            self._on_fenced(problem.job_id, problem.attempt)

    # -- writing
    # ------------------------------------------------------------------------------------------------------
    def _send(self, update: AttemptUpdate) -> asyncio.Future[None]:
        place: asyncio.Future[None] = self.loop.create_future()
        self._waiting.append((update, place))
        if self._flushing is None:
            self._flushing = self.loop.create_task(self._flush())
        return place

    async def _flush(self) -> None:
        try:
            while self._waiting:
                await self._write_group(self._take_group())
        finally:
            self._flushing = None

    def _take_group(self) -> list[Entry]:
        """At most one attempt of each job: the store names refusals by job."""
        attempts: dict[UUID, int] = {}
        group: list[Entry] = []
        rest: list[Entry] = []
        for entry in self._waiting:
            update = entry[0]
            fits = len(group) < MAX_GROUP and attempts.setdefault(update.id, update.attempt) == update.attempt
            (group if fits else rest).append(entry)
        self._waiting = rest
        return group

    async def _write_group(self, group: list[Entry]) -> None:
        try:
            refused = set(
                await self._with_retries(lambda: self._store.save_progress([update for update, _ in group]))
            )
        except BaseException as problem:
            for _, place in group:
                _answer(
                    place, problem if isinstance(problem, Exception) else StoreUnavailable("the node ends")
                )
            if not isinstance(problem, Exception):
                raise
            return
        for update, place in group:
            _answer(place, _fenced(update.id, update.attempt) if update.id in refused else None)

    async def _with_retries(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Repeat the call during a short outage of the store, while the node's lease is trusted."""
        give_up_at, wait = self._clock.monotonic() + RETRY_TIMEOUT, MIN_RETRY_INTERVAL
        while True:
            try:
                return await call()
            except StoreUnavailable:
                if not self._trusted() or self._clock.monotonic() + wait > give_up_at:
                    raise
            await self._clock.sleep(int(wait * (0.5 + self._clock.noise() / 2)))
            wait = min(2 * wait, MAX_RETRY_INTERVAL)


class _Refused(Fenced):
    def __init__(self, job_id: UUID, attempt: int) -> None:
        super().__init__(
            f"job {job_id} no longer runs under attempt {attempt}: this attempt does not count, stop it"
        )
        self.job_id = job_id
        self.attempt = attempt


def _fenced(job_id: UUID, attempt: int) -> Fenced:
    return _Refused(job_id, attempt)


def _answer(place: asyncio.Future[None], problem: Exception | None) -> None:
    if place.done():
        return
    if problem is None:
        place.set_result(None)
    else:
        place.set_exception(problem)
        place.exception()  # retrieved, also if the caller no longer waits
