"""The connection to the server. Callers share it: their commands are sent without waiting for one another,
and the replies come in the same order. It is opened when first used and replaced when it breaks.

Not the client of redis-py: a call of that costs twice as much, and here many callers share a connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import hiredis

from duetime.clock import noise, pause
from duetime.errors import NotOpen, StoreUnavailable
from duetime.model.instant import Micros
from duetime.stores.redis.address import Host, RedisAddress
from duetime.stores.redis.errors import translate
from duetime.stores.redis.scripts import LIBRARY, TEXT

CALL_TIMEOUT = 5.0  # seconds: a server that answers nothing is noticed after this
CONNECT_TIMEOUT = 3.0
MAX_TRIES = 4
# The server writes to its clients in the reverse order of their first replies. This one is the first.
PING = hiredis.pack_command(("PING",))
Argument = bytes | str | int


class ConnectionLost(Exception):
    """Commands that were sent may have been executed."""


class Wire(asyncio.Protocol):
    """One TCP connection."""

    def __init__(
        self, on_push: Callable[[list[Any]], None] | None, on_lost: Callable[[], None] | None
    ) -> None:
        self._reader = hiredis.Reader()
        # Until when, and for whom: None if no caller needs the reply
        self._waiting: deque[tuple[float, asyncio.Future[Any] | None]] = deque()
        self._on_push = on_push  # of a connection that listens
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.lost = False
        self.ended = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # that of uvloop is no subclass

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not False:
                self._receive(reply)
        except hiredis.ProtocolError:
            self.abort()

    def connection_lost(self, _problem: Exception | None) -> None:
        self.lost = True
        if self._timer is not None:
            self._timer.cancel()
        waiting, self._waiting = self._waiting, deque()
        for _, future in waiting:
            if future is not None and not future.done():
                future.set_exception(ConnectionLost())
        self.ended.set_result(None)
        if self._on_lost is not None:
            self._on_lost()

    def call(self, *command: Argument, publishes: bool = False) -> asyncio.Future[Any]:
        """`publishes`: a worker waits for what this command publishes. It gets that before this process gets
        its reply, and need not wait for a processor until the reply has been read."""
        future = self._loop.create_future()
        if self.lost or self._transport is None:
            future.set_exception(ConnectionLost())
            return future
        until = self._loop.time() + CALL_TIMEOUT
        if publishes:
            self._waiting.append((until, None))
        self._waiting.append((until, future))
        if self._timer is None:
            self._timer = self._loop.call_later(CALL_TIMEOUT, self._check)
        packet = hiredis.pack_command(command)  # type: ignore[arg-type]
        self._transport.write(PING + packet if publishes else packet)
        return future

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _receive(self, reply: Any) -> None:
        if self._on_push is not None and isinstance(reply, list) and reply[:1] == [b"message"]:
            self._on_push(reply)
            return
        if not self._waiting:
            self.abort()
            return
        future = self._waiting.popleft()[1]
        if future is None or future.done():
            return  # no caller needs it, or its caller was cancelled
        if isinstance(reply, hiredis.ReplyError):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    def _check(self) -> None:
        """One timer for all calls: replies come in order, so the first caller waits longest."""
        self._timer = None
        if not self._waiting:
            return
        rest = self._waiting[0][0] - self._loop.time()
        if rest > 0:
            self._timer = self._loop.call_later(rest, self._check)
        else:
            self.abort()


class RedisConnection:
    def __init__(
        self,
        address: RedisAddress,
        on_push: Callable[[list[Any]], None] | None = None,
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        self.address = address
        self._keys = address.keys
        self._on_push = on_push
        self._on_lost = on_lost
        self._hosts = deque(address.hosts)  # the first is tried first
        self._wire: Wire | None = None
        self._lock = asyncio.Lock()
        self._closed = False
        self.connects = 0

    def reopen(self) -> None:
        self._closed = False
        self._lock = asyncio.Lock()

    async def close(self) -> None:
        self._closed = True
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.abort()
            await wire.ended

    async def run(self, verb: str, *arguments: Argument, repeat: bool = True, publishes: bool = False) -> Any:
        """Call a verb of the library. `repeat`: also after a lost reply."""
        command = "FCALL", f"{LIBRARY}_{verb}", 1, self._keys, *arguments
        try:
            return await self.call(*command, repeat=repeat, publishes=publishes)
        except hiredis.ReplyError as problem:
            if "Function not found" not in str(problem):
                raise translate(str(problem), self.address.place) from problem
        await self.command("FUNCTION", "LOAD", "REPLACE", TEXT)
        return await self.command(*command, repeat=repeat, publishes=publishes)

    async def command(self, *command: Argument, repeat: bool = True, publishes: bool = False) -> Any:
        try:
            return await self.call(*command, repeat=repeat, publishes=publishes)
        except hiredis.ReplyError as problem:
            raise translate(str(problem), self.address.place) from problem

    async def time(self) -> Micros:
        """That of the server."""
        seconds, micros = await self.command("TIME")
        return int(seconds) * 1_000_000 + int(micros)

    async def call(self, *command: Argument, repeat: bool = True, publishes: bool = False) -> Any:
        """Raises the server's own error, unless another server is to be asked."""
        problem = "the connection was lost"
        for tries in range(MAX_TRIES):
            wire = self._wire
            if wire is None or wire.lost:
                wire = await self._connected()
            try:
                return await wire.call(*command, publishes=publishes)
            except ConnectionLost:
                if not repeat:
                    break
            except hiredis.ReplyError as error:
                if not self._redirected(str(error), wire):
                    raise
                problem = str(error)
            if tries:
                await pause(0.05 * 2**tries * (0.5 + noise() / 2))
        raise StoreUnavailable(
            f"Redis at {self.address.place} cannot be reached now ({problem}): it is safe to repeat"
        )

    def _redirected(self, error: str, wire: Wire) -> bool:
        """Another server is responsible, and this one has done nothing."""
        match error.split(" "):
            case ["MOVED", _, place]:
                name, _, port = place.rpartition(":")
                host = Host(name or self._hosts[0].name, int(port))
                if host in self._hosts:
                    self._hosts.remove(host)
                self._hosts.appendleft(host)
            case ["READONLY" | "MASTERDOWN", *_] if len(self._hosts) > 1:
                self._hosts.rotate(-1)
            case _:
                return False
        if wire is self._wire:
            self._wire = None
        wire.abort()
        return True

    async def _connected(self) -> Wire:
        async with self._lock:
            if self._wire is not None and not self._wire.lost:
                return self._wire
            if self._closed:
                raise NotOpen("the store is closed")
            problem: Exception | None = None
            for _ in range(len(self._hosts)):
                try:
                    self._wire = await self._connect(self._hosts[0])
                    return self._wire
                except hiredis.ReplyError as error:
                    raise translate(str(error), self.address.place) from error
                except (OSError, TimeoutError, ConnectionLost) as error:
                    problem = error
                    self._hosts.rotate(-1)
            reason = str(problem) or type(problem).__name__
            raise StoreUnavailable(
                f"Redis at {self.address.place} cannot be reached now ({reason}): it is safe to repeat"
            ) from problem

    async def _connect(self, host: Host) -> Wire:
        loop, address = asyncio.get_running_loop(), self.address
        async with asyncio.timeout(CONNECT_TIMEOUT):
            _, wire = await loop.create_connection(
                lambda: Wire(self._on_push, self._on_lost), host.name, host.port, ssl=address.tls_context()
            )
            try:
                if address.password:
                    await wire.call("AUTH", address.user or "default", address.password)
                if address.database:
                    await wire.call("SELECT", address.database)
                if len(self._hosts) > 1 and await self._is_replica(wire):
                    raise ConnectionRefusedError(f"{host} is a replica")
            except BaseException:
                wire.abort()
                raise
        self.connects += 1
        return wire

    async def _is_replica(self, wire: Wire) -> bool:
        """It would answer reads, with what it knew a moment ago. A node of a cluster redirects by itself."""
        try:
            role, info = await wire.call("ROLE"), await wire.call("INFO", "cluster")
        except hiredis.ReplyError:
            return False  # this user may not ask; writes are refused
        return role[0] == b"slave" and b"cluster_enabled:1" not in info
