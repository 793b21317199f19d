"""A task's own writes on SQLite: together with its completion or not at all, and never in everybody's way for long."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from duetime.engine.clock import NodeClock
from duetime.engine.heart import ThreadedHeart
from duetime.errors import InvalidInput, NotOpen, StoreError, StoreUnavailable
from duetime.model.hint import DoneHint, Hint
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, State
from duetime.model.lease import NodeDraft
from duetime.observer import Observers
from duetime.store import Transaction
from duetime.stores.sqlite import SqliteStore, holding, task_connection
from duetime.stores.sqlite.turnstile import turnstile_of
from duetime.testing.conformance.drafts import HOUR, add, claim_one, job, joined, request, retry, started, stored, success
from tests.stores.test_sqlite_processes import PATIENCE, read_line, script

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


async def deposit(transaction: Transaction, amount: int = 1) -> None:
    await transaction.connection.execute("UPDATE accounts SET balance = balance + $1 WHERE name = 'a'", amount)


class TestConnection:
    async def test_rows_by_name_and_by_place(self, store: SqliteStore) -> None:
        transaction = await store.transact()
        rows = await transaction.connection.fetch("SELECT name, balance FROM accounts ORDER BY name")
        assert [(row["name"], row[1], dict(row), tuple(row)) for row in rows][1] == ("b", 0, {"name": "b", "balance": 0}, ("b", 0))
        assert await transaction.connection.fetchval("SELECT name, balance FROM accounts", column=1) == 0
        assert await transaction.connection.fetchval("SELECT name FROM accounts WHERE balance > 5") is None
        await transaction.abandon()

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("SELECT $2, $1, $2", "SELECT ?2, ?1, ?2"),
            ("SELECT ?, ?", "SELECT ?, ?"),
            ("SELECT '$1', \"$1\", [$1], `$1` -- $1\n, $1 /* $1 */", "SELECT '$1', \"$1\", [$1], `$1` -- $1\n, ?1 /* $1 */"),
            ("SELECT 'it''s $1' || $1", "SELECT 'it''s $1' || ?1"),
        ],
    )
    def test_parameters(self, query: str, expected: str) -> None:
        assert task_connection.numbered(query) == expected

    async def test_parameters_of_either_kind(self, store: SqliteStore) -> None:
        transaction = await store.transact()
        assert tuple(await transaction.connection.fetchrow("SELECT $2, $1", 1, 2)) == (2, 1)
        assert tuple(await transaction.connection.fetchrow("SELECT ?, ?", 1, 2)) == (1, 2)
        await transaction.abandon()

    async def test_what_execute_answers(self, store: SqliteStore) -> None:
        transaction = await store.transact()
        execute = transaction.connection.execute
        assert await execute("INSERT INTO accounts VALUES ($1, $2), ($3, $2)", "c", 7, "d") == "INSERT 0 2"
        assert await execute("UPDATE accounts SET balance = 1") == "UPDATE 4"
        assert await execute("-- gone\n DELETE FROM accounts WHERE name = $1", "c") == "DELETE 1"
        assert await execute("CREATE TABLE more (x)") == "CREATE"
        await transaction.abandon()

    async def test_a_part_can_be_undone(self, store: SqliteStore, running: Claimed, path: Path) -> None:
        transaction = await store.transact()
        connection = transaction.connection
        await deposit(transaction)

        async def change_its_mind() -> None:
            async with connection.transaction():
                await deposit(transaction, 10)
                async with connection.transaction():
                    await deposit(transaction, 100)
                assert await connection.fetchval("SELECT balance FROM accounts WHERE name = 'a'") == 111
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await change_its_mind()
        async with connection.transaction():
            await deposit(transaction, 1_000)
        assert await transaction.finish(success(running, await store.time()))
        assert balance(path) == 1_001

    @pytest.mark.parametrize("statement", ["COMMIT", "rollback", " /* now */ End transaction", "-- so\nBEGIN IMMEDIATE", "ROLLBACK;"])
    async def test_the_whole_is_not_the_tasks_to_end(self, store: SqliteStore, running: Claimed, path: Path, statement: str) -> None:
        transaction = await store.transact()
        await deposit(transaction)
        for verb in (transaction.connection.execute, transaction.connection.fetch, transaction.connection.fetchval):
            with pytest.raises(InvalidInput, match="end of the task"):
                await verb(statement)
        with pytest.raises(InvalidInput):
            await transaction.connection.executemany(statement, [()])
        assert await transaction.finish(success(running, await store.time()))
        assert balance(path) == 1

    async def test_an_error_of_the_task_is_its_own(self, store: SqliteStore, running: Claimed, path: Path) -> None:
        """It may catch it and go on, as after any statement that failed."""
        transaction = await store.transact()
        await deposit(transaction)
        with pytest.raises(sqlite3.IntegrityError):
            await transaction.connection.execute("INSERT INTO accounts VALUES ('a', 0)")
        await deposit(transaction)
        assert await transaction.finish(success(running, await store.time()))
        assert balance(path) == 2

    async def test_an_error_that_ended_the_transaction(self, store: SqliteStore, running: Claimed, path: Path) -> None:
        transaction = await store.transact()
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

    async def test_nothing_after_the_end(self, store: SqliteStore, running: Claimed) -> None:
        finished, abandoned = await store.transact(), None
        assert await finished.finish(success(running, await store.time()))
        abandoned = await store.transact()
        await abandoned.abandon()
        for transaction in (finished, abandoned):
            with pytest.raises(StoreError, match="has ended"):
                await deposit(transaction)
            await transaction.abandon()


class TestFinish:
    async def test_a_snooze_takes_its_writes_along(self, store: SqliteStore, running: Claimed, path: Path) -> None:
        transaction = await store.transact()
        await deposit(transaction)
        now = await store.time()
        assert await transaction.finish(retry(running, now + HOUR, now))
        assert ((await stored(store, running.id)).state, balance(path)) == (State.PENDING, 1)

    async def test_whoever_waits_for_the_job_hears(self, store: SqliteStore, running: Claimed) -> None:
        heard: list[Hint] = []
        store.subscribe(heard.append)
        assert await store.await_job(running.id)
        transaction = await store.transact()
        assert await transaction.finish(success(running, await store.time()))
        await asyncio.sleep(0)
        assert heard == [DoneHint(running.id)]

    async def test_a_settlement_written_before_is_no_reason_to_commit(self, store: SqliteStore, running: Claimed, path: Path) -> None:
        """The same decision sent twice is fine for `settle`; the writes of a second run are not."""
        decision = success(running, await store.time())
        assert await store.settle([decision]) == []
        transaction = await store.transact()
        await deposit(transaction)
        assert not await transaction.finish(decision)
        assert balance(path) == 0

    async def test_a_disk_that_is_full(self, store: SqliteStore, running: Claimed, path: Path) -> None:
        transaction = await store.transact()
        await deposit(transaction)
        pages = await transaction.connection.fetchval("PRAGMA page_count")
        await transaction.connection.fetch(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="make room"):
            await transaction.finish(success(running, await store.time(), result=b"x" * 1_000_000))
        assert (balance(path), (await stored(store, running.id)).state) == (0, State.RUNNING)
        with pytest.raises(StoreError):
            await deposit(transaction)


class TestTurns:
    async def test_one_after_the_other(self, store: SqliteStore, path: Path) -> None:
        node = await joined(store)
        await store.add_jobs([job(0) for _ in range(30)])
        held = await store.claim(request(node, room=30))
        order: list[UUID] = []

        async def work(claimed: Claimed) -> None:
            transaction = await store.transact()
            order.append(claimed.id)
            before = await transaction.connection.fetchval("SELECT balance FROM accounts WHERE name = 'a'")
            await transaction.connection.execute("UPDATE accounts SET balance = $1 WHERE name = 'a'", before + 1)
            assert await transaction.finish(success(claimed, await store.time()))

        await asyncio.gather(*map(work, held))
        assert balance(path) == 30
        assert order == [claimed.id for claimed in held]

    async def test_whoever_gives_up_waiting_holds_up_nobody(self, store: SqliteStore, running: Claimed, path: Path) -> None:
        first = await store.transact()
        waiting = [asyncio.ensure_future(store.transact()) for _ in range(3)]
        await first.connection.fetchval("SELECT 1")
        waiting[0].cancel()
        waiting[1].cancel()
        await first.abandon()
        third = await waiting[2]
        await deposit(third)
        assert await third.finish(success(running, await store.time()))
        assert balance(path) == 1

    async def test_whoever_gives_up_as_it_begins(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        """The thread has begun, the caller has gone: it must not be held for its whole time."""
        monkeypatch.setattr(holding, "HOLD_LIMIT", HOUR)
        for _ in range(20):
            waiting = asyncio.ensure_future(store.transact())
            await asyncio.sleep(0)
            await store.queues()
            waiting.cancel()
            await asyncio.wait([waiting])
            if not waiting.cancelled():
                await waiting.result().abandon()
        await asyncio.wait_for(add(store, job(0)), PATIENCE)

    async def test_waiting_has_an_end(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(holding, "QUEUE_LIMIT", -1)
        with pytest.raises(StoreUnavailable, match="repeat later"):
            await store.transact()

    async def test_closing_rolls_back(self, store: SqliteStore, running: Claimed, path: Path) -> None:
        transaction = await store.transact()
        await deposit(transaction)
        waiting = asyncio.ensure_future(store.transact())
        await asyncio.sleep(0)
        await store.close()
        with pytest.raises(StoreUnavailable):
            await waiting
        with pytest.raises((NotOpen, StoreError)):
            await deposit(transaction)
        await transaction.abandon()
        assert balance(path) == 0
        with pytest.raises(NotOpen):
            await store.transact()

    async def test_others_write_between_transactions(self, store: SqliteStore) -> None:
        """Fifty tasks in a row; a heartbeat gets through long before the last."""
        node = await joined(store)
        ended = 0

        async def work() -> None:
            nonlocal ended
            transaction = await store.transact()
            await deposit(transaction)
            await transaction.abandon()
            ended += 1

        tasks = [asyncio.ensure_future(work()) for _ in range(50)]
        await store.beat(node, HOUR)
        assert ended < 25
        await asyncio.gather(*tasks)

    async def test_those_of_this_process_who_wait_go_first(self, store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(holding, "PASS_SECONDS", PATIENCE)
        turnstile = turnstile_of(path)
        turnstile.enter()
        waiting = asyncio.ensure_future(store.transact())
        done, _ = await asyncio.wait([waiting], timeout=0.3)
        assert not done
        turnstile.leave()
        await (await waiting).abandon()


class Fences:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def fenced(self, reason: str) -> None:
        self.reasons.append(reason)

    def cancels(self, job_ids: Sequence[UUID]) -> None:
        """Nobody asks for any."""


class TestTime:
    @pytest.mark.slow
    async def test_the_heart_survives_and_claims_go_on(self, store: SqliteStore, running: Claimed, path: Path) -> None:
        """A lease of four seconds, a transaction that is never ended, and a neighbour eager to bury."""
        fences, heart = Fences(), ThreadedHeart(store, NodeClock(), Observers(()))
        beating = await heart.start(NodeDraft("node", ("worker",), "1"), 4 * SECOND, fences)
        body = """
            me = await joined(store)
            print(me, flush=True)
            while True:
                if dead := await store.bury(me):
                    print(dead, flush=True)
                await asyncio.sleep(0.005)
        """
        with script(path, body) as neighbour:
            read_line(neighbour)
            transaction = await store.transact()
            await deposit(transaction)
            began = await store.time()
            draft = await add(store, job(began))  # waits for the lock like everybody else
            assert await store.time() - began > 4 * SECOND
            assert (await claim_one(store, beating.node)).id == draft.id
            assert fences.reasons == []
            assert [node.dead for node in await store.nodes()] == [False] * 3
        with pytest.raises(StoreError, match="more than 5 s and was rolled back"):
            await deposit(transaction)
        with pytest.raises(StoreError, match="more than 5 s and was rolled back"):
            await transaction.finish(success(running, await store.time()))
        assert balance(path) == 0
        await heart.stop(leave=True)

    async def test_a_statement_without_end(self, store: SqliteStore, running: Claimed, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(holding, "HOLD_LIMIT", SECOND // 5)
        transaction = await store.transact()
        with pytest.raises(StoreError, match="was rolled back"):
            await transaction.connection.fetchval(ENDLESS)
        assert not transaction.connection.is_in_transaction()
        monkeypatch.setattr(holding, "HOLD_LIMIT", HOUR)
        again = await store.transact()
        assert await again.finish(success(running, await store.time()))

    @pytest.mark.parametrize("commit", [True, False])
    async def test_leases_are_not_charged_for_it(
        self, store: SqliteStore, running: Claimed, monkeypatch: pytest.MonkeyPatch, commit: bool
    ) -> None:
        monkeypatch.setattr(holding, "LONG", -1)
        before = {node.id: node.lease_until for node in await store.nodes()}
        transaction = await store.transact()
        await deposit(transaction)
        if commit:
            assert await transaction.finish(success(running, await store.time()))
        else:
            await transaction.abandon()
        after = {node.id: node.lease_until for node in await store.nodes()}
        assert all(after[node] > lease for node, lease in before.items())

    async def test_those_who_waited_for_the_lock_bury_nobody_for_it(self, store: SqliteStore, path: Path) -> None:
        """Another program held the file: the lease ended meanwhile, and its owner, too, waits to renew it."""
        me, other = await joined(store), await joined(store, ttl=SECOND // 2)
        stranger = sqlite3.connect(path, isolation_level=None)
        stranger.execute("BEGIN IMMEDIATE")
        lease = {node.id: node.lease_until for node in await store.nodes()}[other]
        while await store.time() <= lease:
            await asyncio.sleep(0.01)
        burying = asyncio.ensure_future(store.bury(me))
        while not store._writer._entrance._turnstile._waiting:
            await asyncio.sleep(0)
        until = await store.time() + SECOND // 5
        while await store.time() < until:
            await asyncio.sleep(0.01)
        stranger.execute("ROLLBACK")
        stranger.close()
        assert await asyncio.wait_for(burying, PATIENCE) == []
        assert await store.bury(me) == [other]
