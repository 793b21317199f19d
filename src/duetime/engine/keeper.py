"""The keeper of leases: shares the segments among the planners that live, and competes for leadership.

Every planner computes the same fair share from the list of living planners, takes what is free of its share, and drops what is not its
any more. When a planner joins, the others drop; when one dies, its leases are free at once. Leases only say who tries first.
"""

from __future__ import annotations

from collections.abc import Callable

from duetime.model.ids import SEGMENTS
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import LEADER, NodeId, fair_share, segment_lease
from duetime.store import Store

PLANNER_ROLE = "planner"
TURN = SECOND
CHECK_EVERY = 10  # turns between looks at leases that were thought to be held


class Keeper:
    name = "keeper"

    def __init__(self, store: Store, node: NodeId, on_change: Callable[[], None]) -> None:
        self._store = store
        self._node = node
        self._on_change = on_change
        self._held: set[str] = set()
        self._turns = 0
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
            await self._store.drop_leases(self._node, sorted(surplus))
        self._turns += 1
        if wanted - self._held or self._turns % CHECK_EVERY == 0:
            self._hold(set(await self._store.take_leases(self._node, sorted(wanted))))
        return TURN

    def _hold(self, names: set[str]) -> None:
        self._held = names
        segments = tuple(segment for segment in range(SEGMENTS) if segment_lease(segment) in names)
        if segments != self.segments:
            self.segments = segments
            self._on_change()
