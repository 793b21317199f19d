"""The contract of leases, on both implementations: the store, and etcd."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from typing import Protocol

import pytest

from duetime.engine.node.timer import NodeClock
from duetime.engine.plan.leases import StoreLeases, read_leases
from duetime.lease import LeaseHolder, Member
from duetime.leases.etcd import EtcdLeaseHolder, EtcdLeases
from duetime.model.ids import SEGMENTS
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import Lease, NodeDraft, NodeId, dispatch_lease, segment_lease
from duetime.stores.memory import MemoryStore

TTL = 10 * SECOND


class Bench(Protocol):
    """Nodes that share leases, and a clock that only the test moves."""

    now: Micros

    async def join(self, *roles: str) -> LeaseHolder: ...

    async def leave(self, holder: LeaseHolder) -> None: ...

    async def expire(self, holder: LeaseHolder) -> None:
        """Its time is over: others can take its leases."""
        ...

    async def leases(self) -> list[Lease]: ...


class StoreBench:
    def __init__(self) -> None:
        self.now = 0
        self.store = MemoryStore(lambda: self.now)
        self.nodes: dict[LeaseHolder, NodeId] = {}

    async def join(self, *roles: str) -> LeaseHolder:
        node = await self.store.join(NodeDraft("node", roles or ("planner",), "1"), TTL)
        began = self.now
        holder = StoreLeases(self.store, node, lambda: self.now < began + TTL - TTL // 5)
        self.nodes[holder] = node
        return holder

    async def leave(self, holder: LeaseHolder) -> None:
        await holder.close()
        await self.store.leave(self.nodes[holder])

    async def expire(self, holder: LeaseHolder) -> None:
        other = next(node for one, node in self.nodes.items() if one is not holder)
        await self.store.beat(self.nodes[holder], 0)
        await self.store.expire_nodes(other)

    async def leases(self) -> list[Lease]:
        return await read_leases(self.store)


class EtcdBench:
    def __init__(self, table: EtcdLeases) -> None:
        self.now = 0
        self.table = table
        self.clock = NodeClock(monotonic=lambda: self.now)
        table._clock = self.clock
        self.numbers = itertools.count(1)

    async def join(self, *roles: str) -> LeaseHolder:
        return self.table.holder(NodeId(next(self.numbers)), roles or ("planner",), TTL)

    async def leave(self, holder: LeaseHolder) -> None:
        await holder.close()

    async def expire(self, holder: LeaseHolder) -> None:
        assert isinstance(holder, EtcdLeaseHolder)
        await self.table._client.call("lease/revoke", {"ID": holder._lease})

    async def leases(self) -> list[Lease]:
        return await self.table.leases(0)


@pytest.fixture(params=["store", "etcd"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    if request.param == "store":
        yield StoreBench()
        return
    table = EtcdLeases(request.getfixturevalue("etcd_url"), NodeClock())
    yield EtcdBench(table)
    await table.close()


async def taken(holder: LeaseHolder, *names: str) -> set[str]:
    await holder.renew()
    await holder.hold(names)
    return set(holder.held)


async def holders(bench: Bench) -> dict[str, int]:
    return {lease.name: lease.holder for lease in await bench.leases() if lease.holder is not None}


async def test_free_lease_is_taken(bench: Bench) -> None:
    one = await bench.join()
    assert one.held == frozenset()
    assert await taken(one, "leader", "segment/1") == {"leader", "segment/1"}
    assert sorted(await holders(bench)) == ["leader", "segment/1"]


async def test_held_lease_is_not_taken(bench: Bench) -> None:
    one, other = await bench.join(), await bench.join()
    await taken(one, "a", "b")
    assert await taken(other, "a", "b", "c") == {"c"}
    assert await taken(one, "a", "b") == {"a", "b"}


async def test_lease_that_is_not_asked_for_again_is_dropped(bench: Bench) -> None:
    one, other = await bench.join(), await bench.join()
    await taken(one, "a", "b")
    assert await taken(one, "b") == {"b"}
    assert await taken(other, "a", "b") == {"a"}
    assert await taken(one) == set()
    assert await taken(other, "a", "b") == {"a", "b"}


async def test_node_cannot_drop_the_lease_of_another(bench: Bench) -> None:
    one, other = await bench.join(), await bench.join()
    await taken(one, "a")
    await taken(other, "b")
    await taken(other)
    assert len(await holders(bench)) == 1


async def test_living_nodes_and_their_roles_are_known(bench: Bench) -> None:
    one, other = await bench.join("planner"), await bench.join("planner", "dispatcher")
    await one.renew()
    await other.renew()
    members = await one.renew()
    assert sorted(members) == [Member(NodeId(1), ("planner",)), Member(NodeId(2), ("planner", "dispatcher"))]
    await bench.leave(other)
    assert [member.node for member in await one.renew()] == [1]


async def test_leaving_frees_leases_immediately(bench: Bench) -> None:
    one, other = await bench.join(), await bench.join()
    await taken(one, "a", "b")
    await bench.leave(one)
    assert one.held == frozenset()
    assert await taken(other, "a", "b") == {"a", "b"}


async def test_lease_of_a_dead_node_is_free(bench: Bench) -> None:
    one, other = await bench.join(), await bench.join()
    await taken(one, "a")
    await other.renew()
    await bench.expire(one)
    assert await taken(other, "a") == {"a"}
    assert [member.node for member in await other.renew()] == [2]


async def test_node_stops_using_its_leases_before_they_end(bench: Bench) -> None:
    """Its calls may hang and the process may be stopped: the clock alone decides."""
    one = await bench.join()
    await taken(one, "a")
    bench.now = TTL * 4 // 5 - 1
    assert one.held == {"a"}
    bench.now = TTL * 4 // 5
    assert one.held == frozenset()
    assert await holders(bench) == {"a": 1}, "others can take it later"


async def test_token_rises_with_each_holder(bench: Bench) -> None:
    tokens: list[int] = []
    for _ in range(3):
        one = await bench.join()
        await taken(one, "a")
        await taken(one, "a")
        tokens += [lease.token for lease in await bench.leases() if lease.name == "a"]
        await bench.leave(one)
    assert tokens == sorted(set(tokens))


async def test_many_leases_and_any_name(bench: Bench) -> None:
    one = await bench.join()
    names = [lease(number) for lease in (segment_lease, dispatch_lease) for number in range(SEGMENTS)]
    assert await taken(one, *names, "leader", "it's 🦄") == {*names, "leader", "it's 🦄"}
    assert await taken(one, "leader") == {"leader"}
