"""Nodes and leases. A node's session holds an advisory lock, so that others see immediately when its process
is gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

from duetime.clock import monotonic_micros
from duetime.errors import DuetimeError
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.model.lease import Beat, Node, NodeDraft, NodeId
from duetime.store import OfDeadNodes, OfNode, PastDeadline
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.postgres.rows import claimed_of, node_of

LOCK_BASE = 0x6475_6500_0000_0000  # "due", and below it space for the ids of nodes
GONE_AFTER = SECOND * 3 // 20  # a lock must be free twice, this far apart: its owner may be reconnecting
TIME_TO_RECONNECT = 5 * SECOND


class PostgresNodes:
    def __init__(self, connections: PostgresConnections) -> None:
        self._connections = connections
        self._heartbeat = connections.heartbeat(on_connect=self._take_locks, on_lost=self._reconnect)
        self._lock_base = None if connections.address.pooled else LOCK_BASE
        self._joined: set[NodeId] = set()
        self._free_since: dict[NodeId, Micros] = {}
        self._reconnecting: asyncio.Task[None] | None = None

    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        lock_base = None if draft.remote else self._lock_base
        limits = [(limit.target, limit.max_running, *(limit.rate or (None, None))) for limit in draft.limits]

        async def work(connection: Any, _is_retry: bool) -> NodeId:
            if limits:
                await connection.execute(SQL["set_limits"], *zip(*limits, strict=True))
            row = await connection.fetchrow(
                SQL["join"], draft.name, list(draft.roles), draft.version, ttl, lock_base
            )
            return NodeId(row["id"])

        node = await self._heartbeat.run(work, atomic=True)
        if not draft.remote:
            self._joined.add(node)
        return node

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        base = self._lock_base if node in self._joined else None
        row = await self._heartbeat.row(SQL["beat"], node, ttl, base)
        return Beat(False, ()) if row is None else Beat(True, tuple(row["cancels"]), row["peers"])

    async def leave(self, node: NodeId) -> None:
        self._joined.discard(node)
        await self._heartbeat.count(SQL["leave"], node)

    async def known(self, living: bool = False, counted: bool = False) -> list[Node]:
        return [node_of(row) for row in await self._connections.read.fetch(SQL["nodes"], living, counted)]

    async def close(self) -> None:
        self._joined.clear()
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.gather(self._reconnecting, return_exceptions=True)

    async def _take_locks(self, connection: Any) -> None:
        for node in self._joined:
            await connection.execute(SQL["lock_node"], node, LOCK_BASE)

    def _reconnect(self) -> None:
        """Immediately, not with the next heartbeat: while the lock is free, others believe that the process
        is gone."""
        if (
            self._joined
            and self._lock_base is not None
            and (self._reconnecting is None or self._reconnecting.done())
        ):
            self._reconnecting = asyncio.get_running_loop().create_task(self._use_connection())

    async def _use_connection(self) -> None:
        with contextlib.suppress(DuetimeError):  # then the next heartbeat connects
            await self._heartbeat.value(SQL["time"])

    async def expire(self, me: NodeId) -> list[NodeId]:
        suspects = await self._connections.sweep.fetch(SQL["suspects"], me, LOCK_BASE)
        # A standby that has just become the primary has no locks: the first session there would find every
        # process gone.
        recent = self._connections.sweep.reconnected_within(TIME_TO_RECONNECT)
        gone = self._surely_gone([] if recent else [row["id"] for row in suspects if not row["ended"]])
        ended = [row["id"] for row in suspects if row["ended"]]
        if not ended and not gone:
            return []
        return [row["id"] for row in await self._connections.sweep.fetch(SQL["expire_nodes"], ended, gone)]

    def _surely_gone(self, free: Sequence[NodeId]) -> list[NodeId]:
        now = monotonic_micros()
        self._free_since = {node: self._free_since.get(node, now) for node in free}
        return [node for node, since in self._free_since.items() if now - since >= GONE_AFTER]

    async def running_jobs(self, selection: OfNode | OfDeadNodes | PastDeadline, limit: int) -> list[Claimed]:
        match selection:
            case OfNode(node):
                rows = await self._connections.claim.fetch(SQL["jobs_of_node"], node, limit)
            case OfDeadNodes():
                rows = await self._connections.sweep.fetch(SQL["jobs_of_dead_nodes"], limit)
            case _:
                rows = await self._connections.sweep.fetch(SQL["jobs_past_deadline"], limit)
        return [claimed_of(row) for row in rows]
