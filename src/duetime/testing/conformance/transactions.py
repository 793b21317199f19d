"""transact: a task's own writes and its job's completion, together or not at all. And guests, as far as every
store must know them."""

from __future__ import annotations

import asyncio

import pytest

from duetime.errors import DuetimeError, InvalidInput
from duetime.model.job import Claimed, State
from duetime.model.lease import NodeId
from duetime.store import OfNode, Store, TaskTransaction
from duetime.testing.conformance.drafts import (
    claim_one,
    death,
    job,
    joined,
    loss,
    new_id,
    settle,
    started,
    stored,
    success,
)

# Statements that SQLite and PostgreSQL both take, in the words of asyncpg.
DROP = "DROP TABLE IF EXISTS conformance_effects"
CREATE = "CREATE TABLE conformance_effects (job text NOT NULL, amount integer NOT NULL)"
INSERT = "INSERT INTO conformance_effects (job, amount) VALUES ($1, $2)"
TOTAL = "SELECT coalesce(sum(amount), 0) FROM conformance_effects"


class TaskTransactionConformance:
    async def supported(self, store: Store) -> bool:
        if store.capabilities.transactions:
            return True
        with pytest.raises(DuetimeError):
            await store.begin_transaction()
        return False

    async def prepared(self, store: Store) -> NodeId:
        """A node, and a table for the effects of its tasks. A store may have but one writer: nothing else is
        asked of it meanwhile."""
        node = await joined(store)
        claimed, now = await self.running(store, node), await store.time()
        transaction = await store.begin_transaction()
        await transaction.connection.execute(DROP)
        await transaction.connection.execute(CREATE)
        assert await transaction.finish(success(claimed, now))
        return node

    async def running(self, store: Store, node: NodeId) -> Claimed:
        return await started(store, node, job(await store.time()))

    async def write(self, transaction: TaskTransaction, claimed: Claimed, amount: int = 1) -> None:
        await transaction.connection.execute(INSERT, str(claimed.id), amount)

    async def total(self, store: Store) -> int:
        transaction = await store.begin_transaction()
        try:
            return int(await transaction.connection.fetchval(TOTAL))
        finally:
            await transaction.abandon()

    async def test_finish_commits_both(self, store: Store, second_store: Store) -> None:
        if await self.supported(store):
            node = await self.prepared(store)
            claimed, now = await self.running(store, node), await store.time()
            transaction = await store.begin_transaction()
            await self.write(transaction, claimed, 7)
            decision = success(claimed, now, result=b"[7]")
            assert await transaction.finish(decision)
            assert await self.total(second_store) == 7
            found = await stored(second_store, claimed.id)
            assert (found.state, found.result, found.attempt) == (State.SUCCEEDED, b"[7]", 1)
            assert await settle(store, [decision]) == [], "a repetition was refused"

    async def test_attempt_that_lost_its_job_writes_nothing(self, store: Store) -> None:
        """B3, B4: exactly once rests on this."""
        if await self.supported(store):
            node = await self.prepared(store)
            stale, now = await self.running(store, node), await store.time()
            assert await settle(store, [loss(stale, now)]) == []
            fresh = await claim_one(store, node)
            late = await store.begin_transaction()
            await self.write(late, stale)
            assert not await late.finish(success(stale, now))
            assert await self.total(store) == 0
            assert (await stored(store, fresh.id)).state is State.RUNNING
            transaction = await store.begin_transaction()
            await self.write(transaction, fresh)
            assert await transaction.finish(success(fresh, now))
            assert await self.total(store) == 1

    async def test_abandoned_work_is_gone_and_the_job_still_runs(self, store: Store) -> None:
        if await self.supported(store):
            node = await self.prepared(store)
            claimed, now = await self.running(store, node), await store.time()
            transaction = await store.begin_transaction()
            await self.write(transaction, claimed)
            await transaction.abandon()
            await transaction.abandon()
            assert await self.total(store) == 0
            assert await store.running_jobs(OfNode(node), 1_000) == [claimed]
            assert await settle(store, [death(claimed, now)]) == []

    async def test_a_failing_statement_spoils_only_its_transaction(self, store: Store) -> None:
        if await self.supported(store):
            node = await self.prepared(store)
            claimed, now = await self.running(store, node), await store.time()
            transaction = await store.begin_transaction()
            await self.write(transaction, claimed)
            with pytest.raises(Exception, match="conformance_missing"):
                await transaction.connection.execute("INSERT INTO conformance_missing VALUES (1)")
            await transaction.abandon()
            assert await self.total(store) == 0
            again = await store.begin_transaction()
            await self.write(again, claimed)
            assert await again.finish(success(claimed, now))
            assert await self.total(store) == 1

    async def test_abandon_after_finish_takes_nothing_back(self, store: Store) -> None:
        if await self.supported(store):
            node = await self.prepared(store)
            claimed, now = await self.running(store, node), await store.time()
            transaction = await store.begin_transaction()
            await self.write(transaction, claimed)
            assert await transaction.finish(success(claimed, now))
            await transaction.abandon()
            assert await self.total(store) == 1
            assert (await stored(store, claimed.id)).state is State.SUCCEEDED

    async def test_two_at_once(self, store: Store, second_store: Store) -> None:
        """Of the same attempt one commits; those of different jobs all do."""
        if await self.supported(store):
            node = await self.prepared(store)
            disputed, now = await self.running(store, node), await store.time()
            others = [await self.running(store, node) for _ in range(4)]

            async def work(handle: Store, claimed: Claimed) -> bool:
                transaction = await handle.begin_transaction()
                await self.write(transaction, claimed)
                return await transaction.finish(success(claimed, now))

            pairs = [
                (store, disputed),
                (second_store, disputed),
                *zip([store, second_store] * 2, others, strict=True),
            ]
            answers = await asyncio.gather(*(work(handle, claimed) for handle, claimed in pairs))
            assert (sorted(answers[:2]), answers[2:]) == ([False, True], [True] * 4)
            assert await self.total(store) == 5

    async def test_an_empty_transaction_completes_its_job(self, store: Store) -> None:
        if await self.supported(store):
            node = await joined(store)
            claimed, now = await self.running(store, node), await store.time()
            transaction = await store.begin_transaction()
            assert await transaction.finish(success(claimed, now))
            assert (await stored(store, claimed.id)).state is State.SUCCEEDED

    async def test_what_it_reads_and_how(self, store: Store) -> None:
        """The verbs of asyncpg, with its parameters."""
        if await self.supported(store):
            await self.prepared(store)
            transaction = await store.begin_transaction()
            connection, names = transaction.connection, [str(new_id(0)) for _ in range(3)]
            await connection.executemany(INSERT, [(name, amount) for amount, name in enumerate(names)])
            rows = await connection.fetch(
                "SELECT job, amount FROM conformance_effects WHERE amount >= $1 ORDER BY amount", 1
            )
            assert [(row["job"], row["amount"]) for row in rows] == [(names[1], 1), (names[2], 2)]
            row = await connection.fetchrow(
                "SELECT job, amount FROM conformance_effects WHERE job = $1", names[2]
            )
            assert (row[0], row[1]) == (names[2], 2)
            assert (
                await connection.fetchrow("SELECT job FROM conformance_effects WHERE amount = $1", 9) is None
            )
            assert await connection.fetchval("SELECT count(*) FROM conformance_effects") == 3
            await transaction.abandon()
            assert await self.total(store) == 0


class CallerTransactionConformance:
    async def test_a_connection_that_is_none_is_refused(self, store: Store) -> None:
        for nonsense in (object(), None, "postgresql://example.org"):
            with pytest.raises(InvalidInput) as refused:
                store.within(nonsense)
            assert refused.value.field == "connection"
