"""Nodes whose process has gone, or seems to have: others see it by a lock of its session, long before its lease ends."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.nodes import LOCK_BASE
from duetime.testing.conformance.drafts import HOUR, joined
from tests.stores.test_postgres_faults import terminate, until


class TestOwnerGone:
    async def test_a_vanished_process_is_buried_before_its_lease_ends(self, store: PostgresStore) -> None:
        """A8: the server drops the lock of a session that has gone."""
        other = store.twin()
        gone, me = await joined(other), await joined(store)
        await other.close()
        assert await until(lambda: store.bury(me)) == [gone]

    async def test_the_living_are_left_alone(self, store: PostgresStore) -> None:
        other = store.twin()
        await joined(other)
        me = await joined(store)
        assert await buried_within(store, me) == []
        await other.close()

    async def test_a_process_that_lost_only_its_session_takes_the_lock_again(self, store: PostgresStore, postgres_database: str) -> None:
        """B12: at once, without waiting for the next beat."""
        other = store.twin()
        await joined(other)
        assert terminate(postgres_database, "heart") == 1
        me = await joined(store)
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'"
        await until(lambda: store._lines.read.value(f"SELECT ({held}) = 2"))
        assert await buried_within(store, me) == []
        await other.close()

    async def test_one_whose_old_session_lingers_is_not_taken_for_gone_when_that_ends(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """B12: after a cut the server may keep the old session, and with it the lock, for longer than the new one took to connect."""
        other = store.twin()
        slow, me = await joined(other), await joined(store)
        old_session = await asyncpg.connect(postgres_database)
        takes_the_lock = asyncio.create_task(old_session.execute("SELECT pg_advisory_lock($1)", LOCK_BASE + slow))
        await until(lambda: store._lines.read.value("SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"))
        assert terminate(postgres_database, "heart") == 2
        await takes_the_lock
        assert (await other.beat(slow, HOUR)).alive
        await old_session.close()
        assert await buried_within(store, me) == []
        assert (await other.beat(slow, HOUR)).alive
        await other.close()
        assert await until(lambda: store.bury(me)) == [slow]

    async def test_whoever_has_just_found_the_server_again_gives_others_time_to(self, store: PostgresStore, postgres_database: str) -> None:
        """C4: a standby takes over. It has run for long, and nobody's lock is there."""
        other = store.twin()
        late, me = await joined(other), await joined(store)
        await store.bury(me)
        terminate(postgres_database, "sweep")
        await other._lines.close()  # its sessions were cut, too, and it is not back yet
        assert await buried_within(store, me) == []
        await other.open()
        assert (await other.beat(late, HOUR)).alive
        await other.close()


async def buried_within(store: PostgresStore, me: Any, micros: int = SECOND // 2) -> list[Any]:
    """Everybody buried by looking again and again for a while, once the server is old enough to be asked about locks."""
    await until(lambda: store._lines.read.value("SELECT pg_postmaster_start_time() < clock_timestamp() - interval '5 seconds'"))
    found, began = [], monotonic_micros()
    while monotonic_micros() - began < micros:
        found += await store.bury(me)
    return found
