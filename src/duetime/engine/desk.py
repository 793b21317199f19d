"""The writing desk of a node: checkpoints, progress and marks of running attempts, written in groups and refused when they come late.

One write is under way at a time, and what arrives meanwhile goes together in the next. Progress alone is written at most a few times a
second for each attempt; what is not written yet goes with the next checkpoint, or when the attempt ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar
from uuid import UUID

from duetime.clock import Clock
from duetime.engine.failpoint import failpoint
from duetime.errors import Fenced, StoreUnavailable
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import NodeId
from duetime.store import MarkReply, Note, Store, Transaction

BETWEEN_PROGRESS = SECOND // 5
MOST_IN_A_GROUP = 500
PATIENCE = 30 * SECOND  # how long a store that is away is asked again before the task hears of it
FIRST_WAIT, LONGEST_WAIT = SECOND // 20, 2 * SECOND
LAST_WORDS_WITHIN = 2 * SECOND
Answer = TypeVar("Answer")
Entry = tuple[Note, asyncio.Future[None]]
Fence = Callable[[UUID, int], None]


class _Attempt:
    """What is known of one attempt that told its progress."""

    __slots__ = ("pending", "timer", "writing", "written_at")

    def __init__(self) -> None:
        self.pending: Note | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.writing: asyncio.Future[None] | None = None
        self.written_at: Micros | None = None


class WritingDesk:
    def __init__(self, store: Store, clock: Clock, node: NodeId, trusted: Callable[[], bool], on_fenced: Fence) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._trusted = trusted
        self._on_fenced = on_fenced
        self._calls = count(1)
        self._waiting: list[Entry] = []
        self._flushing: asyncio.Task[None] | None = None
        self._attempts: dict[tuple[UUID, int], _Attempt] = {}
        self.loop = asyncio.get_running_loop()

    # -- what attempts ask for ----------------------------------------------------------------------------------------
    async def save(self, note: Note) -> None:
        if note.checkpoint is None:
            self._keep_progress(note)
            return
        failpoint("desk.before_checkpoint")
        known = self._attempts.get(note[:2])
        if known is not None and known.pending is not None and note.progress is None:
            note = note._replace(progress=self._take(known).progress)
        await self._send(note)
        failpoint("desk.after_checkpoint")

    async def mark(self, job_id: UUID, attempt: int, key: str) -> bool:
        # Node ids are never used again, so this call has a number no other call ever has.
        nonce = UUID(int=self._node << 64 | next(self._calls))
        reply = await self._patiently(lambda: self._store.mark(job_id, attempt, key, nonce))
        if reply is MarkReply.REFUSED:
            raise _fenced(job_id, attempt)
        return reply is MarkReply.TAKEN

    async def transact(self) -> Transaction:
        return await self._patiently(self._store.transact)

    async def end(self, job_id: UUID, attempt: int, wait: bool) -> None:
        """The attempt is over: its last progress is written, unless that takes too long. `wait`: before this returns."""
        known = self._attempts.pop((job_id, attempt), None)
        if known is None:
            return
        if known.pending is not None:
            known.writing = self._send(self._take(known))
        if known.writing is not None and wait:
            await asyncio.wait([known.writing], timeout=LAST_WORDS_WITHIN / SECOND)

    # -- progress -----------------------------------------------------------------------------------------------------
    def _keep_progress(self, note: Note) -> None:
        known = self._attempts.get(note[:2])
        if known is None:
            known = self._attempts[note[:2]] = _Attempt()
        known.pending = note
        if known.timer is None:
            due = 0 if known.written_at is None else known.written_at + BETWEEN_PROGRESS - self._clock.monotonic()
            if due <= 0:
                self._write_progress(known)
            else:
                known.timer = self.loop.call_later(due / SECOND, self._write_progress, known)

    def _write_progress(self, known: _Attempt) -> None:
        if known.pending is not None:
            known.writing = self._send(self._take(known))
            known.writing.add_done_callback(self._told)

    def _take(self, known: _Attempt) -> Note:
        assert known.pending is not None
        if known.timer is not None:
            known.timer.cancel()
        note, known.pending, known.timer, known.written_at = known.pending, None, None, self._clock.monotonic()
        return note

    def _told(self, written: asyncio.Future[None]) -> None:
        """Nobody waits for progress: an attempt that does not count any more is stopped, an outage is not its business."""
        problem = None if written.cancelled() else written.exception()
        if isinstance(problem, _Refused) and (problem.job_id, problem.attempt) in self._attempts:
            self._on_fenced(problem.job_id, problem.attempt)

    # -- writing ------------------------------------------------------------------------------------------------------
    def _send(self, note: Note) -> asyncio.Future[None]:
        place: asyncio.Future[None] = self.loop.create_future()
        self._waiting.append((note, place))
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
        """One attempt of a job at most: refusals are told by job."""
        attempts: dict[UUID, int] = {}
        group: list[Entry] = []
        rest: list[Entry] = []
        for entry in self._waiting:
            note = entry[0]
            fits = len(group) < MOST_IN_A_GROUP and attempts.setdefault(note.id, note.attempt) == note.attempt
            (group if fits else rest).append(entry)
        self._waiting = rest
        return group

    async def _write_group(self, group: list[Entry]) -> None:
        try:
            refused = set(await self._patiently(lambda: self._store.save([note for note, _ in group])))
        except BaseException as problem:
            for _, place in group:
                _answer(place, problem if isinstance(problem, Exception) else StoreUnavailable("the node ends"))
            if not isinstance(problem, Exception):
                raise
            return
        for note, place in group:
            _answer(place, _fenced(note.id, note.attempt) if note.id in refused else None)

    async def _patiently(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """A short outage of the store is not the task's failure: asked again while this node is still trusted."""
        give_up_at, wait = self._clock.monotonic() + PATIENCE, FIRST_WAIT
        while True:
            try:
                return await call()
            except StoreUnavailable:
                if not self._trusted() or self._clock.monotonic() + wait > give_up_at:
                    raise
            await self._clock.sleep(int(wait * (0.5 + self._clock.noise() / 2)))
            wait = min(2 * wait, LONGEST_WAIT)


class _Refused(Fenced):
    def __init__(self, job_id: UUID, attempt: int) -> None:
        super().__init__(f"job {job_id} does not run under attempt {attempt} any more: this attempt does not count, stop it")
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
        place.exception()  # seen, even when nobody waits any more
