"""Events on PostgreSQL: ids are given before they are committed, so writers wait for one another."""

from __future__ import annotations

import asyncio

import asyncpg

from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.edges import EVENT_LOCK
from duetime.stores.postgres.lines import SQL

WAITS = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"


async def test_a_quick_writer_waits_for_a_slow_one(store: PostgresStore, postgres_database: str) -> None:
    """Else a reader that has seen the id of the quick one would never look for the smaller one of the slow."""
    slow = await asyncpg.connect(postgres_database)
    async with slow.transaction():
        await slow.fetchval(SQL["add_events"], EVENT_LOCK, [b"slow"])
        quick = asyncio.create_task(store.add_events([b"quick"]))
        async with asyncio.timeout(60):
            while not quick.done() and not await slow.fetchval(WAITS):
                pass
        assert not quick.done()
        assert (await store.list_events(0, 10), await store.last_event()) == ([], 0)
    await quick
    await slow.close()
    found = await store.list_events(0, 10)
    assert [event for _, event in found] == [b"slow", b"quick"]
    assert found[0][0] < found[1][0] == await store.last_event()


async def test_the_last_id_is_known_when_all_events_are_old(store: PostgresStore, postgres_database: str) -> None:
    await store.add_events([b"1", b"2"])
    last = await store.last_event()
    other = await asyncpg.connect(postgres_database)
    await other.execute("UPDATE duetime.events SET at = at - interval '11 minutes'")
    await other.close()
    await store.prune(await store.time())
    assert [number for number, _ in await store.list_events(0, 10)] in ([], [last])
    assert await store.last_event() == last
    await store.add_events([b"3"])
    assert (await store.list_events(last, 10))[0][0] > last
