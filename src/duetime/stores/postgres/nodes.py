"""Nodes and leases. A node's session holds an advisory lock, so that others see at once when its process has gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from duetime.clock import monotonic_micros
from duetime.errors import DuetimeError
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.model.lease import Beat, Lease, Node, NodeDraft, NodeId
from duetime.stores.postgres.lines import SQL, Lines
from duetime.stores.postgres.rows import claimed_of, lease_of, node_of

LOCK_BASE = 0x6475_6500_0000_0000  # "due", and below it room for the ids of nodes
SURE_AFTER = SECOND * 3 // 20  # a lock must be free twice, this far apart: its owner may just be reconnecting
TIME_TO_RECONNECT = 5 * SECOND


class Nodes:
    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._heart = lines.heart(on_connect=self._take_locks, on_lost=self._reconnect)
        self._lock_base = None if lines.address.pooled else LOCK_BASE
        self._joined: set[NodeId] = set()
        self._free_since: dict[NodeId, Micros] = {}
        self._reconnecting: asyncio.Task[None] | None = None

    # -- life ---------------------------------------------------------------------------------------------------------
    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        row = await self._heart.row(SQL["join"], draft.name, list(draft.roles), draft.version, ttl, self._lock_base)
        self._joined.add(row["id"])
        return NodeId(row["id"])

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        base = self._lock_base if node in self._joined else None
        row = await self._heart.row(SQL["beat"], node, ttl, base)
        return Beat(False, ()) if row is None else Beat(True, tuple(row["cancels"]), row["peers"])

    async def leave(self, node: NodeId) -> None:
        self._joined.discard(node)
        await self._heart.count(SQL["leave"], node)

    async def known(self, living: bool) -> list[Node]:
        return [node_of(row) for row in await self._lines.read.fetch(SQL["nodes"], living)]

    async def close(self) -> None:
        self._joined.clear()
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.gather(self._reconnecting, return_exceptions=True)

    async def _take_locks(self, connection: Any) -> None:
        for node in self._joined:
            await connection.execute(SQL["lock_node"], node, LOCK_BASE)

    def _reconnect(self) -> None:
        """At once, not with the next beat: while nobody holds the lock, others believe that the process is gone."""
        if self._joined and self._lock_base is not None and (self._reconnecting is None or self._reconnecting.done()):
            self._reconnecting = asyncio.get_running_loop().create_task(self._touch())

    async def _touch(self) -> None:
        with contextlib.suppress(DuetimeError):  # then the next beat connects
            await self._heart.value(SQL["time"])

    # -- death --------------------------------------------------------------------------------------------------------
    async def bury(self, me: NodeId) -> list[NodeId]:
        suspects = await self._lines.sweep.fetch(SQL["suspects"], me, LOCK_BASE)
        # A standby that has just become the primary may have run for days and has no locks: whoever came to it first would find all gone.
        free = [] if self._lines.sweep.reconnected_within(TIME_TO_RECONNECT) else [row["id"] for row in suspects if not row["ended"]]
        gone = self._surely_gone(free)
        ended = [row["id"] for row in suspects if row["ended"]]
        if not ended and not gone:
            return []
        return [row["id"] for row in await self._lines.sweep.fetch(SQL["bury"], ended, gone)]

    def _surely_gone(self, free: Sequence[NodeId]) -> list[NodeId]:
        now = monotonic_micros()
        self._free_since = {node: self._free_since.get(node, now) for node in free}
        return [node for node, since in self._free_since.items() if now - since >= SURE_AFTER]

    async def orphans(self, limit: int) -> list[Claimed]:
        return [claimed_of(row) for row in await self._lines.sweep.fetch(SQL["orphans"], limit)]

    async def held(self, node: NodeId) -> list[Claimed]:
        return [claimed_of(row) for row in await self._lines.claim.fetch(SQL["held"], node)]

    # -- leases -------------------------------------------------------------------------------------------------------
    async def take(self, node: NodeId, names: Sequence[str]) -> list[str]:
        held = {row["name"] for row in await self._lines.sweep.fetch(SQL["take_leases"], node, list(names))}
        return [name for name in names if name in held]

    async def drop(self, node: NodeId, names: Sequence[str]) -> None:
        await self._lines.sweep.count(SQL["drop_leases"], node, list(names))

    async def leases(self) -> list[Lease]:
        return [lease_of(row) for row in await self._lines.read.fetch(SQL["leases"])]
