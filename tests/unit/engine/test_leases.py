"""Which nodes a planner shares its work with: it looks every second, so it asks for no more than it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from duetime.engine.plan.leases import LeaseKeeper, StoreLeases, read_leases
from duetime.errors import StoreUnavailable
from duetime.model.ids import SEGMENTS
from duetime.model.instant import SECOND
from duetime.model.lease import Node, NodeDraft, NodeId, segment_lease
from duetime.observer import Observers
from duetime.stores.memory import MemoryStore

TTL = 15 * SECOND


class Graveyard(MemoryStore):
    """Counts the dead it has to list."""

    def __init__(self) -> None:
        super().__init__(lambda: 0)
        self.listed = 0

    async def nodes(self, living: bool = False, counted: bool = False) -> list[Node]:
        nodes = await super().nodes(living, counted)
        self.listed += sum(node.dead for node in nodes)
        return nodes


async def joined(store: MemoryStore, roles: Sequence[str]) -> NodeId:
    return await store.join(NodeDraft("node", tuple(roles), "1"), TTL)


def keeper_of(store: MemoryStore, node: NodeId) -> LeaseKeeper:
    return LeaseKeeper(StoreLeases(store, node, lambda: True), node, lambda: None, ["planner"], Observers())


async def test_the_dead_have_no_share_and_are_not_listed() -> None:
    store = Graveyard()
    for _ in range(3):
        await store.leave(await joined(store, ["planner"]))
    await joined(store, ["worker"])
    me, other = await joined(store, ["planner"]), await joined(store, ["planner"])
    keepers = [keeper_of(store, node) for node in (me, other)]
    for keeper in keepers:
        await keeper.run_once()
    assert [len(keeper.segments) for keeper in keepers] == [32, 32]
    assert store.listed == 0


class Delayed(MemoryStore):
    """Loses the first request for leases, and carries it out when it is told to."""

    def __init__(self) -> None:
        super().__init__(lambda: 0)
        self.lost: list[tuple[Any, ...]] = []

    async def put_record(self, *arguments: Any, **options: Any) -> int:
        if not self.lost:
            self.lost.append(arguments)
            raise StoreUnavailable("the connection broke")
        return await super().put_record(*arguments, **options)

    async def carry_out(self) -> None:
        await super().put_record(*self.lost[0])


async def test_request_that_arrives_after_later_ones_leaves_no_segment_without_a_planner() -> None:
    store = Delayed()
    me, other = await joined(store, ["planner"]), await joined(store, ["planner"])
    keeper = keeper_of(store, me)
    with pytest.raises(StoreUnavailable):
        await keeper.run_once()  # for half of the segments
    await store.leave(other)
    await keeper.run_once()
    await store.carry_out()
    await keeper.run_once()
    holders = {lease.name: lease.holder for lease in await read_leases(store)}
    assert [holders.get(segment_lease(segment)) for segment in range(SEGMENTS)] == [me] * SEGMENTS
