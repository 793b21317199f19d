"""What every publisher does: the protocol, the shared connection and the grouping of messages."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

CONNECT_TIMEOUT = 10.0  # seconds
Connection = TypeVar("Connection")


class NotPublished(Exception):
    """The broker has not confirmed the message. `permanent`: no other attempt can succeed, because the
    message itself is the cause. What the operator can change is not permanent."""

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.permanent = permanent


class OutgoingMessage(NamedTuple):
    body: bytes
    key: str | None
    id: str  # the same id means the same message; brokers that can, drop the second one


class Publisher(Protocol):
    """Publishes to one destination. All jobs of the node share its connection, which is made at the first
    message, and made again after it broke."""

    async def publish(self, message: OutgoingMessage) -> None:
        """The broker has stored the message durably when this returns. Raises NotPublished, or an error of
        the client, after which it may be stored or not."""
        ...

    async def close(self) -> None: ...


class SharedConnection(Generic[Connection]):
    """One connection for all. Callers that need it while it is being made wait for the same attempt."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        is_open: Callable[[Connection], bool],
        close: Callable[[Connection], Awaitable[object]],
    ) -> None:
        self._connect = connect
        self._is_open = is_open
        self._close = close
        self._connecting: asyncio.Future[Connection] | None = None

    async def get(self) -> Connection:
        if self._connecting is None or self._is_broken(self._connecting):
            self._connecting = asyncio.ensure_future(self._connected())
        return await asyncio.shield(self._connecting)

    async def close(self) -> None:
        connecting, self._connecting = self._connecting, None
        if connecting is not None:
            connecting.cancel()
            done = connecting.done() and not connecting.cancelled() and connecting.exception() is None
            if done and self._is_open(connecting.result()):
                await self._close(connecting.result())

    def _is_broken(self, made: asyncio.Future[Connection]) -> bool:
        return made.done() and (
            made.cancelled() or made.exception() is not None or not self._is_open(made.result())
        )

    async def _connected(self) -> Connection:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            return await self._connect()


class MessageGroups:
    """Sends messages that arrive while earlier ones are on the way as one group. `send` returns for each of
    them what is wrong with it, or None."""

    def __init__(
        self,
        send: Callable[[Sequence[OutgoingMessage]], Awaitable[Sequence[BaseException | None]]],
        max_messages: int,
        max_bytes: int,
        max_groups: int = 1,
    ) -> None:
        self._send = send
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._max_groups = max_groups  # on the way at the same time
        self._waiting: deque[tuple[OutgoingMessage, asyncio.Future[None]]] = deque()
        self._sending: set[asyncio.Task[None] | None] = set()

    async def add(self, message: OutgoingMessage) -> None:
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((message, done))
        if len(self._sending) < self._max_groups:
            self._sending.add(asyncio.create_task(self._send_waiting()))
        await done

    async def _send_waiting(self) -> None:
        while True:
            group = self._next_group()
            if not group:
                # At once, not when the task is done: a message that comes between would wait for the next
                self._sending.discard(asyncio.current_task())
                return
            try:
                problems = await self._send([message for message, _ in group])
            except Exception as problem:
                problems = [problem] * len(group)
            for (_, done), wrong in zip(group, problems, strict=True):
                if not done.done():  # else its attempt has ended meanwhile
                    done.set_result(None) if wrong is None else done.set_exception(wrong)

    def _next_group(self) -> list[tuple[OutgoingMessage, asyncio.Future[None]]]:
        group: list[tuple[OutgoingMessage, asyncio.Future[None]]] = []
        size = 0
        while self._waiting and len(group) < self._max_messages:
            message, done = self._waiting[0]
            size += len(message.body)
            if group and size > self._max_bytes:
                break
            self._waiting.popleft()
            if not done.done():  # else its attempt has ended, and the next one publishes it
                group.append((message, done))
        return group
