"""Leases: share the segments among the live planners, and elect a leader; the same for dispatchers.

Every planner computes the same fair shares from the list of live planners, takes the free leases of its
share and drops all others. When a planner joins, the others drop some; when one dies, its leases become free.
Leases only decide which planner tries first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from duetime.errors import LeasesUnavailable, StoreError
from duetime.lease import LeaseHolder, Member
from duetime.model.codec import decode, encode
from duetime.model.events import LeasesBack, LeasesLost
from duetime.model.ids import SEGMENTS
from duetime.model.instant import SECOND, Micros
from duetime.model.job import DEFAULT_TENANT
from duetime.model.lease import (
    LEADER,
    Holding,
    Lease,
    NodeId,
    dispatch_lease,
    fair_share,
    segment_lease,
    share_leases,
)
from duetime.observer import Observers
from duetime.store import Store

PLANNER_ROLE, DISPATCHER_ROLE = "planner", "dispatcher"
LEASES = {PLANNER_ROLE: segment_lease, DISPATCHER_ROLE: dispatch_lease}  # by role
CHECK_INTERVAL = SECOND
CONFIRM_EVERY = 10  # checks; then it is asked whether the leases are still held
DOUBTFUL_CHECKS = 10  # after a call without a reply: it may still be carried out, after later ones
NOTHING: frozenset[str] = frozenset()


HOLDERS = ("leases", DEFAULT_TENANT, "holders")
MAX_TRIES = 5  # nodes that change their leases at the same time: all but one try again
Table = dict[str, Holding]


async def read_leases(store: Store) -> list[Lease]:
    """Those that no living node holds are free."""
    known, _, living = await _read(store)
    return [
        Lease(name, holder, token, living[holder])
        if holder is not None and holder in living
        else Lease(name, None, token, None)
        for name, (holder, token) in sorted(known.items())
    ]


async def _read(store: Store) -> tuple[Table, int, dict[NodeId, Micros]]:
    """The leases, the version of their record, and until when nodes live. The nodes are read last: all
    holders had joined before."""
    record = await store.get_record(*HOLDERS)
    stored = {} if record is None else decode(record.value)
    living = {node.id: node.lease_until for node in await store.nodes(living=True)}
    known = {name: Holding(*held) for name, held in stored.items()}
    return known, 0 if record is None else record.version, living


class StoreLeases:
    """Leases in a record of the store, by name. The heartbeat renews them: they are as valid as the lease of
    the node."""

    def __init__(self, store: Store, node: NodeId, trusted: Callable[[], bool]) -> None:
        self._store = store
        self._node = node
        self._trusted = trusted
        self._held = NOTHING

    @property
    def held(self) -> frozenset[str]:
        return self._held if self._trusted() else NOTHING

    async def renew(self) -> list[Member]:
        return [Member(node.id, node.roles) for node in await self._store.nodes(living=True)]

    async def hold(self, names: Sequence[str]) -> None:
        self._held = self._held & frozenset(names)
        for _ in range(MAX_TRIES):
            known, version, living = await _read(self._store)
            if self._node not in living:
                self._held = NOTHING
                return
            shared = share_leases(known, self._node, names, living)
            if shared == known or await self._store.put_record(*HOLDERS, encode(shared), version):
                self._held = frozenset(name for name in names if shared[name].holder == self._node)
                return

    async def close(self) -> None:
        """They are free when the node leaves."""
        self._held = NOTHING


class LeaseKeeper:
    name = "keeper"

    def __init__(
        self,
        leases: LeaseHolder,
        node: NodeId,
        on_change: Callable[[], None],
        roles: Sequence[str],
        observers: Observers,
    ) -> None:
        self._leases = leases
        self._node = node
        self._roles = [role for role in roles if role in LEASES]
        self._on_change = on_change
        self._observers = observers
        self._checks = 0
        self._doubtful = 0  # checks that confirm the leases, whatever is believed to be held
        self.up = True  # the service that holds the leases answers

    @property
    def leads(self) -> bool:
        return LEADER in self._leases.held

    @property
    def segments(self) -> tuple[int, ...]:
        """Of schedules, to plan."""
        return _segments(self._leases.held, segment_lease)

    @property
    def dispatched(self) -> tuple[int, ...]:
        """Of jobs, to dispatch."""
        return _segments(self._leases.held, dispatch_lease)

    async def run_once(self) -> Micros:
        before = self._leases.held
        try:
            await self._take_share()
        except LeasesUnavailable as problem:
            if self.up:
                self.up = False
                self._observers(LeasesLost(problem))
        else:
            if not self.up:
                self.up = True
                self._observers(LeasesBack())
        if self._leases.held != before:
            self._on_change()
        return CHECK_INTERVAL

    async def close(self) -> None:
        await self._leases.close()

    async def _take_share(self) -> None:
        members = await self._leases.renew()
        wanted = {LEADER} if PLANNER_ROLE in self._roles else set()
        for role in self._roles:
            sharing = [member.node for member in members if role in member.roles]
            wanted |= {LEASES[role](segment) for segment in fair_share(self._node, sharing)}
        self._checks += 1
        if wanted != self._leases.held or self._doubtful or self._checks % CONFIRM_EVERY == 0:
            await self._hold(sorted(wanted))

    async def _hold(self, names: list[str]) -> None:
        try:
            await self._leases.hold(names)
        except (LeasesUnavailable, StoreError):
            self._doubtful = DOUBTFUL_CHECKS
            raise
        self._doubtful = max(0, self._doubtful - 1)


@lru_cache(maxsize=16)
def _segments(held: frozenset[str], lease: Callable[[int], str]) -> tuple[int, ...]:
    return tuple(segment for segment in range(SEGMENTS) if lease(segment) in held)
