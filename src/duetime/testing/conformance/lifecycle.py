"""Opening, closing, and the store's clock."""

from __future__ import annotations

from dataclasses import fields

from duetime.clock import wall_micros
from duetime.model.instant import SECOND
from duetime.store import Store
from duetime.testing.conformance.drafts import HOUR, add, job, joined, stored


class LifeConformance:
    async def test_time_is_near_that_of_this_machine(self, store: Store) -> None:
        assert abs(await store.time() - wall_micros()) < 5 * SECOND

    async def test_time_does_not_go_back(self, store: Store) -> None:
        readings = [await store.time() for _ in range(50)]
        assert readings == sorted(readings)

    async def test_plan_for_a_current_schema_has_no_steps(self, store: Store) -> None:
        plan = await store.migrate(dry_run=True)
        assert (plan.steps, plan.old_nodes) == ((), [])

    async def test_migrating_a_current_schema_changes_nothing(self, store: Store) -> None:
        draft = await add(store, job(await store.time()))
        migration = await store.migrate()
        assert migration.before == migration.after
        assert (await stored(store, draft.id)).payload == draft.payload

    async def test_a_second_handle_sees_what_the_first_wrote(self, store: Store, second_store: Store) -> None:
        draft = await add(store, job(await store.time()))
        assert await stored(second_store, draft.id) == await stored(store, draft.id)

    async def test_a_twin_works_on_the_same_data(self, store: Store) -> None:
        twin = store.clone()
        await twin.open()
        node = await joined(twin, HOUR)
        assert (await store.beat(node, HOUR)).alive
        assert (await twin.beat(node, HOUR)).alive
        await twin.close()
        assert node in {known.id for known in await store.nodes()}

    async def test_identity_is_that_of_the_data(self, store: Store, second_store: Store) -> None:
        """Every handle finds the same, also after nodes have worked."""
        found = await store.identity()
        await joined(second_store, HOUR)
        for handle in (store, second_store):
            again = await handle.identity()
            assert (again.data, again.server) == (found.data, found.server)

    async def test_closing_twice_is_fine(self, store: Store, second_store: Store) -> None:
        await second_store.close()
        await second_store.close()
        await add(store, job(await store.time()))

    async def test_every_capability_is_declared(self, store: Store) -> None:
        declared = {
            field.name: getattr(store.capabilities, field.name) for field in fields(store.capabilities)
        }
        assert set(map(type, declared.values())) == {bool}, declared
