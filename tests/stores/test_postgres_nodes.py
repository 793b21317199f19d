"""Nodes whose process is gone, or seems to be: others see it by the lock of its session, long before its
lease ends."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg

from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND
from duetime.model.lease import NodeDraft
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.nodes import LOCK_BASE
from duetime.testing.conformance.drafts import HOUR, joined
from tests.stores.test_postgres_faults import terminate, until


class TestOwnerGone:
    async def test_node_of_a_vanished_process_expires_before_its_lease_ends(
        self, store: PostgresStore
    ) -> None:
        """The server frees the lock of a session that is gone."""
        other = store.clone()
        gone, me = await joined(other), await joined(store)
        await other.close()
        assert await until(lambda: store.expire_nodes(me)) == [gone]

    async def test_remote_node_outlives_the_process_that_joined_for_it(self, store: PostgresStore) -> None:
        other = store.clone()
        remote = await other.join(NodeDraft("far", ("worker",), "", remote=True), HOUR)
        await other.beat(remote, HOUR)
        gone, me = await joined(other), await joined(store)
        await other.close()
        assert await until(lambda: store.expire_nodes(me)) == [gone]
        assert await expired_within(store, me) == []

    async def test_living_nodes_do_not_expire(self, store: PostgresStore) -> None:
        other = store.clone()
        await joined(other)
        me = await joined(store)
        assert await expired_within(store, me) == []
        await other.close()

    async def test_process_that_lost_its_session_takes_the_lock_again(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """Immediately, without waiting for the next heartbeat."""
        other = store.clone()
        await joined(other)
        assert terminate(postgres_database, "heartbeat") == 1
        me = await joined(store)
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'"
        await until(lambda: store._connections.read.value(f"SELECT ({held}) = 2"))
        assert await expired_within(store, me) == []
        await other.close()

    async def test_node_stays_alive_when_its_old_session_ends_late(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """After a lost connection the server may keep the old session, and its lock, longer than the new
        session takes to connect."""
        other = store.clone()
        slow, me = await joined(other), await joined(store)
        old_session = await asyncpg.connect(postgres_database)
        takes_the_lock = asyncio.create_task(
            old_session.execute("SELECT pg_advisory_lock($1)", LOCK_BASE + slow)
        )
        await until(
            lambda: store._connections.read.value(
                "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
            )
        )
        assert terminate(postgres_database, "heartbeat") == 2
        await takes_the_lock
        assert (await other.beat(slow, HOUR)).alive
        await old_session.close()
        assert await expired_within(store, me) == []
        assert (await other.beat(slow, HOUR)).alive
        await other.close()
        assert await until(lambda: store.expire_nodes(me)) == [slow]

    async def test_reconnected_process_gives_others_time_to_reconnect(
        self, store: PostgresStore, postgres_database: str
    ) -> None:
        """A standby takes over. It has run for days and has none of the locks."""
        other = store.clone()
        late, me = await joined(other), await joined(store)
        await store.expire_nodes(me)
        terminate(postgres_database, "sweep")
        await other._connections.close()  # its sessions were lost, too, and it has not reconnected yet
        assert await expired_within(store, me) == []
        await other.open()
        assert (await other.beat(late, HOUR)).alive
        await other.close()


async def expired_within(store: PostgresStore, me: Any, micros: int = SECOND // 2) -> list[Any]:
    """Every node that expires within this time, once the server is old enough for its locks to count."""
    await until(
        lambda: store._connections.read.value(
            "SELECT pg_postmaster_start_time() < clock_timestamp() - interval '5 seconds'"
        )
    )
    found, began = [], monotonic_micros()
    while monotonic_micros() - began < micros:
        found += await store.expire_nodes(me)
    return found
