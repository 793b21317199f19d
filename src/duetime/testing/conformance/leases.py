"""Leases: who tries. Held as long as the holder's node lives."""

from __future__ import annotations

from duetime.engine.plan.leases import read_leases
from duetime.model.lease import NodeId
from duetime.store import Store
from duetime.testing.conformance.drafts import HOUR, drop_leases, joined, lapsed, take_leases


async def holders(store: Store) -> dict[str, NodeId]:
    return {lease.name: lease.holder for lease in await read_leases(store) if lease.holder is not None}


async def token(store: Store, name: str) -> int:
    return next(lease.token for lease in await read_leases(store) if lease.name == name)


class LeaseConformance:
    async def test_a_free_lease_is_taken(self, store: Store) -> None:
        node = await joined(store)
        assert await holders(store) == {}
        assert set(await take_leases(store, node, ["leader", "segment/1"])) == {"leader", "segment/1"}
        assert await holders(store) == {"leader": node, "segment/1": node}

    async def test_taking_nothing(self, store: Store) -> None:
        node = await joined(store)
        assert await take_leases(store, node, []) == []
        await drop_leases(store, node, [])
        assert await holders(store) == {}

    async def test_a_held_lease_is_not_taken(self, store: Store, second_store: Store) -> None:
        """I7."""
        first, second = await joined(store), await joined(second_store)
        await take_leases(store, first, ["a", "b"])
        assert set(await take_leases(second_store, second, ["a", "b", "c"])) == {"c"}
        assert await holders(store) == {"a": first, "b": first, "c": second}

    async def test_the_answer_names_what_was_held_before(self, store: Store) -> None:
        node = await joined(store)
        await take_leases(store, node, ["a", "z"])
        assert set(await take_leases(store, node, ["a", "b"])) == {"a", "b"}
        assert set(await take_leases(store, node, ["z"])) == {"z"}

    async def test_a_lease_of_a_dead_node_is_free(self, store: Store) -> None:
        """A15."""
        gone, me = await joined(store), await joined(store)
        await take_leases(store, gone, ["a"])
        await store.beat(gone, 1)
        await lapsed(store)
        assert await take_leases(store, me, ["a"]) == []
        await store.expire_nodes(me)
        assert await take_leases(store, me, ["a"]) == ["a"]
        assert await holders(store) == {"a": me}

    async def test_leaving_frees_leases_at_once(self, store: Store) -> None:
        gone, me = await joined(store), await joined(store)
        await take_leases(store, gone, ["a", "b"])
        await store.leave(gone)
        assert set(await take_leases(store, me, ["a", "b"])) == {"a", "b"}

    async def test_dropping_frees_a_lease(self, store: Store) -> None:
        first, second = await joined(store), await joined(store)
        await take_leases(store, first, ["a", "b"])
        await drop_leases(store, first, ["a", "unknown"])
        assert set(await take_leases(store, second, ["a", "b"])) == {"a"}

    async def test_node_cannot_drop_the_lease_of_another(self, store: Store) -> None:
        first, second = await joined(store), await joined(store)
        await take_leases(store, first, ["a"])
        await drop_leases(store, second, ["a"])
        assert await holders(store) == {"a": first}

    async def test_the_token_rises_with_each_holder(self, store: Store) -> None:
        tokens = []
        for _ in range(3):
            node = await joined(store)
            await take_leases(store, node, ["a"])
            tokens.append(await token(store, "a"))
            await take_leases(store, node, ["a"])
            assert await token(store, "a") == tokens[-1]
            await store.leave(node)
        assert tokens == sorted(set(tokens))

    async def test_it_ends_with_the_lease_of_its_holder(self, store: Store) -> None:
        node = await joined(store)
        await take_leases(store, node, ["a"])
        await store.beat(node, 2 * HOUR)
        [lease], [found] = await read_leases(store), await store.nodes()
        assert (lease.name, lease.holder, lease.expires_at) == ("a", node, found.lease_until)

    async def test_any_name_will_do(self, store: Store) -> None:
        node, names = await joined(store), [f"segment/{number}" for number in range(64)] + ["it's 🦄"]
        assert sorted(await take_leases(store, node, names)) == sorted(names)
        assert sorted(await holders(store)) == sorted(names)
