"""The event log on PostgreSQL: ids are given before they are committed, so writers wait for one another."""

from __future__ import annotations

import asyncio

import asyncpg

from duetime.store import EventPage
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.connections import SQL
from duetime.stores.postgres.event_log import EVENT_LOCK

WAITS = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"


async def test_fast_writer_waits_for_a_slow_one(store: PostgresStore, postgres_database: str) -> None:
    """Otherwise a reader that has seen the id of the fast writer would never look for the smaller id of the
    slow one."""
    slow = await asyncpg.connect(postgres_database)
    async with slow.transaction():
        await slow.fetchval(SQL["add_events"], EVENT_LOCK, [b"slow"])
        quick = asyncio.create_task(store.add_events([b"quick"]))
        async with asyncio.timeout(60):
            while not quick.done() and not await slow.fetchval(WAITS):
                pass
        assert not quick.done()
        assert await store.list_events(0, 10) == EventPage([], 0)
    await quick
    await slow.close()
    found, last = await store.list_events(0, 10)
    assert [event for _, event in found] == [b"slow", b"quick"]
    assert found[0][0] < found[1][0] == last


async def test_last_id_is_known_when_all_events_are_old(store: PostgresStore, postgres_database: str) -> None:
    await store.add_events([b"1", b"2"])
    last = (await store.list_events(0, 0)).last_id
    other = await asyncpg.connect(postgres_database)
    await other.execute("UPDATE duetime.events SET at = at - interval '11 minutes'")
    await other.close()
    await store.prune(await store.time())
    page = await store.list_events(0, 10)
    assert [number for number, _ in page.events] in ([], [last])
    assert page.last_id == last
    await store.add_events([b"3"])
    assert (await store.list_events(last, 10)).events[0][0] > last
