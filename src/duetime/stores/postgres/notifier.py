"""Hints between processes: LISTEN and NOTIFY on the channel `duetime`.

The server serialises the commits of notifying transactions, so a process sends at most two hundred of them a
second; hints in between are collected and sent a few milliseconds later."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from duetime.clock import monotonic_micros, noise, pause
from duetime.errors import DuetimeError
from duetime.model.hint import EventHint, Hint, JobHint
from duetime.model.instant import SECOND, Micros
from duetime.store import Unsubscribe
from duetime.stores.hint_text import decode, encode, instant_of, subject_of
from duetime.stores.postgres.connections import SQL, PostgresConnections

CHANNEL = "duetime"
MIN_INTERVAL = SECOND // 200
PIGGYBACK_INTERVAL = (
    SECOND // 1_000
)  # a statement that notifies anyway may come in time to send what is pending
LISTEN_CHECK_INTERVAL = 15.0  # seconds: a connection that looks open may be dead
CLOSE_TIMEOUT = 1.0  # seconds: a process that submits and ends immediately still notifies
LOOK_AT_ALL = JobHint("*", 0, 0)


class Notifier:
    def __init__(self, connections: PostgresConnections) -> None:
        self._pooled = connections.address.pooled
        self._connection = connections.listen(on_lost=self._on_lost)
        self._listeners: list[Callable[[Hint], None]] = []
        self._listening: asyncio.Task[None] | None = None
        self._listening_connection: Any = None
        self._lost = asyncio.Event()
        self._pending: dict[tuple[object, ...], tuple[Hint, Micros]] = {}
        self._pending_since: Micros = 0
        self._sending: asyncio.Task[None] | None = None
        self._last_sent = 0

    # -- sending
    def piggyback(self, hint: JobHint) -> JobHint | None:
        """The hint that a statement sends along with its own work, if it is time to send one: its own, or an
        earlier one of the lane."""
        now = monotonic_micros()
        if now - self._last_sent < MIN_INTERVAL:
            return None
        self._last_sent = now
        pending, _ = self._pending.get(subject_of(hint), (None, 0)) if self._pending else (None, 0)
        return pending if isinstance(pending, JobHint) and pending.due_at < hint.due_at else hint

    def sent(self, hint: Hint) -> None:
        """A statement has sent this hint along."""
        pending, _ = self._pending.get(subject_of(hint), (None, 0)) if self._pending else (None, 0)
        if pending is not None and instant_of(hint) <= instant_of(pending):
            del self._pending[subject_of(hint)]
        self._deliver_here([hint])

    def notify(self, hints: Iterable[Hint], *, also_late: bool = False) -> None:
        """Send to every process soon, without waiting for it. Jobs that are not due soon are left out, unless
        `also_late`."""
        hints = list(hints)
        self._deliver_here(hints)
        if not self._pending:
            self._pending_since = monotonic_micros()
        for hint in hints:
            self._collect(hint, also_late)
        if self._pending and self._sending is None:
            self._sending = asyncio.create_task(self._send())

    def notify_job(self, hint: JobHint) -> None:
        """The same for one job; a pending hint about an earlier job of the lane covers it."""
        pending = self._pending.get(subject_of(hint))
        if self._pooled or pending is None or hint.due_at < max(instant_of(pending[0]), pending[1]):
            self.notify([hint])

    def _deliver_here(self, hints: Iterable[Hint]) -> None:
        """Behind a pooler a process cannot listen to the server, so it notifies itself."""
        if self._pooled:
            self._deliver(hints)

    def _collect(self, hint: Hint, also_late: bool) -> None:
        key, instant = subject_of(hint), hint.due_at if isinstance(hint, JobHint) and not also_late else 0
        if key in self._pending:
            known, sooner = self._pending[key]
            hint, instant = min((known, hint), key=instant_of), min(sooner, instant)
        self._pending[key] = (hint, instant)

    async def _send(self) -> None:
        try:
            while self._pending:
                wait = (
                    min(
                        self._last_sent + MIN_INTERVAL + PIGGYBACK_INTERVAL,
                        self._pending_since + 2 * MIN_INTERVAL,
                    )
                    - monotonic_micros()
                )
                if wait > 0:
                    await pause(wait / SECOND)
                    continue
                batch, self._pending = list(self._pending.values()), {}
                self._last_sent = monotonic_micros()
                with contextlib.suppress(DuetimeError):  # a hint may be lost
                    await self._connection.fetch(
                        SQL["notify"], [encode(hint) for hint, _ in batch], [instant for _, instant in batch]
                    )
        finally:
            self._sending = None

    # -- listening
    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        self._listeners.append(listener)
        self.listen()

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def listen(self) -> None:
        """Start to listen if there are listeners and an event loop to do it on."""
        if self._listening is None and self._listeners and not self._pooled:
            with contextlib.suppress(RuntimeError):
                self._listening = asyncio.get_running_loop().create_task(self._keep_listening())

    async def close(self) -> None:
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=CLOSE_TIMEOUT)
        tasks = [task for task in (self._listening, self._sending) if task is not None]
        self._listening = self._listening_connection = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_listening(self) -> None:
        failures = 0
        while True:
            self._lost.clear()
            try:
                await self._connection.run(self._listen_on)
                failures = 0
            except DuetimeError:
                failures += 1
                await pause(min(2.0, 0.05 * 2**failures) * (0.5 + noise() / 2))
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LISTEN_CHECK_INTERVAL):
                    await self._lost.wait()

    async def _listen_on(self, connection: Any, _is_retry: bool) -> None:
        if self._listening_connection is connection:
            await connection.fetchval("SELECT 1")
            return
        await connection.add_listener(CHANNEL, self._receive)
        self._listening_connection = connection
        self._deliver([LOOK_AT_ALL, EventHint(0)])  # in place of the hints that were sent before

    def _on_lost(self) -> None:
        self._lost.set()

    def _receive(self, _connection: object, _pid: int, _channel: str, payload: str) -> None:
        if (hint := decode(payload)) is not None:
            self._deliver([hint])

    def _deliver(self, hints: Iterable[Hint]) -> None:
        for hint in hints:
            for listener in tuple(self._listeners):
                listener(hint)


def hint_of(row: Any) -> JobHint:
    return JobHint(row["queue"], row["priority"], row["due_at"], row["tenant"])
