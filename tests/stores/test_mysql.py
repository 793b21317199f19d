"""The store for MariaDB: the conformance suite, and what is specific to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, nullcontext
from typing import Any
from uuid import UUID

import pytest
from asyncmy.errors import OperationalError

from duetime.errors import StoreError, StoreUnavailable
from duetime.model.job import State
from duetime.model.lease import NodeId
from duetime.model.settle import Settlement
from duetime.store import Store, TaskTransaction
from duetime.stores.mysql import MySqlStore
from duetime.testing.conformance import StoreConformance
from duetime.testing.conformance.drafts import (
    HOUR,
    claim,
    death,
    job,
    jobs,
    joined,
    request,
    retry,
    settle,
    started,
    stored,
    success,
)
from tests.servers.mariadb import MariaDbEmptying, MariaDbServer

NAME = "duetime_shared"


@pytest.fixture(scope="session")
async def mariadb_schema(mariadb_server: MariaDbServer) -> str:
    url = mariadb_server.create_database(NAME)
    store = MySqlStore.from_url(url)
    await store.migrate()
    await store.close()
    return url


@pytest.fixture(scope="session")
def mariadb_emptying(mariadb_server: MariaDbServer, mariadb_schema: str) -> Iterator[MariaDbEmptying]:
    emptying = MariaDbEmptying(mariadb_server, NAME)
    yield emptying
    emptying.close()


@pytest.fixture
async def store(mariadb_schema: str, mariadb_emptying: MariaDbEmptying) -> AsyncIterator[MySqlStore]:
    mariadb_emptying.empty()
    store = MySqlStore.from_url(mariadb_schema)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def second_store(store: MySqlStore) -> AsyncIterator[Store]:
    opened = store.clone()
    await opened.open()
    yield opened
    await opened.close()


class TestMySql(StoreConformance):
    """Everything the contract says, with the fixtures of this file."""


HOLDER = "SELECT IS_USED_LOCK(CONCAT('duetime.', MD5('duetime_shared'), '.', {}))"


class TestSignsOfLife:
    """A node whose process is gone is known long before its lease ends."""

    async def held(self, server: MariaDbServer, node: NodeId) -> int:
        """By which session its lock is held, once it is."""
        async with asyncio.timeout(30):
            while not (holder := server.execute(HOLDER.format(node))[0][0]):
                await asyncio.sleep(0.02)
        return int(str(holder))

    async def test_process_that_is_gone_is_noticed(
        self, store: MySqlStore, second_store: MySqlStore, mariadb_server: MariaDbServer
    ) -> None:
        me, gone = await joined(store), await joined(second_store)
        for node in (me, gone):
            await self.held(mariadb_server, node)
        assert await store.expire_nodes(me) == []
        await second_store.close()
        async with asyncio.timeout(30):
            while (expired := await store.expire_nodes(me)) == []:
                await asyncio.sleep(0.02)
        assert expired == [gone]

    async def test_session_that_is_lost_is_replaced_before_others_believe_the_node_dead(
        self, store: MySqlStore, second_store: MySqlStore, mariadb_server: MariaDbServer
    ) -> None:
        me, alive = await joined(store), await joined(second_store)
        await self.held(mariadb_server, me)
        session = await self.held(mariadb_server, alive)
        assert await store.expire_nodes(me) == []
        mariadb_server.execute(f"KILL {session}")
        while await self.held(mariadb_server, alive) == session:
            assert await store.expire_nodes(me) == []
        for _ in range(3):
            assert await store.expire_nodes(me) == []
        assert (await second_store.beat(alive, HOUR)).alive


class TestLocks:
    """A statement about some jobs must not look at others: it would wait for their locks, and their
    transactions for its own."""

    async def test_settlements_do_not_wait_for_other_jobs(
        self, store: MySqlStore, locked: Callable[[UUID], None]
    ) -> None:
        node, now = await joined(store), await store.time()
        drafts = jobs(5, now)
        await store.add_jobs(drafts)
        claimed = await claim(store, request(node))
        locked(claimed[2].id)
        decisions = [success(claimed[0], now), death(claimed[1], now), retry(claimed[3], now, now)]
        assert await settle(store, decisions) == []

    async def test_settlement_keeps_what_another_transaction_wrote_before_it(
        self, store: MySqlStore, mariadb_server: MariaDbServer
    ) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        with closing(mariadb_server.connect()) as connection, connection.cursor() as cursor:
            cursor.execute(f"USE {NAME}; START TRANSACTION")
            cursor.nextset()
            cursor.execute("UPDATE duetime_jobs SET progress = '1' WHERE id = %s", (claimed.id.bytes,))
            settling = asyncio.create_task(settle(store, [success(claimed, now)]))
            await until_one_waits(mariadb_server)
            connection.commit()
        assert await settling == []
        assert (await stored(store, claimed.id)).progress == b"1"

    async def test_jobs_that_need_care_do_not_hold_up_the_others(self, store: MySqlStore) -> None:
        """Of a batch, one was settled before and for one a caller waits."""
        node, now = await joined(store), await store.time()
        drafts = jobs(4, now)
        await store.add_jobs(drafts)
        claimed = await claim(store, request(node))
        await store.get_job(drafts[0].tenant, claimed[1].id, announce=True)
        assert await settle(store, [death(claimed[0], now)]) == []
        assert await settle(store, [success(one, now) for one in claimed]) == [claimed[0].id]
        states = [(await stored(store, one.id)).state for one in claimed]
        assert states == [State.DEAD, State.SUCCEEDED, State.SUCCEEDED, State.SUCCEEDED]


async def until_one_waits(server: MariaDbServer) -> None:
    """Until a transaction waits for a lock."""
    waiting = "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
    async with asyncio.timeout(30):
        while not server.execute(waiting):
            await asyncio.sleep(0.02)


class TestTaskTransaction:
    async def test_session_reads_what_is_committed(self, store: MySqlStore) -> None:
        transaction = await store.begin_transaction()
        [_, level] = await transaction.connection.fetchrow(
            "SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')"
        )
        await transaction.abandon()
        assert level == "READ-COMMITTED"

    async def test_deadlock_that_a_task_ignores_ends_its_attempt(self, store: MySqlStore) -> None:
        """The server has rolled back what the task wrote before."""
        node, now = await joined(store), await store.time()
        first, second = [await started(store, node, draft) for draft in jobs(2, now)]
        async with effects(store) as changed:
            victim = await deadlocked(store, success(first, now), nullcontext)
            with pytest.raises(StoreUnavailable, match="deadlock"):
                await victim.connection.execute("UPDATE effects SET amount = 1")
            with pytest.raises(StoreUnavailable, match="deadlock"):
                await victim.finish(success(second, now))
            assert await changed() == 91, "the victim wrote something, or the other transaction did not"
            assert (await stored(store, second.id)).state is State.RUNNING

    async def test_savepoint_of_a_deadlock_raises_the_deadlock(self, store: MySqlStore) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        async with effects(store):
            victim = await deadlocked(
                store, success(claimed, now), lambda connection: connection.transaction()
            )
            await victim.abandon()

    async def test_task_that_ends_its_transaction_is_refused(self, store: MySqlStore) -> None:
        node, now = await joined(store), await store.time()
        claimed = await started(store, node, job(now))
        transaction = await store.begin_transaction()
        await transaction.connection.driver.commit()
        with pytest.raises(StoreError, match="leave COMMIT"):
            await transaction.finish(success(claimed, now))
        assert (await stored(store, claimed.id)).state is State.RUNNING


@pytest.fixture
def locked(mariadb_server: MariaDbServer) -> Iterator[Callable[[UUID], None]]:
    """Locks the row of a job in another transaction until the test ends."""
    with closing(mariadb_server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {NAME}; START TRANSACTION")
        cursor.nextset()

        def lock(job_id: UUID) -> None:
            cursor.execute("SELECT id FROM duetime_jobs WHERE id = %s FOR UPDATE", (job_id.bytes,))
            assert len(cursor.fetchall()) == 1

        yield lock


@asynccontextmanager
async def effects(store: MySqlStore) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    """A table with a hundred rows. Yields what tells how many were changed."""

    async def execute(*statements: str) -> Any:
        transaction = await store.begin_transaction()
        answers = [await transaction.connection.fetchval(statement) for statement in statements]
        await transaction.abandon()
        return answers[0]

    async def changed() -> int:
        return int(await execute("SELECT SUM(amount) FROM effects"))

    await execute(
        "DROP TABLE IF EXISTS effects",
        "CREATE TABLE effects (id INT PRIMARY KEY) AS WITH RECURSIVE numbers (number) AS"
        " (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 100)"
        " SELECT number AS id, 0 AS amount FROM numbers",
    )
    yield changed
    await execute("DROP TABLE effects")


async def deadlocked(
    store: MySqlStore, settlement: Settlement, part: Callable[[Any], AbstractAsyncContextManager[Any]]
) -> TaskTransaction:
    """Two transactions change rows in opposite orders; the server ends the one that has written less. The
    other one finishes with the settlement; returns the victim."""
    change = "UPDATE effects SET amount = 1 WHERE id BETWEEN $1 AND $2"
    winner, victim = await store.begin_transaction(), await store.begin_transaction()
    await winner.connection.execute(change, 1, 90)
    await victim.connection.execute(change, 100, 100)
    waiting = asyncio.create_task(winner.connection.execute(change, 100, 100))
    with pytest.raises(OperationalError, match="Deadlock"):
        async with part(victim.connection):
            await victim.connection.execute(change, 1, 1)
    await waiting
    assert await winner.finish(settlement)
    return victim
