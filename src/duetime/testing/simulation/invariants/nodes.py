"""Which nodes are alive and hold which leases, and whether every lost lease has a cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duetime.model.instant import SECOND, Micros
from duetime.model.lease import Beat, NodeDraft, NodeId
from duetime.testing.simulation.hosts import Host
from duetime.testing.simulation.invariants.verdict import Invariant, Verdict

AFTERMATH = 2 * SECOND  # so long after a disturbance it still explains a late heartbeat


@dataclass(slots=True)
class Member:
    host: Host | None
    lease_until: Micros
    ttl: Micros
    dead: bool = False
    wronged: bool = False  # declared dead by a fault while it was alive


class NodeInvariants:
    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict
        self._holders: dict[str, NodeId] = {}
        self.members: dict[NodeId, Member] = {}

    # -- changes by the store --------------------------------------------------------------------------------
    def joined(self, node: NodeId, draft: NodeDraft, ttl: Micros, host: Host | None, now: Micros) -> None:
        self._verdict.require(
            node not in self.members, Invariant.LEASES, f"node id {node} was given out twice"
        )
        self.members[node] = Member(host, now + ttl, ttl)
        if host is not None:
            host.node = node

    def beaten(self, node: NodeId, ttl: Micros, beat: Beat, now: Micros) -> None:
        member = self.members[node]
        self._verdict.require(
            beat.alive is not member.dead,
            Invariant.LEASES,
            f"beat of node {node} answered alive={beat.alive}, dead={member.dead}",
        )
        if beat.alive:
            member.lease_until, member.ttl = now + ttl, ttl

    def left(self, node: NodeId, wrongly: bool) -> None:
        member = self.members[node]
        member.wronged = member.wronged or (wrongly and not member.dead)
        member.dead = True
        self._holders = {name: holder for name, holder in self._holders.items() if holder != node}

    def expired(self, nodes: Sequence[NodeId], now: Micros) -> None:
        for node in nodes:
            member = self.members[node]
            self._verdict.require(not member.dead, Invariant.LEASES, f"node {node} was declared dead twice")
            self._verdict.require(
                member.lease_until <= now,
                Invariant.LEASES,
                f"node {node} was declared dead before its lease ended",
            )
            self._verdict.require(
                _explained(member), Invariant.JUSTIFIED_EXPIRY, f"node {node} lost its lease without a fault"
            )
            member.dead = True

    def shared(self, host: Host | None, leases: Mapping[str, tuple[NodeId | None, int]]) -> None:
        """A node wrote down which leases it took or dropped. Its host may have joined again since it sent
        that."""
        for name, (holder, _) in leases.items():
            before = self._holders.get(name)
            free = before is None or before == holder or self._is_free(before, host)
            self._verdict.require(
                free, Invariant.LEASES, f"lease {name} went to node {holder} while node {before} holds it"
            )
            if holder is None or self.members[holder].dead:
                self._holders.pop(name, None)
            else:
                self._holders[name] = holder

    def _is_free(self, node: NodeId, host: Host | None) -> bool:
        member = self.members[node]
        return member.dead or (host is not None and member.host is host)

    # -- queries ---------------------------------------------------------------------------------------------
    def may_hold(self, node: NodeId, now: Micros) -> bool:
        """Whether the store may give this node a job now."""
        member = self.members.get(node)
        return member is not None and not member.dead and member.lease_until > now

    def may_start(self, node: NodeId, now: Micros) -> bool:
        """Whether a node that respects its own lease may start a job now. A node wrongly declared dead cannot
        know it yet."""
        member = self.members[node]
        return member.lease_until > now and (not member.dead or member.wronged)

    def dead(self, node: NodeId) -> bool:
        return self.members[node].dead

    def host_of(self, node: NodeId) -> Host | None:
        return self.members[node].host

    def holder_of(self, name: str) -> NodeId | None:
        return self._holders.get(name)


def _explained(member: Member) -> bool:
    host = member.host
    return host is None or host.gone or host.disturbed_at >= member.lease_until - member.ttl - AFTERMATH
