"""Nodes and the jobs they run."""

from __future__ import annotations

from typing import Any, Protocol

from duetime.model.instant import SECOND, Micros
from duetime.model.lease import Beat, Node, NodeDraft, NodeId
from duetime.store import OfDeadNodes, OfNode, PastDeadline
from duetime.stores.sql.limits import set_limits
from duetime.stores.sql.rows import node_of, text_of, uuid_of
from duetime.stores.sql.session import Row, SqlSession, SqlTransaction

LONG_WAIT = SECOND // 10


class OwnerLocks(Protocol):
    """Locks that a node holds while its process lives."""

    def take(self, node: NodeId, /) -> int | None:
        """Returns the place of the lock, stored with the node."""
        ...

    def is_free(self, node: NodeId, place: Any, /) -> bool:
        """`place` is what `live_nodes` reads with the node."""
        ...


async def join(transaction: SqlTransaction, draft: NodeDraft, ttl: Micros, locks: OwnerLocks) -> NodeId:
    now = transaction.now
    node = NodeId(
        await transaction.value("join", (draft.name, text_of(draft.roles), draft.version, now, now + ttl))
    )
    # Before others can see the row: a node without its lock would look dead.
    place = None if draft.remote else locks.take(node)
    if place is not None:
        await transaction.change("record_lock_file", (node, place))
    await set_limits(transaction, draft.limits)
    return node


async def beat(transaction: SqlTransaction, node: NodeId, ttl: Micros) -> Beat:
    alive = await transaction.change("beat", (node, transaction.now + ttl)) == 1
    cancels = tuple(uuid_of(row[0]) for row in await transaction.all("cancels_of", (node,)))
    return Beat(alive, cancels, await transaction.value("peers_of", (node,)))


async def leave(transaction: SqlTransaction, node: NodeId) -> None:
    await transaction.change("declare_dead", (node, 1))


async def suspects(
    session: SqlSession, me: NodeId, locks: OwnerLocks, now: Micros | None = None
) -> list[NodeId]:
    """Nodes that look dead. Only reads, because it is asked twice a second and the result is nearly always
    empty."""
    now = await session.time() if now is None else now
    return [
        NodeId(node)
        for node, lease_until, place in await session.all("live_nodes", (me,))
        if lease_until <= now or locks.is_free(node, place)
    ]


async def expire(transaction: SqlTransaction, me: NodeId, locks: OwnerLocks) -> list[NodeId]:
    # If this node waited for the write lock, so did nodes that wanted to renew their leases: this time only
    # those whose process is gone.
    now = transaction.now if transaction.waited < LONG_WAIT else 0
    gone = await suspects(transaction, me, locks, now)
    return [node for node in gone if await transaction.change("declare_dead", (node, 0)) == 1]


async def known(session: SqlSession, living: bool, counted: bool) -> list[Node]:
    return [node_of(row) for row in await session.all("nodes", (living, counted))]


async def running_jobs(
    session: SqlSession, selection: OfNode | OfDeadNodes | PastDeadline, limit: int
) -> list[Row]:
    match selection:
        case OfNode(node):
            return await session.all("jobs_of_node", (node, limit))
        case OfDeadNodes():
            return await session.all("jobs_of_dead_nodes", (limit,))
        case PastDeadline():
            return await session.all("jobs_past_deadline", (await session.time(), limit))
