"""A fleet of two versions (J1, J4): nodes of the version before go on claiming and settling while the schema is migrated under them."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from duetime.clock import monotonic_micros, wall_micros
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import NodeId
from duetime.stores.postgres import PostgresStore, upkeep
from duetime.stores.postgres.lines import SQL
from duetime.testing.conformance.drafts import HOUR, PRIORITY, QUEUE, TARGET, TENANT, bound, jobs, joined, request

BEFORE = 3  # the schema the statements below were written for; 4 builds an index on live jobs, 5 brings another `claim_in_turns`
LIVE = 200_000
TOGETHER = 50
# A node's own statements give up on a lock after so long: what runs would notice.
LONGEST_STALL = 4 * SECOND  # less than the time after which whoever waits gives up
# What the version before asks where gates play a part: two arguments fewer than this one.
CLAIM_IN_TURNS = f"SELECT * FROM duetime.claim_in_turns({', '.join(f'${number}' for number in range(1, 22))})"
FILL = f"""
INSERT INTO duetime.jobs (id, tenant, fire_time, due_at, queue, priority, target, payload)
SELECT gen_random_uuid(), '{TENANT}', now(), now() - n * interval '1 millisecond', '{QUEUE}', {PRIORITY}, '{TARGET}', '{{}}'
FROM generate_series(1, {LIVE}) AS n
"""


@pytest.fixture
async def old_schema(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    store = PostgresStore.from_url(postgres_url)
    with monkeypatch.context() as past:
        past.setattr(upkeep, "MIGRATIONS", upkeep.MIGRATIONS[:BEFORE])
        await store.migrate()
    await store.close()
    return postgres_url


class OldWorker:
    """The bare loop of a worker: it claims and settles by statements that schema 3 knows, and notes how long each round takes."""

    def __init__(self, url: str) -> None:
        self._store = PostgresStore.from_url(url)
        self._ended = False
        self.rounds: list[Micros] = []
        self.settled = 0

    async def run(self) -> None:
        node = await joined(self._store)
        while not self._ended:
            began = monotonic_micros()
            await self._round(node)
            self.rounds.append(monotonic_micros() - began)
        await self._store.close()

    async def made(self, rounds: int) -> None:
        """Until it has made so many more."""
        enough = len(self.rounds) + rounds
        async with asyncio.timeout(60):
            while len(self.rounds) < enough:
                await asyncio.sleep(0.01)

    def end(self) -> None:
        self._ended = True

    async def _round(self, node: NodeId) -> None:
        lines, now = self._store._lines, wall_micros()
        claimed = await lines.claim.fetch(SQL["claim"], TOGETHER, node, [QUEUE], [PRIORITY], [0], 0, [TARGET])
        ids, times = [row["id"] for row in claimed], [now] * len(claimed)
        self.settled += await lines.settle.count(SQL["settle_successes"], ids, 1, times, times, (), b"1")


@pytest.mark.slow
async def test_migrating_holds_up_nobody_who_works(old_schema: str) -> None:
    """J1: with many live jobs, and no claim or settlement waits until it would give up."""
    with psycopg.connect(old_schema, autocommit=True) as connection:
        connection.execute(FILL)
    worker, store = OldWorker(old_schema), PostgresStore.from_url(old_schema)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await worker.made(50)
        migration = await store.migrate()
        await worker.made(50)
        worker.end()
    await store.close()
    assert (migration.before, migration.after) == (BEFORE, len(upkeep.MIGRATIONS))
    assert worker.settled == TOGETHER * len(worker.rounds), "every round found jobs, and none was refused"
    assert max(worker.rounds) < LONGEST_STALL


@pytest.mark.slow
async def test_a_transaction_that_somebody_holds_open_holds_up_the_migration_alone(old_schema: str) -> None:
    """A change that waits for a table has everybody wait behind it, so it waits briefly, and again."""
    with psycopg.connect(old_schema, autocommit=True) as connection:
        connection.execute(FILL.replace(str(LIVE), "20000"))
    worker, store = OldWorker(old_schema), PostgresStore.from_url(old_schema)
    async with await psycopg.AsyncConnection.connect(old_schema) as somebody, asyncio.TaskGroup() as group:
        await somebody.execute(FILL.replace(str(LIVE), "1"))
        group.create_task(worker.run())
        await worker.made(5)
        migrating = group.create_task(store.migrate())
        began = monotonic_micros()
        while monotonic_micros() - began < 6 * SECOND:
            await worker.made(1)
        assert not migrating.done()
        await somebody.commit()
        await migrating
        worker.end()
    await store.close()
    assert max(worker.rounds) < LONGEST_STALL


class TestTwoVersions:
    """A limit of one holds between nodes of both versions, though the new ones claim ahead."""

    async def test_an_old_node_finds_a_gate_full_that_a_new_one_holds(self, store: PostgresStore) -> None:
        old, new = await joined(store), await joined(store)
        await store.add_jobs(jobs(6, await store.time() - HOUR, gate="a"))
        assert len(await store.claim(request(new, bounds=(bound(most=1, ahead=3),)))) == 4
        await store.add_jobs(jobs(2, await store.time() - HOUR, gate="b"))
        assert await self._claim_as_before(store, old) == ["b"]

    async def test_a_new_node_takes_nothing_of_a_gate_that_an_old_one_holds(self, store: PostgresStore) -> None:
        old, new = await joined(store), await joined(store)
        await store.add_jobs(jobs(6, await store.time() - HOUR, gate="a"))
        assert await self._claim_as_before(store, old) == ["a"]
        assert await store.claim(request(new, bounds=(bound(most=1, ahead=3),))) == []

    async def _claim_as_before(self, store: PostgresStore, node: NodeId) -> list[str]:
        """The gates of what it takes."""
        lanes, limits = ([QUEUE], [PRIORITY], [0]), ([TARGET], [1], [None], [None])
        asked: tuple[Any, ...] = (100, node, *lanes, 0, [TARGET], True, *limits, False, True, "", "", 0, [], [], [], [])
        rows = await store._lines.claim.fetch(CLAIM_IN_TURNS, *asked)
        return [row["gate"] for row in rows if row["id"] is not None]
