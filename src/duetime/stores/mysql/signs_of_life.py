"""A lock of the server for each node, held by a session of its process: when the process dies, the kernel
closes the socket and the server frees the lock. Others need not wait for the end of the lease."""

from __future__ import annotations

import asyncio
from typing import Any

from duetime.clock import pause
from duetime.model.lease import NodeId
from duetime.stores.mysql.address import MySqlAddress
from duetime.stores.mysql.connection import connect, say_goodbye
from duetime.stores.mysql.errors import DRIVER_ERRORS
from duetime.stores.mysql.session import query
from duetime.stores.witness import CHECK_INTERVAL, Witness

CALL_TIMEOUT = 3.0
LOCK = "CONCAT('duetime.', MD5(DATABASE()), '.', {})"  # as `live_nodes` has it


class MySqlSignsOfLife:
    def __init__(self, address: MySqlAddress) -> None:
        self._address = address
        self._nodes: list[NodeId] = []  # of this process
        self._holding: asyncio.Task[None] | None = None
        self._witness = Witness()
        self.forget = self._witness.forget

    # -- the locks of this process
    def take(self, node: NodeId) -> None:
        self._nodes.append(node)
        if self._holding is None:
            self._holding = asyncio.create_task(self._hold())

    async def close(self) -> None:
        holding, self._holding = self._holding, None
        self._nodes.clear()
        if holding is not None:
            holding.cancel()
            await asyncio.wait([holding])

    async def _hold(self) -> None:
        connection: Any = None
        held: set[NodeId] = set()
        host = 0
        try:
            while True:
                try:
                    async with asyncio.timeout(CALL_TIMEOUT):
                        if connection is None:
                            connection, host = await connect(self._address, host)
                        held |= await _taken(connection, [node for node in self._nodes if node not in held])
                except DRIVER_ERRORS:
                    if connection is not None:
                        connection.close()
                    connection, held = None, set()
                await pause(CHECK_INTERVAL)
        finally:
            if connection is not None:
                await say_goodbye(connection)

    # -- those of others
    def is_free(self, node: NodeId, sessions: str | None) -> bool:
        """`sessions`: that which holds the lock of the asking node, a slash, and that which holds this one;
        None if the server does not know the first."""
        own, _, holder = (sessions or "").partition("/")
        return self._witness.is_gone(node, own, bool(holder))


async def _taken(connection: Any, nodes: list[NodeId]) -> set[NodeId]:
    """Those of these nodes whose lock is held by this session now. The session of a moment ago may still hold
    one: it is tried again."""
    if not nodes:
        await query(connection, "DO 0")  # fails if the session is gone
        return set()
    locks = ", ".join(f"GET_LOCK({LOCK.format(int(node))}, 0)" for node in nodes)
    [found] = await query(connection, f"SELECT {locks}")
    return {node for node, is_taken in zip(nodes, next(iter(found.rows)), strict=True) if is_taken == 1}
