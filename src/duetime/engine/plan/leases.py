"""Leases: share the segments among the live planners, and elect a leader.

Every planner computes the same fair shares from the list of live planners, takes the free leases of its share
and drops all others. When a planner joins, the others drop some; when one dies, its leases are free
immediately. Leases only decide which planner tries first."""

from __future__ import annotations

from collections.abc import Callable

from duetime.model.ids import SEGMENTS
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import LEADER, NodeId, fair_share, segment_lease
from duetime.store import Store

PLANNER_ROLE = "planner"
CHECK_INTERVAL = SECOND
CONFIRM_EVERY = 10  # checks; then the store is asked whether the leases are still held


class LeaseKeeper:
    name = "keeper"

    def __init__(self, store: Store, node: NodeId, on_change: Callable[[], None]) -> None:
        self._store = store
        self._node = node
        self._on_change = on_change
        self._held: set[str] = set()
        self._checks = 0
        self.segments: tuple[int, ...] = ()

    @property
    def leads(self) -> bool:
        return LEADER in self._held

    async def run_once(self) -> Micros:
        nodes = await self._store.nodes(living=True)
        planners = [node.id for node in nodes if PLANNER_ROLE in node.roles]
        wanted = {segment_lease(segment) for segment in fair_share(self._node, planners)} | {LEADER}
        if surplus := self._held - wanted:
            self._hold(self._held - surplus)
            await self._store.hold_leases(self._node, sorted(self._held))
        self._checks += 1
        if wanted - self._held or self._checks % CONFIRM_EVERY == 0:
            self._hold(set(await self._store.hold_leases(self._node, sorted(wanted))))
        return CHECK_INTERVAL

    def _hold(self, names: set[str]) -> None:
        self._held = names
        segments = tuple(segment for segment in range(SEGMENTS) if segment_lease(segment) in names)
        if segments != self.segments:
            self.segments = segments
            self._on_change()
