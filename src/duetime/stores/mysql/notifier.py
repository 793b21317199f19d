"""Hints between processes: rows of a table, which every process with listeners polls. The server has nothing
like NOTIFY. A look costs a tenth of a millisecond: often while hints come, less often otherwise."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence

from duetime.clock import noise, pause, wall_micros
from duetime.errors import DuetimeError
from duetime.model.hint import EventHint, Hint, JobHint
from duetime.model.ids import random_bytes
from duetime.model.instant import SECOND
from duetime.store import Unsubscribe
from duetime.stores.hint_text import decode, encode, instant_of, subject_of
from duetime.stores.mysql.connection import MySqlConnection
from duetime.stores.sql.session import Row

BUSY_INTERVAL, QUIET_INTERVAL, LOOKS_UNTIL_QUIET = 0.002, 0.01, 50  # seconds
SEND_INTERVAL = 0.003  # hints that come meanwhile are sent together
CLOSE_TIMEOUT = 1.0  # a process that submits and ends immediately still notifies
SOON = 2 * SECOND  # workers look at least once a second anyway: jobs that are due later are no news
# Transactions commit in another order than they take ids: the last ids are read again.
OVERLAP = 100
KEPT = 10_000  # hints in the table
LOOK_AT_ALL: tuple[Hint, ...] = (JobHint("*", 0, 0), EventHint(0))


class MySqlNotifier:
    def __init__(self, sending: MySqlConnection, polling: MySqlConnection) -> None:
        self._sending_connection = sending
        self._polling_connection = polling
        self._sender = int.from_bytes(random_bytes(7), "big")
        self._listeners: list[Callable[[Hint], None]] = []
        self._pending: dict[tuple[object, ...], Hint] = {}
        self._sending: asyncio.Task[None] | None = None
        self._polling: asyncio.Task[None] | None = None
        self._sent = 0

    # -- sending
    def notify(self, hints: Iterable[Hint], *, also_late: bool = False) -> None:
        """To listeners of this process now, to others soon, without waiting for it. Jobs that are not due
        soon are left out, unless `also_late`."""
        hints = list(hints)
        self._deliver(hints)
        latest = wall_micros() + SOON
        for hint in hints:
            if also_late or not isinstance(hint, JobHint) or hint.due_at <= latest:
                known = self._pending.get(subject_of(hint), hint)
                self._pending[subject_of(hint)] = min((known, hint), key=instant_of)
        if self._pending and self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._pending:
                hints, self._pending = list(self._pending.values()), {}
                with contextlib.suppress(DuetimeError):  # a hint may be lost
                    await self._insert(hints)
                await pause(SEND_INTERVAL)
        finally:
            self._sending = None

    async def _insert(self, hints: Sequence[Hint]) -> None:
        rows = [(self._sender, encode(hint)) for hint in hints]
        connection = self._sending_connection
        await connection.read(lambda session: session.change_many("add_hints", rows))
        self._sent += len(rows)
        if self._sent >= KEPT:
            self._sent = 0
            last = int(await connection.read(lambda session: session.value("last_hint")))
            await connection.read(lambda session: session.change("forget_hints", (last - KEPT,)))

    # -- listening
    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        self._listeners.append(listener)
        if self._polling is None:
            self._polling = asyncio.create_task(self._keep_polling())

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    async def close(self) -> None:
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=CLOSE_TIMEOUT)
        tasks = [task for task in (self._polling, self._sending) if task is not None]
        self._polling = self._sending = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _deliver(self, hints: Sequence[Hint]) -> None:
        for hint in hints:
            for listener in list(self._listeners):
                listener(hint)

    async def _keep_polling(self) -> None:
        failures = 0
        while True:
            try:
                await self._poll()
            except DuetimeError:
                failures += 1
                await pause(min(2.0, 0.05 * 2**failures) * (0.5 + noise() / 2))

    async def _poll(self) -> None:
        last = int(await self._polling_connection.read(lambda session: session.value("last_hint")))
        seen = set(range(last - OVERLAP, last + 1))
        self._deliver(LOOK_AT_ALL)  # in place of the hints that were sent before
        quiet_looks = 0
        while True:
            rows = await self._read_after(max(seen) - OVERLAP)
            news = [(number, text) for number, text in rows if number not in seen]
            quiet_looks = 0 if news else quiet_looks + 1
            self._deliver([hint for _, text in news if (hint := decode(text)) is not None])
            seen |= {number for number, _ in news}
            if len(seen) > 10 * OVERLAP:
                last = max(seen)
                seen = {number for number in seen if number > last - OVERLAP}
            await pause(BUSY_INTERVAL if quiet_looks < LOOKS_UNTIL_QUIET else QUIET_INTERVAL)

    async def _read_after(self, number: int) -> list[Row]:
        parameters = (number, self._sender)
        return await self._polling_connection.read(lambda session: session.all("read_hints", parameters))
