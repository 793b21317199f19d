"""A TCP proxy that misbehaves on demand: it refuses, resets, swallows, delays, or cuts just before or after a commit.

The mode holds for all connections. Going back to `pass_through()` heals the network: what a black hole held back is then delivered, as
TCP would deliver it. `drop_before` and `drop_after` are armed for one hit and leave the mode alone.
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
# PostgreSQL's ReadyForQuery without its last byte: the server has finished, and committed, all it was asked for.
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


class Verdict(StrEnum):
    """What becomes of bytes on their way."""

    CARRY = auto()
    SWALLOW = auto()
    CUT = auto()


@dataclass(frozen=True, slots=True)
class Trap:
    """Cuts the connection on which `marker` goes to the server: before it gets there, or once `reply` has come back."""

    cut: Cut
    marker: bytes
    reply: bytes


@dataclass(slots=True, eq=False)
class Link:
    """One connection through the proxy: its two sockets, and what it remembers of the bytes gone by."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    sprung: Trap | None = None
    tails: dict[Toward, bytes] = field(default_factory=lambda: dict.fromkeys(Toward, b""))

    def saw(self, toward: Toward, chunk: bytes, marker: bytes) -> bool:
        """Whether `marker` ends in this chunk, even if it began in the one before."""
        window = self.tails[toward] + chunk
        self.tails[toward] = window[-len(marker) + 1 :] if len(marker) > 1 else b""
        return marker in window

    def reset(self) -> None:
        """Close both sides at once with RST instead of a polite FIN."""
        for writer in (self.client, self.server):
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


class Proxy:
    """Listens on `port` and passes on to 127.0.0.1:`server_port`. `async with Proxy(server.port) as proxy:`."""

    def __init__(self, server_port: int) -> None:
        self.server_port = server_port
        self.port = 0
        self.dropped = asyncio.Event()
        self._mode = Mode.PASS
        self._held = BOTH_WAYS
        self._delay = 0.0
        self._trap: Trap | None = None
        self._healed = asyncio.Event()
        self._healed.set()
        self._links: set[Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    @property
    def mode(self) -> Mode:
        return self._mode

    @property
    def connections(self) -> int:
        return len(self._links)

    async def pass_through(self) -> None:
        """Behave."""
        await self._switch(Mode.PASS)

    async def refuse(self) -> None:
        """Nobody listens any more, and open connections are reset: the server's machine is up, the server is not."""
        await self._switch(Mode.REFUSE)
        self._stop_listening()
        self.cut()

    async def reset(self) -> None:
        """Connections are reset, the open ones now and new ones as soon as they are made."""
        await self._switch(Mode.RESET)
        self.cut()

    async def blackhole(self, toward: frozenset[Toward] = BOTH_WAYS) -> None:
        """Nothing arrives and nobody is told, in one direction or in both."""
        self._held = toward
        await self._switch(Mode.BLACKHOLE)

    async def delay(self, seconds: float) -> None:
        """Whatever passes is late by `seconds`, each way."""
        self._delay = seconds
        await self._switch(Mode.DELAY)

    def cut(self) -> None:
        """Reset the connections that are open now."""
        for link in tuple(self._links):
            link.reset()

    def drop_before(self, marker: bytes = COMMIT) -> None:
        """Cut the next connection that sends `marker`, before the server sees it. `dropped` is set when it has happened."""
        self._arm(Trap(Cut.BEFORE, marker, ANYTHING))

    def drop_after(self, marker: bytes = COMMIT, reply: bytes = READY_FOR_QUERY) -> None:
        """Let the next `marker` through, wait for the server's `reply`, keep it from the client, and cut."""
        self._arm(Trap(Cut.AFTER, marker, reply))

    async def close(self) -> None:
        self._stop_listening()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _arm(self, trap: Trap) -> None:
        self.dropped.clear()
        self._trap = trap

    async def _switch(self, mode: Mode) -> None:
        self._mode = mode
        if mode is Mode.BLACKHOLE:
            self._healed.clear()
        else:
            self._healed.set()
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
        task = asyncio.create_task(self._carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, from_client: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        """One connection from its beginning to its end."""
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
                both_ways.create_task(self._pump(link, from_client, Toward.SERVER))
                both_ways.create_task(self._pump(link, from_server, Toward.CLIENT))
        except* OSError:
            pass
        finally:
            link.reset()
            self._links.discard(link)

    async def _pump(self, link: Link, reader: asyncio.StreamReader, toward: Toward) -> None:
        """Carry bytes one way until that side ends; then end the other side too."""
        writer = link.server if toward is Toward.SERVER else link.client
        while chunk := await reader.read(CHUNK):
            await self._hold_back(toward)
            match self._judge(link, toward, chunk):
                case Verdict.CARRY:
                    writer.write(chunk)
                    await writer.drain()
                case Verdict.CUT:
                    self.dropped.set()
                    link.reset()
                    return
                case Verdict.SWALLOW:
                    continue
        writer.close()
        await writer.wait_closed()

    async def _hold_back(self, toward: Toward) -> None:
        while self._mode is Mode.BLACKHOLE and toward in self._held:
            await self._healed.wait()
        if self._mode is Mode.DELAY:
            await asyncio.sleep(self._delay)

    def _judge(self, link: Link, toward: Toward, chunk: bytes) -> Verdict:
        if toward is Toward.SERVER:
            return self._judge_request(link, chunk)
        if link.sprung is None:
            return Verdict.CARRY
        return Verdict.CUT if link.saw(toward, chunk, link.sprung.reply) else Verdict.SWALLOW

    def _judge_request(self, link: Link, chunk: bytes) -> Verdict:
        trap = self._trap
        if trap is None or not link.saw(Toward.SERVER, chunk, trap.marker):
            return Verdict.CARRY
        self._trap = None
        if trap.cut is Cut.BEFORE:
            return Verdict.CUT
        link.sprung = trap
        return Verdict.CARRY
