"""Which nodes a planner shares its work with: it looks every second, so it asks for no more than it needs."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.engine.plan.planner import LeaseKeeper
from duetime.model.instant import SECOND
from duetime.model.lease import Node, NodeDraft, NodeId
from duetime.stores.memory import MemoryStore

TTL = 15 * SECOND


class Graveyard(MemoryStore):
    """Counts the dead it has to list."""

    def __init__(self) -> None:
        super().__init__(lambda: 0)
        self.listed = 0

    async def nodes(self, living: bool = False) -> list[Node]:
        nodes = await super().nodes(living)
        self.listed += sum(node.dead for node in nodes)
        return nodes


async def joined(store: MemoryStore, roles: Sequence[str]) -> NodeId:
    return await store.join(NodeDraft("node", tuple(roles), "1"), TTL)


async def test_the_dead_have_no_share_and_are_not_listed() -> None:
    store = Graveyard()
    for _ in range(3):
        await store.leave(await joined(store, ["planner"]))
    await joined(store, ["worker"])
    me, other = await joined(store, ["planner"]), await joined(store, ["planner"])
    keepers = [LeaseKeeper(store, node, lambda: None) for node in (me, other)]
    for keeper in keepers:
        await keeper.run_once()
    assert [len(keeper.segments) for keeper in keepers] == [32, 32]
    assert store.listed == 0
