"""Tenants: each has lanes of its own, and sees its own queues."""

from __future__ import annotations

from duetime.model.limit import Queue, QueueCounts, QueueFilter
from duetime.store import Lane, Store
from duetime.testing.conformance.drafts import (
    HOUR,
    LANE,
    PRIORITY,
    QUEUE,
    TENANT,
    add,
    claim,
    firing,
    job,
    jobs,
    joined,
    limit,
    put,
    request,
    schedule,
    set_limits,
)

ACME = LANE._replace(tenant="acme")
FOR_WORKERS = QueueFilter(for_workers=True)


class TenantConformance:
    async def test_lane_holds_the_jobs_of_one_tenant(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(3, now - HOUR), *jobs(2, now, tenant="acme")])
        assert [row.tenant for row in await claim(store, request(node, ACME))] == ["acme"] * 2
        assert [row.tenant for row in await claim(store, request(node, LANE, room=1))] == [TENANT]

    async def test_lanes_of_tenants_are_claimed_in_the_order_given(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs([*jobs(3, now - HOUR), *jobs(2, now, tenant="acme")])
        claimed = await claim(store, request(node, ACME, LANE, room=4))
        assert [row.tenant for row in claimed] == ["acme", "acme", TENANT, TENANT]

    async def test_jobs_with_a_limit_key_are_claimed_by_tenant(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await set_limits(store, limit(9))
        await store.add_jobs(
            [*jobs(3, now - HOUR, limit_key="a"), *jobs(2, now, tenant="acme", limit_key="b")]
        )
        claimed = await claim(store, request(node, ACME, LANE, room=3))
        assert [row.tenant for row in claimed] == ["acme", "acme", TENANT]
        assert len(await claim(store, request(node, ACME))) == 0
        assert len(await claim(store, request(node, LANE))) == 2

    async def test_next_due_is_that_of_the_tenant(self, store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.add_jobs(
            [
                job(now + HOUR),
                job(now + 2 * HOUR, tenant="acme"),
                job(now + 3 * HOUR, tenant="b", limit_key="k"),
            ]
        )
        lanes = [LANE, ACME, LANE._replace(tenant="b"), LANE._replace(tenant="c")]
        assert [(await store.due_jobs(request(node, lane))).next_at for lane in lanes] == [
            now + HOUR,
            now + 2 * HOUR,
            now + 3 * HOUR,
            None,
        ]

    async def test_workers_learn_the_lanes_that_have_jobs(self, store: Store, second_store: Store) -> None:
        node, now = await joined(store), await store.time()
        await store.set_queue(Queue("set", max_running=3))
        await store.add_jobs(
            [
                *jobs(20, now, queue="a"),
                job(now + HOUR, queue="b", priority=9, tenant="acme"),
                job(now, queue="b", priority=1, limit_key="k"),
                job(now, queue="b", priority=1),
            ]
        )
        expected = [
            Queue("a", lanes=((PRIORITY, TENANT),)),
            Queue("b", lanes=((1, TENANT), (9, "acme"))),
            Queue("set", max_running=3),
        ]
        assert await second_store.queues(wanted=FOR_WORKERS) == expected
        first = FOR_WORKERS._replace(limit=1)
        assert await store.queues(wanted=first) == [expected[0], expected[2]]
        assert await store.queues(wanted=first._replace(after="a")) == expected[1:]
        await claim(store, request(node, Lane("a", PRIORITY, 0)))
        assert await store.queues(wanted=FOR_WORKERS) == expected[1:]

    async def test_queues_are_listed_by_page(self, store: Store) -> None:
        await store.add_jobs([job(0, queue=name) for name in "cadb"])
        pages = [QueueFilter(limit=2), QueueFilter(limit=2, after="b"), QueueFilter(limit=2, after="d")]
        found = [[queue.name for queue in await store.queues(wanted=page)] for page in pages]
        assert found == [["a", "b"], ["c", "d"], []]
        assert await store.queues(wanted=QueueFilter(name="c")) == [Queue("c")]
        assert await store.queues(wanted=QueueFilter(name="x")) == []

    async def test_restricted_queues_are_listed_alone(self, store: Store) -> None:
        await add(store, job(0, queue="plain"))
        await store.set_queue(Queue("paused", paused=True))
        found = await store.queues(wanted=QueueFilter(restricted=True))
        assert found == [Queue("paused", paused=True)]

    async def test_tenant_lists_its_own_queues_and_jobs(self, store: Store) -> None:
        now = await store.time()
        await store.add_jobs([*jobs(3, now), *jobs(2, now - HOUR, tenant="acme"), job(now, queue="hidden")])
        planned = await put(store, schedule(tenant="acme", queue="planned"), now + HOUR)
        await store.fire([firing(planned, now + 2 * HOUR, now + HOUR)])
        found = await store.queues(counted=True, wanted=QueueFilter(tenant="acme"))
        assert {queue.name: queue.counts for queue in found} == {
            "planned": QueueCounts(1, 0, 0),
            QUEUE: QueueCounts(2, 2, 0),
        }
