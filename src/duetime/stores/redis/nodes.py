"""Nodes."""

from __future__ import annotations

from dataclasses import replace
from struct import Struct

from duetime.model import codec
from duetime.model.instant import Micros
from duetime.model.lease import Beat, Node, NodeDraft, NodeId
from duetime.stores.redis.connection import RedisConnection
from duetime.stores.redis.rows import limit_row, uuid_of
from duetime.stores.redis.signs_of_life import RedisSignsOfLife

_ROW = Struct(">Bqq")  # state, started_at, end of the lease of a dead node; `lua/rows.lua` describes it
_ALIVE, _DEAD, _LEFT = 0, 1, 2


class RedisNodes:
    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection
        self._signs_of_life = RedisSignsOfLife(connection)

    async def close(self) -> None:
        await self._signs_of_life.close()

    async def join(self, draft: NodeDraft, ttl: Micros) -> NodeId:
        limits = [part for limit in draft.limits for part in (limit.target, limit_row(limit))]
        rest = _rest(draft)
        node = NodeId(await self._connection.run("join", ttl, int("worker" in draft.roles), rest, *limits))
        if not draft.remote:
            self._signs_of_life.take(node)
        return node

    async def beat(self, node: NodeId, ttl: Micros) -> Beat:
        alive, peers, cancels = await self._connection.run("beat", node, ttl)
        return Beat(alive == 1, tuple(map(uuid_of, cancels)), peers)

    async def leave(self, node: NodeId) -> None:
        await self._connection.run("end_nodes", "left", node)

    async def known(self, living: bool = False, counted: bool = False) -> list[Node]:
        rows = await self._connection.run("nodes", int(living))
        nodes = sorted((_node_of(*row) for row in rows), key=lambda node: node.id)
        return nodes if counted else [replace(node, running=None) for node in nodes]

    async def expire(self, me: NodeId) -> list[NodeId]:
        gone = await self._signs_of_life.gone(me)
        return [NodeId(int(node)) for node in await self._connection.run("end_nodes", "expired", me, *gone)]


def _node_of(node: bytes, row: bytes, lease_until: bytes | None, running: bytes | None) -> Node:
    state, started_at, _ = _ROW.unpack_from(row)
    name, roles, version = codec.unpack(row[_ROW.size :])
    return Node(
        NodeId(int(node)),
        name,
        tuple(roles),
        version,
        started_at,
        _lease_until(row, lease_until),
        state != _ALIVE,
        state == _LEFT,
        int(running or 0),
    )


def node_row(node: Node) -> bytes:
    state = _ALIVE if not node.dead else _LEFT if node.has_left else _DEAD
    return _ROW.pack(state, node.started_at, node.lease_until if node.dead else 0) + _rest(node)


def _rest(node: Node | NodeDraft) -> bytes:
    """The part of a row that only Python reads."""
    return codec.pack((node.name, node.roles, node.version))


def _lease_until(row: bytes, of_living: bytes | None) -> Micros:
    return _ROW.unpack_from(row)[2] if of_living is None else int(float(of_living))
