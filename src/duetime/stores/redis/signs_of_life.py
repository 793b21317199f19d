"""A channel for each node, to which a connection of its process subscribes: when the process dies, the kernel
closes the socket and the server forgets the subscription. Others need not wait for the end of the lease."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import hiredis

from duetime.clock import monotonic_micros, pause
from duetime.errors import DuetimeError
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import NodeId
from duetime.stores.redis.connection import RedisConnection
from duetime.stores.witness import CHECK_INTERVAL, TIME_TO_RECONNECT, Witness

PING_INTERVAL = 15.0  # seconds: a connection that looks open may be dead
LOOK_INTERVAL = SECOND // 2


class RedisSignsOfLife:
    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection
        self._keys = connection.address.keys
        self._changed = asyncio.Event()
        self._holding_connection = RedisConnection(
            connection.address, on_push=lambda _: None, on_lost=self._lost
        )
        self._nodes: list[NodeId] = []  # of this process
        self._holding: asyncio.Task[None] | None = None
        self._witness = Witness()
        self._connects = 0
        self._look_at: Micros = 0

    # -- the channels of this process
    def take(self, node: NodeId) -> None:
        self._nodes.append(node)
        if self._holding is None:
            self._changed = asyncio.Event()
            self._holding_connection.reopen()
            self._holding = asyncio.create_task(self._hold())
        self._changed.set()

    async def close(self) -> None:
        holding, self._holding = self._holding, None
        self._nodes.clear()
        if holding is not None:
            holding.cancel()
            await asyncio.wait([holding])
            await self._holding_connection.close()

    async def _hold(self) -> None:
        while True:
            self._changed.clear()
            try:
                for node in tuple(self._nodes):
                    await self._holding_connection.command("SUBSCRIBE", self._channel(node))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PING_INTERVAL):
                        await self._changed.wait()
                        continue
                await self._holding_connection.command("PING")
            except DuetimeError:
                await pause(CHECK_INTERVAL)

    def _lost(self) -> None:
        self._changed.set()

    def _channel(self, node: NodeId) -> str:
        return f"{self._keys}alive/{node}"

    # -- those of others
    async def gone(self, me: NodeId) -> list[NodeId]:
        """The nodes whose process is known to be gone."""
        now = monotonic_micros()
        if now < self._look_at:
            return []
        self._look_at = now + LOOK_INTERVAL
        living = [
            NodeId(int(node))
            for node in await self._connection.command("ZRANGE", f"{self._keys}alive", 0, -1)
        ]
        counts = await self._subscribers([me, *living])
        if self._connection.connects != self._connects:
            if self._connects:
                self._look_at = now + TIME_TO_RECONNECT
            self._connects = self._connection.connects
            self._witness.forget()
            return []
        own = "held" if counts[me] else ""
        return [node for node in living if node != me and self._witness.is_gone(node, own, counts[node] > 0)]

    async def _subscribers(self, nodes: Sequence[NodeId]) -> dict[NodeId, int]:
        try:
            found = await self._connection.call("PUBSUB", "NUMSUB", *map(self._channel, nodes))
        except hiredis.ReplyError:
            return dict.fromkeys(nodes, 0)  # this user may not ask: the lease decides
        return dict(zip(nodes, found[1::2], strict=True))
