"""Hints between processes: LISTEN and NOTIFY on the channel `duetime`.

Notifying transactions are serialised by the server when they commit, so a process sends at most two hundred of them a second; what
comes up in between is gathered and follows a few milliseconds later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from duetime.clock import monotonic_micros, noise, pause
from duetime.errors import DuetimeError
from duetime.model.hint import CancelHint, DoneHint, EventHint, Hint, JobHint, ScheduleHint
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import NodeId
from duetime.store import Unsubscribe
from duetime.stores.postgres.lines import SQL, Lines

CHANNEL = "duetime"
REST = SECOND // 200
GRACE = SECOND // 1_000  # a statement that notifies anyway may come in time to tell what waits
SELF_CHECK = 15.0  # seconds: a connection that looks open may have been dead for long
LAST_WORDS = 1.0  # seconds: a process that submits and ends at once still tells
LOOK_AT_ALL = JobHint("*", 0, 0)


class Bell:
    def __init__(self, lines: Lines) -> None:
        self._pooled = lines.address.pooled
        self._line = lines.listen(on_lost=self._on_lost)
        self._listeners: list[Callable[[Hint], None]] = []
        self._listening: asyncio.Task[None] | None = None
        self._ear: Any = None
        self._lost = asyncio.Event()
        self._waiting: dict[tuple[object, ...], tuple[Hint, Micros]] = {}
        self._waiting_since: Micros = 0
        self._flushing: asyncio.Task[None] | None = None
        self._last_rung = 0

    # -- telling ------------------------------------------------------------------------------------------------------
    def take_turn(self, hint: JobHint) -> JobHint | None:
        """What a statement is to tell by itself, if that is its turn: of its own job, and of what waits to be told of the same lane."""
        now = monotonic_micros()
        if now - self._last_rung < REST:
            return None
        self._last_rung = now
        waiting, _ = self._waiting.get(_key(hint), (None, 0)) if self._waiting else (None, 0)
        return waiting if isinstance(waiting, JobHint) and waiting.due_at < hint.due_at else hint

    def told(self, hint: Hint) -> None:
        """By the statement that took its turn."""
        waiting, _ = self._waiting.get(_key(hint), (None, 0)) if self._waiting else (None, 0)
        if waiting is not None and _instant(hint) <= _instant(waiting):
            del self._waiting[_key(hint)]
        self.tell_here([hint])

    def tell_here(self, hints: Iterable[Hint]) -> None:
        """Behind a pooler nobody can listen to the server, so this process tells itself."""
        if self._pooled:
            self._tell(hints)

    def ring(self, hints: Iterable[Hint], *, whenever: bool = False) -> None:
        """Tell everybody soon, without waiting for it. Jobs that are not due soon are left out, except `whenever` they are due."""
        hints = list(hints)
        self.tell_here(hints)
        if not self._waiting:
            self._waiting_since = monotonic_micros()
        for hint in hints:
            self._gather(hint, whenever)
        if self._waiting and self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())

    def ring_soon(self, hint: JobHint) -> None:
        """The same for one job: where jobs come one by one, an earlier one of its lane mostly waits to be told of, and that says all."""
        waiting = self._waiting.get(_key(hint))
        if self._pooled or waiting is None or hint.due_at < max(_instant(waiting[0]), waiting[1]):
            self.ring([hint])

    def _gather(self, hint: Hint, whenever: bool) -> None:
        key, moment = _key(hint), hint.due_at if isinstance(hint, JobHint) and not whenever else 0
        if key in self._waiting:
            known, sooner = self._waiting[key]
            hint, moment = min((known, hint), key=_instant), min(sooner, moment)
        self._waiting[key] = (hint, moment)

    async def _flush(self) -> None:
        try:
            while self._waiting:
                rest = min(self._last_rung + REST + GRACE, self._waiting_since + 2 * REST) - monotonic_micros()
                if rest > 0:
                    await pause(rest / SECOND)
                    continue
                batch, self._waiting = list(self._waiting.values()), {}
                self._last_rung = monotonic_micros()
                with contextlib.suppress(DuetimeError):  # a hint may be lost
                    await self._line.fetch(SQL["notify"], [encode(hint) for hint, _ in batch], [moment for _, moment in batch])
        finally:
            self._flushing = None

    # -- listening ----------------------------------------------------------------------------------------------------
    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        self._listeners.append(listener)
        self.listen()

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def listen(self) -> None:
        """Begin to listen if anybody wants to hear, and there is a loop to do it on."""
        if self._listening is None and self._listeners and not self._pooled:
            with contextlib.suppress(RuntimeError):
                self._listening = asyncio.get_running_loop().create_task(self._keep_listening())

    async def close(self) -> None:
        if self._flushing is not None:
            await asyncio.wait({self._flushing}, timeout=LAST_WORDS)
        tasks = [task for task in (self._listening, self._flushing) if task is not None]
        self._listening = self._ear = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_listening(self) -> None:
        failures = 0
        while True:
            self._lost.clear()
            try:
                await self._line.run(self._listen_on)
                failures = 0
            except DuetimeError:
                failures += 1
                await pause(min(2.0, 0.05 * 2**failures) * (0.5 + noise() / 2))
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SELF_CHECK):
                    await self._lost.wait()

    async def _listen_on(self, connection: Any) -> None:
        if self._ear is connection:
            await connection.fetchval("SELECT 1")
            return
        await connection.add_listener(CHANNEL, self._heard)
        self._ear = connection
        self._tell([LOOK_AT_ALL, EventHint(0)])  # whatever was told while nobody listened

    def _on_lost(self) -> None:
        self._lost.set()

    def _heard(self, _connection: object, _pid: int, _channel: str, payload: str) -> None:
        if (hint := decode(payload)) is not None:
            self._tell([hint])

    def _tell(self, hints: Iterable[Hint]) -> None:
        for hint in hints:
            for listener in tuple(self._listeners):
                listener(hint)


def encode(hint: Hint) -> str:
    """Short whatever it is about; the queue comes last because its name may hold anything."""
    match hint:
        case JobHint(queue, priority, due_at, exclusive):
            return f"{'j' if exclusive else 'b'} {priority} {due_at} {queue}"
        case ScheduleHint(moment):
            return f"s {moment}"
        case CancelHint(node, job_id):
            return f"c {node} {job_id}"
        case DoneHint(job_id):
            return f"d {job_id}"
        case EventHint(last):
            return f"e {last}"


def decode(payload: str) -> Hint | None:
    """None for what this version does not know."""
    try:
        match payload.split(" ", 3):
            case ["j" | "b" as kind, priority, due_at, queue]:
                return JobHint(queue, int(priority), int(due_at), kind == "j")
            case ["s", moment]:
                return ScheduleHint(int(moment))
            case ["c", node, job_id]:
                return CancelHint(NodeId(int(node)), UUID(job_id))
            case ["d", job_id]:
                return DoneHint(UUID(job_id))
            case ["e", last]:
                return EventHint(int(last))
    except ValueError:
        pass
    return None


def _key(hint: Hint) -> tuple[object, ...]:
    if isinstance(hint, JobHint):  # by far the most
        return ("j", hint.queue, hint.priority, hint.exclusive)
    match hint:
        case ScheduleHint():
            return ("s",)
        case CancelHint(node, job_id):
            return ("c", node, job_id)
        case DoneHint(job_id):
            return ("d", job_id)
        case EventHint():
            return ("e",)


def _instant(hint: Hint) -> Micros:
    """Of two hints with the same key the one about the earlier instant says all; of two about events, the later id."""
    match hint:
        case JobHint(due_at=due_at):
            return due_at
        case ScheduleHint(moment):
            return moment
        case CancelHint() | DoneHint():
            return 0
        case EventHint(last):
            return -last
