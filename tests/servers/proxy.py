"""A TCP proxy that injects network faults: it refuses, resets, blocks or delays connections, or cuts one just
before or after a commit.

The mode applies to all connections. `pass_through()` repairs the network: bytes that `blackhole()` held back
are then delivered, as TCP would deliver them. `drop_before` and `drop_after` apply once and do not change the
mode.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass, field
from enum import StrEnum, auto
from types import TracebackType
from typing import Self

CHUNK = 65_536
COMMIT = b"COMMIT"
ANYTHING = b""
# PostgreSQL's ReadyForQuery without its last byte: the server has executed and committed all requests.
READY_FOR_QUERY = b"Z\x00\x00\x00\x05"


class Mode(StrEnum):
    PASS = auto()
    REFUSE = auto()
    RESET = auto()
    BLACKHOLE = auto()
    DELAY = auto()


class Toward(StrEnum):
    SERVER = auto()
    CLIENT = auto()


BOTH_WAYS = frozenset(Toward)


class Cut(StrEnum):
    BEFORE = auto()
    AFTER = auto()


class Action(StrEnum):
    """What the proxy does with a chunk of bytes."""

    FORWARD = auto()
    DISCARD = auto()
    CUT = auto()


@dataclass(frozen=True, slots=True)
class Trigger:
    """Cuts the connection that sends `marker`: before the server gets it, or after the server has sent
    `reply`."""

    cut: Cut
    marker: bytes
    reply: bytes


@dataclass(slots=True, eq=False)
class Link:
    """One connection through the proxy: its two sockets, and the ends of the last chunks."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    triggered: Trigger | None = None
    is_silent: bool = False
    tails: dict[Toward, bytes] = field(default_factory=lambda: dict.fromkeys(Toward, b""))

    def contains(self, toward: Toward, chunk: bytes, marker: bytes) -> bool:
        """Whether `marker` ends in this chunk; it may begin in the chunk before."""
        window = self.tails[toward] + chunk
        self.tails[toward] = window[-len(marker) + 1 :] if len(marker) > 1 else b""
        return marker in window

    def reset(self) -> None:
        """Close both sides immediately with RST instead of FIN."""
        for writer in (self.client, self.server):
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
            writer.transport.abort()


class Proxy:
    """Forwards connections on `port` to 127.0.0.1:`server_port`. `async with Proxy(server.port) as
    proxy:`."""

    def __init__(self, server_port: int) -> None:
        self.server_port = server_port
        self.port = 0
        self.dropped = asyncio.Event()
        self._mode = Mode.PASS
        self._held = BOTH_WAYS
        self._delay = 0.0
        self._trigger: Trigger | None = None
        self._unblocked = asyncio.Event()
        self._unblocked.set()
        self._links: set[Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def mode(self) -> Mode:
        return self._mode

    @property
    def connections(self) -> int:
        return len(self._links)

    async def pass_through(self) -> None:
        """Forward everything."""
        await self._switch(Mode.PASS)

    async def refuse(self) -> None:
        """Refuse new connections and reset open ones, as if the server were down but its machine up."""
        await self._switch(Mode.REFUSE)
        self._stop_listening()
        self.cut()

    async def reset(self) -> None:
        """Reset open connections now and new ones as soon as they are made."""
        await self._switch(Mode.RESET)
        self.cut()

    async def blackhole(self, toward: frozenset[Toward] = BOTH_WAYS) -> None:
        """Hold back all bytes without an error, in one direction or in both."""
        self._held = toward
        await self._switch(Mode.BLACKHOLE)

    async def delay(self, seconds: float) -> None:
        """Delay all bytes by `seconds`, each way."""
        self._delay = seconds
        await self._switch(Mode.DELAY)

    def silence(self) -> None:
        """Open connections stay open and never bring a byte again. New ones work."""
        for link in self._links:
            link.is_silent = True

    def cut(self) -> None:
        """Reset all open connections."""
        for link in tuple(self._links):
            link.reset()

    def drop_before(self, marker: bytes = COMMIT) -> None:
        """Cut the next connection that sends `marker`, before the server gets it. Sets `dropped` then."""
        self._arm(Trigger(Cut.BEFORE, marker, ANYTHING))

    def drop_after(self, marker: bytes = COMMIT, reply: bytes = READY_FOR_QUERY) -> None:
        """Forward the next `marker`, wait for the server's `reply`, discard it, and cut the connection."""
        self._arm(Trigger(Cut.AFTER, marker, reply))

    async def close(self) -> None:
        self._stop_listening()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _arm(self, trigger: Trigger) -> None:
        self.dropped.clear()
        self._trigger = trigger

    async def _switch(self, mode: Mode) -> None:
        self._mode = mode
        if mode is Mode.BLACKHOLE:
            self._unblocked.clear()
        else:
            self._unblocked.set()
        if mode is not Mode.REFUSE and self._listener is None:
            await self._listen()

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    def _stop_listening(self) -> None:
        if self._listener:
            self._listener.close()
            self._listener = None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._connect(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, from_client: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        """Handle one connection until it ends."""
        try:
            from_server, server = await asyncio.open_connection("127.0.0.1", self.server_port)
        except OSError:
            Link(client, client).reset()
            return
        link = Link(client, server)
        self._links.add(link)
        if self._mode is Mode.RESET:
            link.reset()
        try:
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(self._forward(link, from_client, Toward.SERVER))
                both_ways.create_task(self._forward(link, from_server, Toward.CLIENT))
        except* OSError:
            pass
        finally:
            link.reset()
            self._links.discard(link)

    async def _forward(self, link: Link, reader: asyncio.StreamReader, toward: Toward) -> None:
        """Forward bytes one way until that side closes; then close the other side."""
        writer = link.server if toward is Toward.SERVER else link.client
        while chunk := await reader.read(CHUNK):
            await self._block(toward)
            match self._action(link, toward, chunk):
                case Action.FORWARD:
                    writer.write(chunk)
                    await writer.drain()
                case Action.CUT:
                    self.dropped.set()
                    link.reset()
                    return
                case Action.DISCARD:
                    continue
        writer.close()
        await writer.wait_closed()

    async def _block(self, toward: Toward) -> None:
        while self._mode is Mode.BLACKHOLE and toward in self._held:
            await self._unblocked.wait()
        if self._mode is Mode.DELAY:
            await asyncio.sleep(self._delay)

    def _action(self, link: Link, toward: Toward, chunk: bytes) -> Action:
        if link.is_silent:
            return Action.DISCARD
        if toward is Toward.SERVER:
            return self._action_for_request(link, chunk)
        if link.triggered is None:
            return Action.FORWARD
        return Action.CUT if link.contains(toward, chunk, link.triggered.reply) else Action.DISCARD

    def _action_for_request(self, link: Link, chunk: bytes) -> Action:
        trigger = self._trigger
        if trigger is None or not link.contains(Toward.SERVER, chunk, trigger.marker):
            return Action.FORWARD
        self._trigger = None
        if trigger.cut is Cut.BEFORE:
            return Action.CUT
        link.triggered = trigger
        return Action.FORWARD
