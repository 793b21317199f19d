"""The lease contract: where the leases of segments and of the leader are held. By default in the store; in a
service of its own for operators who want it.

A lease says which node tries first. Correctness never depends on it: the store compares cursors, versions and
attempt numbers. Verbs raise `LeasesUnavailable` when the service cannot be reached; where leases are held in
the store, `StoreUnavailable`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from duetime.model.instant import Micros
from duetime.model.lease import Lease, NodeId


class Member(NamedTuple):
    """A living node that shares leases with others."""

    node: NodeId
    roles: tuple[str, ...]


class LeaseHolder(Protocol):
    """The leases of one session of a node."""

    @property
    def held(self) -> frozenset[str]:
        """The leases that this node may act on now. It is empty before another node can take the first of
        them, however long a call takes or the process was stopped."""
        ...

    async def renew(self) -> list[Member]:
        """Keep what is held, and return the nodes that share the leases, this one included."""
        ...

    async def hold(self, names: Sequence[str]) -> None:
        """Take those of `names` that are free, and drop every other lease of this node. It stops acting on
        those it drops before others can take them."""
        ...

    async def close(self) -> None:
        """Drop everything: others can take it immediately."""
        ...


class LeaseTable(Protocol):
    """A service that holds leases, other than the store."""

    def holder(self, node: NodeId, roles: Sequence[str], ttl: Micros) -> LeaseHolder: ...

    async def leases(self, now: Micros) -> list[Lease]:
        """Of the leader and the segments of schedules all, of dispatchers those that are held. The token of
        a lease rises with each holder."""
        ...

    async def close(self) -> None:
        """Disconnect. It connects again when it is used."""
        ...
