"""Nodes, the leases they hold and the jobs they run."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.instant import SECOND, Micros
from duetime.model.lease import Beat, Lease, Node, NodeDraft, NodeId
from duetime.store import OfDeadNodes, OfNode, PastDeadline
from duetime.stores.sqlite.file_locks import NodeLocks
from duetime.stores.sqlite.limits import set_limits
from duetime.stores.sqlite.rows import lease_of, node_of, text_of, uuid_of
from duetime.stores.sqlite.session import Row, SqliteSession, SqliteTransaction

LONG_WAIT = SECOND // 10


def join(transaction: SqliteTransaction, draft: NodeDraft, ttl: Micros, locks: NodeLocks) -> NodeId:
    now = transaction.now
    node = NodeId(
        transaction.value("join", (draft.name, text_of(draft.roles), draft.version, now, now + ttl))
    )
    # Before others can see the row: a node without its lock would look dead.
    if not draft.remote:
        transaction.change("record_lock_file", (node, locks.take(node)))
    set_limits(transaction, draft.limits)
    return node


def beat(transaction: SqliteTransaction, node: NodeId, ttl: Micros) -> Beat:
    alive = transaction.change("beat", (node, transaction.now + ttl)) == 1
    cancels = tuple(uuid_of(row[0]) for row in transaction.all("cancels_of", (node,)))
    return Beat(alive, cancels, transaction.value("peers_of", (node,)))


def leave(transaction: SqliteTransaction, node: NodeId) -> None:
    transaction.change("declare_dead", (node, 1))
    transaction.change("drop_leases", (node, "[]"))


def suspects(session: SqliteSession, me: NodeId, now: Micros, locks: NodeLocks) -> list[NodeId]:
    """Nodes that look dead. Only reads, because it is asked twice a second and the result is nearly always
    empty."""
    rows = [row for row in session.all("live_nodes") if row[0] != me]
    return [
        NodeId(node) for node, lease_until, inode in rows if lease_until <= now or locks.is_free(node, inode)
    ]


def expire(transaction: SqliteTransaction, me: NodeId, locks: NodeLocks) -> list[NodeId]:
    # If this node waited for the write lock, so did nodes that wanted to renew their leases: this time only
    # those whose process is gone.
    now = transaction.now if transaction.waited < LONG_WAIT else 0
    gone = suspects(transaction, me, now, locks)
    return [node for node in gone if transaction.change("declare_dead", (node, 0)) == 1]


def known(session: SqliteSession, living: bool) -> list[Node]:
    return [node_of(row) for row in session.all("nodes", (living,))]


def running_jobs(
    session: SqliteSession, selection: OfNode | OfDeadNodes | PastDeadline, limit: int, now: Micros
) -> list[Row]:
    match selection:
        case OfNode(node):
            return session.all("jobs_of_node", (node, limit))
        case OfDeadNodes():
            return session.all("jobs_of_dead_nodes", (limit,))
        case PastDeadline():
            return session.all("jobs_past_deadline", (now, limit))


def hold_leases(transaction: SqliteTransaction, node: NodeId, names: Sequence[str]) -> list[str]:
    transaction.change("drop_leases", (node, text_of(list(names))))
    if not transaction.value("is_alive", (node, 0)):
        return []
    transaction.change_many("take_leases", [(name, node, 1) for name in names])
    held = {name for (name,) in transaction.all("held_leases", (node,))}
    return [name for name in names if name in held]


def leases(session: SqliteSession) -> list[Lease]:
    return [lease_of(row) for row in session.all("leases")]
