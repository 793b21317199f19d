"""A task's own writes on SQLite: committed with its settlement or not at all, and never blocking other
writers for long."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from duetime.engine.node.heartbeat import Heartbeat
from duetime.engine.node.loop import LoopThread
from duetime.engine.node.timer import NodeClock
from duetime.errors import InvalidInput, NotOpen, StoreError, StoreUnavailable
from duetime.model.hint import DoneHint, Hint
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, State
from duetime.model.lease import NodeDraft
from duetime.observer import Observers
from duetime.store import TaskTransaction
from duetime.stores.sqlite import SqliteStore, task_connection, task_transaction
from duetime.testing.conformance.drafts import (
    HOUR,
    add,
    announce,
    claim_one,
    job,
    joined,
    request,
    retry,
    settle,
    started,
    stored,
    success,
)
from tests.stores.test_sqlite_processes import TIMEOUT_SECONDS, read_line, script

ENDLESS = "WITH RECURSIVE n (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "duetime.db"


@pytest.fixture
async def store(path: Path, sqlite_template: Path) -> AsyncIterator[SqliteStore]:
    shutil.copyfile(sqlite_template, path)
    opened = SqliteStore(path)
    await opened.open()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER NOT NULL)")
        connection.execute("INSERT INTO accounts VALUES ('a', 0), ('b', 0)")
    connection.close()
    yield opened
    await opened.close()


@pytest.fixture
async def running(store: SqliteStore) -> Claimed:
    return await started(store, await joined(store), job(await store.time()))


def balance(path: Path, name: str = "a") -> int:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT balance FROM accounts WHERE name = ?", (name,)).fetchone()[0]
    connection.close()
    return int(found)


async def deposit(transaction: TaskTransaction, amount: int = 1) -> None:
    await transaction.connection.execute(
        "UPDATE accounts SET balance = balance + $1 WHERE name = 'a'", amount
    )


class TestConnection:
    async def test_rows_are_read_by_name_and_by_position(self, store: SqliteStore) -> None:
        transaction = await store.begin_transaction()
        rows = await transaction.connection.fetch("SELECT name, balance FROM accounts ORDER BY name")
        assert [(row["name"], row[1], dict(row), tuple(row)) for row in rows][1] == (
            "b",
            0,
            {"name": "b", "balance": 0},
            ("b", 0),
        )
        assert await transaction.connection.fetchval("SELECT name, balance FROM accounts", column=1) == 0
        assert await transaction.connection.fetchval("SELECT name FROM accounts WHERE balance > 5") is None
        await transaction.abandon()

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("SELECT $2, $1, $2", "SELECT ?2, ?1, ?2"),
            ("SELECT ?, ?", "SELECT ?, ?"),
            (
                "SELECT '$1', \"$1\", [$1], `$1` -- $1\n, $1 /* $1 */",
                "SELECT '$1', \"$1\", [$1], `$1` -- $1\n, ?1 /* $1 */",
            ),
            ("SELECT 'it''s $1' || $1", "SELECT 'it''s $1' || ?1"),
        ],
    )
    def test_placeholders_are_translated(self, query: str, expected: str) -> None:
        assert task_connection.numbered(query) == expected

    async def test_both_kinds_of_placeholders_work(self, store: SqliteStore) -> None:
        transaction = await store.begin_transaction()
        assert tuple(await transaction.connection.fetchrow("SELECT $2, $1", 1, 2)) == (2, 1)
        assert tuple(await transaction.connection.fetchrow("SELECT ?, ?", 1, 2)) == (1, 2)
        await transaction.abandon()

    async def test_execute_returns_the_command_tag(self, store: SqliteStore) -> None:
        transaction = await store.begin_transaction()
        execute = transaction.connection.execute
        assert await execute("INSERT INTO accounts VALUES ($1, $2), ($3, $2)", "c", 7, "d") == "INSERT 0 2"
        assert await execute("UPDATE accounts SET balance = 1") == "UPDATE 4"
        assert await execute("-- gone\n DELETE FROM accounts WHERE name = $1", "c") == "DELETE 1"
        assert await execute("CREATE TABLE more (x)") == "CREATE"
        await transaction.abandon()

    async def test_savepoint_can_be_rolled_back(
        self, store: SqliteStore, running: Claimed, path: Path
    ) -> None:
        transaction = await store.begin_transaction()
        connection = transaction.connection
        await deposit(transaction)

        async def fail_after_writing() -> None:
            async with connection.transaction():
                await deposit(transaction, 10)
                async with connection.transaction():
                    await deposit(transaction, 100)
                assert await connection.fetchval("SELECT balance FROM accounts WHERE name = 'a'") == 111
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail_after_writing()
        async with connection.transaction():
            await deposit(transaction, 1_000)
        assert await transaction.finish(success(running, await store.time()))
        assert balance(path) == 1_001

    @pytest.mark.parametrize(
        "statement",
        ["COMMIT", "rollback", " /* now */ End transaction", "-- so\nBEGIN IMMEDIATE", "ROLLBACK;"],
    )
    async def test_task_cannot_end_the_transaction(
        self, store: SqliteStore, running: Claimed, path: Path, statement: str
    ) -> None:
        transaction = await store.begin_transaction()
        await deposit(transaction)
        for verb in (
            transaction.connection.execute,
            transaction.connection.fetch,
            transaction.connection.fetchval,
        ):
            with pytest.raises(InvalidInput, match="end of the task"):
                await verb(statement)
        with pytest.raises(InvalidInput):
            await transaction.connection.executemany(statement, [()])
        assert await transaction.finish(success(running, await store.time()))
        assert balance(path) == 1

    async def test_error_of_a_statement_leaves_the_transaction_usable(
        self, store: SqliteStore, running: Claimed, path: Path
    ) -> None:
        """The task may catch it and go on."""
        transaction = await store.begin_transaction()
        await deposit(transaction)
        with pytest.raises(sqlite3.IntegrityError):
            await transaction.connection.execute("INSERT INTO accounts VALUES ('a', 0)")
        await deposit(transaction)
        assert await transaction.finish(success(running, await store.time()))
        assert balance(path) == 2

    async def test_error_that_ends_the_transaction_is_explained(
        self, store: SqliteStore, running: Claimed, path: Path
    ) -> None:
        transaction = await store.begin_transaction()
        await deposit(transaction)
        with pytest.raises(sqlite3.IntegrityError):
            await transaction.connection.execute("INSERT OR ROLLBACK INTO accounts VALUES ('a', 0)")
        assert not transaction.connection.is_in_transaction()
        for use in (deposit(transaction), transaction.finish(success(running, await store.time()))):
            with pytest.raises(StoreError, match="rolled everything back"):
                await use
        await transaction.abandon()
        assert balance(path) == 0
        assert (await stored(store, running.id)).state is State.RUNNING

    async def test_ended_transaction_cannot_be_used(self, store: SqliteStore, running: Claimed) -> None:
        finished, abandoned = await store.begin_transaction(), None
        assert await finished.finish(success(running, await store.time()))
        abandoned = await store.begin_transaction()
        await abandoned.abandon()
        for transaction in (finished, abandoned):
            with pytest.raises(StoreError, match="has ended"):
                await deposit(transaction)
            await transaction.abandon()


class TestFinish:
    async def test_snooze_commits_the_writes(self, store: SqliteStore, running: Claimed, path: Path) -> None:
        transaction = await store.begin_transaction()
        await deposit(transaction)
        now = await store.time()
        assert await transaction.finish(retry(running, now + HOUR, now))
        assert ((await stored(store, running.id)).state, balance(path)) == (State.PENDING, 1)

    async def test_awaited_job_is_announced(self, store: SqliteStore, running: Claimed) -> None:
        heard: list[Hint] = []
        store.subscribe(heard.append)
        assert await announce(store, running.id)
        transaction = await store.begin_transaction()
        assert await transaction.finish(success(running, await store.time()))
        await asyncio.sleep(0)
        assert heard == [DoneHint(running.id)]

    async def test_repeated_settlement_does_not_commit(
        self, store: SqliteStore, running: Claimed, path: Path
    ) -> None:
        """`settle` accepts the same decision twice; the writes of a second run must not be committed."""
        decision = success(running, await store.time())
        assert await settle(store, [decision]) == []
        transaction = await store.begin_transaction()
        await deposit(transaction)
        assert not await transaction.finish(decision)
        assert balance(path) == 0

    async def test_full_disk_rolls_back(self, store: SqliteStore, running: Claimed, path: Path) -> None:
        transaction = await store.begin_transaction()
        await deposit(transaction)
        pages = await transaction.connection.fetchval("PRAGMA page_count")
        await transaction.connection.fetch(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="make room"):
            await transaction.finish(success(running, await store.time(), result=b"x" * 1_000_000))
        assert (balance(path), (await stored(store, running.id)).state) == (0, State.RUNNING)
        with pytest.raises(StoreError):
            await deposit(transaction)


class TestQueue:
    async def test_transactions_run_one_after_the_other(self, store: SqliteStore, path: Path) -> None:
        node = await joined(store)
        await store.add_jobs([job(0) for _ in range(30)])
        held = (await store.claim(request(node, room=30))).jobs
        order: list[UUID] = []

        async def work(claimed: Claimed) -> None:
            transaction = await store.begin_transaction()
            order.append(claimed.id)
            before = await transaction.connection.fetchval("SELECT balance FROM accounts WHERE name = 'a'")
            await transaction.connection.execute(
                "UPDATE accounts SET balance = $1 WHERE name = 'a'", before + 1
            )
            assert await transaction.finish(success(claimed, await store.time()))

        await asyncio.gather(*map(work, held))
        assert balance(path) == 30
        assert order == [claimed.id for claimed in held]

    async def test_cancelled_waiters_do_not_block_the_next(
        self, store: SqliteStore, running: Claimed, path: Path
    ) -> None:
        first = await store.begin_transaction()
        waiting = [asyncio.ensure_future(store.begin_transaction()) for _ in range(3)]
        await first.connection.fetchval("SELECT 1")
        waiting[0].cancel()
        waiting[1].cancel()
        await first.abandon()
        third = await waiting[2]
        await deposit(third)
        assert await third.finish(success(running, await store.time()))
        assert balance(path) == 1

    async def test_transaction_of_a_caller_that_gave_up_is_rolled_back(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The thread has begun and the caller is gone: the lock must not be held until the timeout."""
        monkeypatch.setattr(task_transaction, "OPEN_TIMEOUT", HOUR)
        for _ in range(20):
            waiting = asyncio.ensure_future(store.begin_transaction())
            await asyncio.sleep(0)
            await store.queues()
            waiting.cancel()
            await asyncio.wait([waiting])
            if not waiting.cancelled():
                await waiting.result().abandon()
        await asyncio.wait_for(add(store, job(0)), TIMEOUT_SECONDS)

    async def test_waiting_for_a_transaction_times_out(
        self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(task_transaction, "QUEUE_TIMEOUT", -1)
        with pytest.raises(StoreUnavailable, match="repeat later"):
            await store.begin_transaction()

    async def test_closing_the_store_rolls_back(
        self, store: SqliteStore, running: Claimed, path: Path
    ) -> None:
        transaction = await store.begin_transaction()
        await deposit(transaction)
        waiting = asyncio.ensure_future(store.begin_transaction())
        await asyncio.sleep(0)
        await store.close()
        with pytest.raises(StoreUnavailable):
            await waiting
        with pytest.raises((NotOpen, StoreError)):
            await deposit(transaction)
        await transaction.abandon()
        assert balance(path) == 0
        with pytest.raises(NotOpen):
            await store.begin_transaction()

    async def test_other_verbs_are_written_between_transactions(self, store: SqliteStore) -> None:
        """Fifty tasks in a row; a heartbeat is written long before the last."""
        node = await joined(store)
        ended = 0

        async def work() -> None:
            nonlocal ended
            transaction = await store.begin_transaction()
            await deposit(transaction)
            await transaction.abandon()
            ended += 1

        tasks = [asyncio.ensure_future(work()) for _ in range(50)]
        await store.beat(node, HOUR)
        assert ended < 25
        await asyncio.gather(*tasks)


class Fences:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def fenced(self, reason: str) -> None:
        self.reasons.append(reason)

    def cancels(self, job_ids: Sequence[UUID]) -> None:
        """None comes in these tests."""


class TestTime:
    @pytest.mark.slow
    async def test_heartbeat_survives_a_transaction_that_never_ends(
        self, store: SqliteStore, running: Claimed, path: Path
    ) -> None:
        """A lease of four seconds, a transaction that never ends, and another node that expires nodes all the
        time."""
        fences, heartbeat = Fences(), Heartbeat(store, NodeClock(), Observers(()), LoopThread("heartbeat"))
        await heartbeat.start(NodeDraft("node", ("worker",), "1"), 4 * SECOND, fences)
        body = """
            me = await joined(store)
            print(me, flush=True)
            while True:
                if dead := await store.expire_nodes(me):
                    print(dead, flush=True)
                await asyncio.sleep(0.005)
        """
        with script(path, body) as neighbour:
            read_line(neighbour)
            transaction = await store.begin_transaction()
            await deposit(transaction)
            began = await store.time()
            draft = await add(store, job(began))  # waits for the lock
            assert await store.time() - began > 4 * SECOND
            assert (await claim_one(store, heartbeat.node)).id == draft.id
            assert fences.reasons == []
            assert [node.dead for node in await store.nodes()] == [False] * 3
        with pytest.raises(StoreError, match="more than 5 s and was rolled back"):
            await deposit(transaction)
        with pytest.raises(StoreError, match="more than 5 s and was rolled back"):
            await transaction.finish(success(running, await store.time()))
        assert balance(path) == 0
        await heartbeat.stop(leave=True)

    async def test_endless_statement_is_interrupted(
        self, store: SqliteStore, running: Claimed, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(task_transaction, "OPEN_TIMEOUT", SECOND // 5)
        transaction = await store.begin_transaction()
        with pytest.raises(StoreError, match="was rolled back"):
            await transaction.connection.fetchval(ENDLESS)
        assert not transaction.connection.is_in_transaction()
        monkeypatch.setattr(task_transaction, "OPEN_TIMEOUT", HOUR)
        again = await store.begin_transaction()
        assert await again.finish(success(running, await store.time()))

    @pytest.mark.parametrize("commit", [True, False])
    async def test_leases_are_extended_by_the_time_of_a_transaction(
        self, store: SqliteStore, running: Claimed, monkeypatch: pytest.MonkeyPatch, commit: bool
    ) -> None:
        monkeypatch.setattr(task_transaction, "LONG", -1)
        before = {node.id: node.lease_until for node in await store.nodes()}
        transaction = await store.begin_transaction()
        await deposit(transaction)
        if commit:
            assert await transaction.finish(success(running, await store.time()))
        else:
            await transaction.abandon()
        after = {node.id: node.lease_until for node in await store.nodes()}
        assert all(after[node] > lease for node, lease in before.items())

    async def test_node_that_waited_for_the_lock_expires_no_leases(
        self, store: SqliteStore, path: Path
    ) -> None:
        """Another program held the lock: the lease ended meanwhile, and its owner also waits to renew it."""
        me, other = await joined(store), await joined(store, ttl=SECOND // 2)
        other_program = sqlite3.connect(path, isolation_level=None)
        other_program.execute("BEGIN IMMEDIATE")
        lease = {node.id: node.lease_until for node in await store.nodes()}[other]
        while await store.time() <= lease:
            await asyncio.sleep(0.01)
        expiring = asyncio.ensure_future(store.expire_nodes(me))
        while not store._writer.lock._queue.at_head:
            await asyncio.sleep(0)
        until = await store.time() + SECOND // 5
        while await store.time() < until:
            await asyncio.sleep(0.01)
        other_program.execute("ROLLBACK")
        other_program.close()
        assert await asyncio.wait_for(expiring, TIMEOUT_SECONDS) == []
        assert await store.expire_nodes(me) == [other]
