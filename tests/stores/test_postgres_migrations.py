"""A fleet of two versions: nodes of the older version continue to claim and settle while the schema is
migrated."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from duetime.clock import monotonic_micros, wall_micros
from duetime.errors import SchemaMissing
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import NodeId
from duetime.stores.postgres import PostgresStore, schema
from duetime.stores.postgres.connections import SQL
from duetime.testing.conformance.drafts import PRIORITY, QUEUE, TARGET, TENANT, joined

LIVE = 200_000
BATCH = 50
MAX_ROUND = 4 * SECOND  # less than the timeout of a call
FILL = f"""
INSERT INTO duetime.jobs (id, tenant, fire_time, due_at, queue, priority, target, payload)
SELECT gen_random_uuid(), '{TENANT}', now(), now() - n * interval '1 millisecond',
  '{QUEUE}', {PRIORITY}, '{TARGET}', '{{}}'
FROM generate_series(1, {LIVE}) AS n
"""
# An artificial later version, with a change that locks the table of live jobs and reads all of it.
NEXT_VERSION = """
ALTER TABLE duetime.jobs ADD COLUMN later bigint;
CREATE INDEX jobs_later ON duetime.jobs (queue, later) WHERE later IS NOT NULL;
"""


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The number of a version after the current one, to be called when the current one is applied."""
    monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, NEXT_VERSION])
    yield len(schema.MIGRATIONS)
    monkeypatch.undo()


@pytest.fixture
async def migrated(postgres_url: str) -> str:
    """A database with the current version."""
    store = PostgresStore.from_url(postgres_url)
    await store.migrate()
    await store.close()
    return postgres_url


class OlderWorker:
    """Claims and settles with the statements of the current version, and records how long each round
    takes."""

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
        connections, now = self._store._connections, wall_micros()
        claimed = await connections.claim.fetch(
            SQL["claim"], BATCH, node, [QUEUE], [PRIORITY], [0], [TENANT], 0, [TARGET]
        )
        ids, times = [row["id"] for row in claimed], [now] * len(claimed)
        self.settled += await connections.settle.count(
            SQL["settle_successes"], ids, 1, times, times, (), b"1"
        )


async def test_later_version_is_applied_once_and_then_needed(migrated: str, next_version: int) -> None:
    store = PostgresStore.from_url(migrated)
    with pytest.raises(SchemaMissing, match="duetime migrate"):
        await store.open()
    migration = await store.migrate()
    assert (migration.before, migration.after) == (next_version - 1, next_version)
    assert (await store.migrate()).before == next_version
    await store.open()
    await store.close()


@pytest.mark.slow
async def test_migration_does_not_stop_working_nodes(migrated: str, next_version: int) -> None:
    """With many live jobs no claim or settlement waits until its timeout."""
    with psycopg.connect(migrated, autocommit=True) as connection:
        connection.execute(FILL)
    worker, store = OlderWorker(migrated), PostgresStore.from_url(migrated)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await worker.made(50)
        migration = await store.migrate()
        await worker.made(50)
        worker.end()
    await store.close()
    assert migration.after == next_version
    assert worker.settled == BATCH * len(worker.rounds), "every round found jobs, and none was refused"
    assert max(worker.rounds) < MAX_ROUND


@pytest.mark.slow
async def test_open_transaction_delays_only_the_migration(migrated: str, next_version: int) -> None:
    """Other transactions queue behind a change that waits for a table, so it waits briefly and tries
    again."""
    with psycopg.connect(migrated, autocommit=True) as connection:
        connection.execute(FILL.replace(str(LIVE), "20000"))
    worker, store = OlderWorker(migrated), PostgresStore.from_url(migrated)
    async with await psycopg.AsyncConnection.connect(migrated) as other, asyncio.TaskGroup() as group:
        await other.execute(FILL.replace(str(LIVE), "1"))
        group.create_task(worker.run())
        await worker.made(5)
        migrating = group.create_task(store.migrate())
        began = monotonic_micros()
        while monotonic_micros() - began < 6 * SECOND:
            await worker.made(1)
        assert not migrating.done()
        await other.commit()
        assert (await migrating).after == next_version
        worker.end()
    await store.close()
    assert max(worker.rounds) < MAX_ROUND
