"""Hints between processes by pub/sub. Without them, workers and planners find everything a little later: they
also look by themselves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from duetime.clock import monotonic_micros, noise, pause
from duetime.errors import DuetimeError
from duetime.model.hint import EventHint, Hint, JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import NodeId
from duetime.store import Unsubscribe
from duetime.stores.hint_text import decode, encode, instant_of, subject_of
from duetime.stores.redis.connection import RedisConnection
from duetime.stores.redis.rows import lane_of

LISTEN_CHECK_INTERVAL = 15.0  # seconds: a connection that looks open may be dead
CLOSE_TIMEOUT = 1.0  # seconds: a process that submits and ends immediately still notifies
# A process sends hints at most so often: every worker reads all of them
MIN_INTERVAL = SECOND // 200
ALL_LANES = JobHint("*", 0, 0)


class RedisNotifier:
    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection
        self._channel = f"{connection.address.keys}hints"
        self._listeners: list[Callable[[Hint], None]] = []
        self._incoming = RedisConnection(connection.address, on_push=self._receive, on_lost=self._on_lost)
        self._lost = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        self._is_open = False
        self._pending: dict[tuple[object, ...], Hint] = {}
        self._sending: asyncio.Task[None] | None = None
        self._last_sent: Micros = 0
        self._hears = False
        self._node: NodeId | None = None  # whose assigned jobs come in
        self._receive_job: Callable[[NodeId, bytes], None] = lambda node, message: None

    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        self._listeners.append(listener)
        self.listen()

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return unsubscribe

    def notify(self, hints: Iterable[Hint]) -> None:
        """Send to every process soon, without waiting for it."""
        for hint in hints:
            subject = subject_of(hint)
            self._pending[subject] = min(self._pending.get(subject, hint), hint, key=instant_of)
        if self._pending and self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    def send_along(self, hints: Sequence[Hint]) -> list[str]:
        """What a call that stores jobs publishes. None: it is too early, and `notify` is to follow."""
        now = monotonic_micros()
        if now - self._last_sent < MIN_INTERVAL:
            return []
        self._last_sent = now
        return [encode(hint) for hint in hints]

    @property
    def is_listening(self) -> bool:
        return self._hears

    async def hear(self, node: NodeId, receive: Callable[[NodeId, bytes], None]) -> None:
        """Pass on the jobs that are assigned to this node."""
        if self._node != node:
            self._receive_job = receive
            await self._incoming.command("SUBSCRIBE", f"{self._channel}:{node}")
            self._node = node

    def listen(self) -> None:
        """Start to listen if there are listeners and an event loop to do it on."""
        if self._listening is None and self._listeners and self._is_open:
            with contextlib.suppress(RuntimeError):
                loop = asyncio.get_running_loop()
                self._incoming.reopen()
                self._lost = asyncio.Event()
                self._listening = loop.create_task(self._listen())

    def open(self) -> None:
        self._is_open = True
        self.listen()

    async def close(self) -> None:
        self._is_open = False
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=CLOSE_TIMEOUT)
        tasks = [task for task in (self._listening, self._sending) if task is not None]
        self._listening = self._sending = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._incoming.close()

    async def _send(self) -> None:
        try:
            while self._pending:
                wait = self._last_sent + MIN_INTERVAL - monotonic_micros()
                if wait > 0:
                    await pause(wait / SECOND)
                texts = [encode(hint) for hint in self._pending.values()]
                self._pending.clear()
                self._last_sent = monotonic_micros()
                with contextlib.suppress(DuetimeError):  # a hint may be lost
                    await self._connection.run("publish", *texts)
        finally:
            self._sending = None

    async def _listen(self) -> None:
        failures = 0
        while True:
            self._lost.clear()
            try:
                await self._incoming.command("SUBSCRIBE", self._channel)
                failures, self._hears, self._node = 0, True, None
                self.deliver([ALL_LANES, EventHint(0)])  # in place of the hints that were sent before
                while not self._lost.is_set():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(LISTEN_CHECK_INTERVAL):
                            await self._lost.wait()
                    if not self._lost.is_set():
                        await self._incoming.command("PING")
            except DuetimeError:
                failures = min(failures + 1, 6)
            await pause(min(2.0, 0.05 * 2**failures) * (0.5 + noise() / 2))

    def _on_lost(self) -> None:
        self._hears = False
        self._lost.set()

    def _receive(self, message: list[Any]) -> None:
        _, channel, content = message
        if len(channel) > len(self._channel):
            self._receive_job(NodeId(int(channel[len(self._channel) + 1 :])), content)
        elif (hint := decode(content.decode())) is not None:
            self.deliver([hint])

    def deliver(self, hints: Iterable[Hint]) -> None:
        """To the listeners in this process."""
        for hint in hints:
            for listener in tuple(self._listeners):
                listener(hint)


def lane_hints_of(lanes: Iterable[bytes], due_at: int) -> list[Hint]:
    """For jobs of these lanes that became claimable."""
    return [
        JobHint(lane.queue, lane.priority, due_at, lane.tenant) for lane in map(lane_of, dict.fromkeys(lanes))
    ]
