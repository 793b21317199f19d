"""Nodes and the leases they hold."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.instant import SECOND, Micros
from duetime.model.lease import Beat, Lease, Node, NodeDraft, NodeId
from duetime.stores.sqlite.locks import NodeLocks
from duetime.stores.sqlite.rows import lease_of, node_of, text_of, uuid_of
from duetime.stores.sqlite.session import Row, Session, Transaction

LONG_WAIT = SECOND // 10


def join(transaction: Transaction, draft: NodeDraft, ttl: Micros, locks: NodeLocks) -> NodeId:
    now = transaction.now
    node = NodeId(transaction.value("join", (draft.name, text_of(draft.roles), draft.version, now, now + ttl)))
    # Before anybody can see the row: a node without its lock would look dead.
    transaction.change("note_lock", (node, locks.take(node)))
    return node


def beat(transaction: Transaction, node: NodeId, ttl: Micros) -> Beat:
    alive = transaction.change("beat", (node, transaction.now + ttl)) == 1
    cancels = tuple(uuid_of(row[0]) for row in transaction.all("cancels_of", (node,)))
    return Beat(alive, cancels, transaction.value("peers_of", (node,)))


def leave(transaction: Transaction, node: NodeId) -> None:
    transaction.change("declare_dead", (node,))
    transaction.change("drop_all_leases", (node,))


def suspects(session: Session, me: NodeId, now: Micros, locks: NodeLocks) -> list[NodeId]:
    """Nodes that look dead. Only reads, because this is asked twice a second and nearly always in vain."""
    rows = [row for row in session.all("live_nodes") if row[0] != me]
    return [NodeId(node) for node, lease_until, inode in rows if lease_until <= now or locks.is_free(node, inode)]


def bury(transaction: Transaction, me: NodeId, locks: NodeLocks) -> list[NodeId]:
    # When we had to wait for the lock, so had they who wanted to renew their leases: this time only the certain ones, next time all.
    now = transaction.now if transaction.waited < LONG_WAIT else 0
    gone = suspects(transaction, me, now, locks)
    return [node for node in gone if transaction.change("declare_dead", (node,)) == 1]


def known(session: Session, living: bool) -> list[Node]:
    return [node_of(row) for row in session.all("nodes", (living,))]


def orphans(session: Session, limit: int) -> list[Row]:
    return session.all("orphans", (limit,))


def held(session: Session, node: NodeId) -> list[Row]:
    return session.all("held", (node,))


def take_leases(transaction: Transaction, node: NodeId, names: Sequence[str]) -> list[str]:
    if not transaction.value("is_alive", (node,)):
        return []
    transaction.change_many("take_leases", [(name, node, 1) for name in names])
    held = {name for (name,) in transaction.all("held_leases", (node,))}
    return [name for name in names if name in held]


def drop_leases(transaction: Transaction, node: NodeId, names: Sequence[str]) -> None:
    transaction.change("drop_leases", (node, text_of(list(names))))


def leases(session: Session) -> list[Lease]:
    return [lease_of(row) for row in session.all("leases")]
