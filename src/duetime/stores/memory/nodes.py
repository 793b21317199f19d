"""The table of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from duetime.model.instant import Micros
from duetime.model.lease import Node, NodeDraft, NodeId
from duetime.stores.memory.jobs import MemoryJobs
from duetime.stores.memory.row import Row


@dataclass(slots=True)
class _Member:
    draft: NodeDraft
    started_at: Micros
    lease_until: Micros
    dead: bool = False
    has_left: bool = False


class MemoryNodes:
    def __init__(self, jobs: MemoryJobs) -> None:
        self._jobs = jobs
        self._members: dict[NodeId, _Member] = {}
        self._newest = 0  # the highest number ever given

    def join(self, draft: NodeDraft, ttl: Micros, now: Micros) -> NodeId:
        self._newest += 1
        node = NodeId(self._newest)
        self._members[node] = _Member(draft, now, now + ttl)
        self._jobs.limits.by_target.update((limit.target, limit) for limit in draft.limits)
        return node

    def beat(self, node: NodeId, ttl: Micros, now: Micros) -> bool:
        if not self._alive(node):
            return False
        self._members[node].lease_until = now + ttl
        return True

    def peers(self, node: NodeId) -> int:
        return sum(
            not member.dead and "worker" in member.draft.roles
            for other, member in self._members.items()
            if other != node
        )

    def may_claim(self, node: NodeId, now: Micros) -> bool:
        return self._alive(node) and self._members[node].lease_until > now

    def leave(self, node: NodeId) -> None:
        if self._alive(node):
            self._members[node].dead = self._members[node].has_left = True

    def expire(self, me: NodeId, now: Micros) -> list[NodeId]:
        gone = [
            node
            for node, member in self._members.items()
            if node != me and not member.dead and member.lease_until <= now
        ]
        for node in gone:
            self._members[node].dead = True
        return gone

    def known(self, living: bool, counted: bool = False) -> list[Node]:
        return [
            self._describe(node, member, counted)
            for node, member in self._members.items()
            if not (living and member.dead)
        ]

    def restore(self, node: Node) -> None:
        self._members[node.id] = _Member(
            NodeDraft(node.name, node.roles, node.version),
            node.started_at,
            node.lease_until,
            node.dead,
            node.has_left,
        )
        self._newest = max(self._newest, node.id)

    def remove(self, node: NodeId) -> None:
        del self._members[node]

    def of_dead_nodes(self) -> Iterator[Row]:
        for node, member in self._members.items():
            if member.dead:
                yield from self._jobs.of_node(node)

    def forget(self, before: Micros) -> None:
        for node, member in list(self._members.items()):
            if member.dead and member.lease_until < before and not self._jobs.running_on(node):
                del self._members[node]

    def _describe(self, node: NodeId, member: _Member, counted: bool = False) -> Node:
        draft = member.draft
        return Node(
            node,
            draft.name,
            draft.roles,
            draft.version,
            member.started_at,
            member.lease_until,
            member.dead,
            member.has_left,
            self._jobs.running_on(node) if counted else None,
        )

    def _alive(self, node: NodeId) -> bool:
        return node in self._members and not self._members[node].dead
