"""From one schema of the SQLite store to the next: data stays, and a process of the version before goes on working (J1)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from duetime.model.job import JobFilter, State
from duetime.model.limit import Queue
from duetime.model.schedule import Change
from duetime.store import Migration
from duetime.stores.sqlite import SqliteStore, schema
from duetime.stores.sqlite.connection import connect
from duetime.testing.conformance.drafts import (
    HOUR,
    TENANT,
    add,
    bound,
    claim_one,
    job,
    joined,
    new_id,
    put,
    request,
    schedule,
    stored,
    success,
)

# As the first version wrote them: the columns of `history` are counted, not named, and the indexes are.
DRAFT = (
    "id, tenant, schedule_id, schedule, fire_time, due_at, queue, priority, overlap, target, target_spec, payload, policies, owner, labels"
    ", unique_key, retry_of"
)
ADD = f"""
INSERT INTO jobs ({DRAFT}, created_at)
VALUES (?, 'tenant', NULL, NULL, 1, 1, 'queue', 5, NULL, 'task', NULL, X'7b7d', NULL, NULL, NULL, NULL, NULL, 1)
"""
CLAIM = """
UPDATE jobs SET state = 'running', attempt = attempt + 1, node = ?1, claimed_at = 1 WHERE rowid IN (
  SELECT rowid FROM jobs INDEXED BY jobs_due
  WHERE state = 'pending' AND overlap IS NULL AND queue = 'queue' AND priority = 5 AND due_at <= 9e18
)
"""
SETTLE = f"""
INSERT INTO history SELECT
  {DRAFT}, 'succeeded', attempt, failures, losses, node, cancel_requested, checkpoint, progress, created_at, claimed_at,
  1, 2, NULL, NULL, NULL FROM jobs WHERE state = 'running'
"""
STATEMENTS = (CLAIM, SETTLE, "DELETE FROM jobs WHERE state = 'running'")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of the first version, with a job in it."""
    found = tmp_path / "duetime.db"
    monkeypatch.setattr(schema, "NEWEST", 1)
    assert schema.migrate(found) == Migration(0, 1)
    monkeypatch.undo()
    return found


def stored_before(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(ADD, (new_id(1).bytes,))
        connection.execute("INSERT INTO queues (name) VALUES ('queue')")
    connection.close()


async def test_what_was_there_stays_and_runs(path: Path) -> None:
    stored_before(path)
    store = SqliteStore(path)
    assert await store.migrate() == Migration(1, schema.NEWEST)
    await store.open()
    [found] = await store.list_jobs(JobFilter(TENANT), 10)
    assert (found.state, found.gate) == (State.PENDING, None)
    claimed = await claim_one(store, await joined(store), bounds=(bound(most=1),))
    assert await store.settle([success(claimed, await store.time())]) == []
    assert (await stored(store, found.id)).state is State.SUCCEEDED
    assert await store.queues() == [Queue("queue")]
    await store.close()


async def test_an_older_process_goes_on_beside_the_new(path: Path) -> None:
    """It adds, claims and settles with the statements it knows, and leaves jobs with a gate to those who know what that is."""
    old = connect(path)
    store = SqliteStore(path)
    await store.open()
    node, now = await joined(store), await store.time()
    gated = [await add(store, job(now - HOUR, gate="a")), await add(store, job(now + HOUR, gate="b"))]
    plain = await add(store, job(now - HOUR))
    old.execute(ADD, (new_id(1).bytes,))
    for statement in STATEMENTS:
        old.execute(statement, (node,) if "?1" in statement else ())
    listed = {found.id: found.state for found in await store.list_jobs(JobFilter(TENANT), 10)}
    assert (listed.pop(gated[0].id), listed.pop(gated[1].id)) == (State.PENDING, State.PENDING)
    assert listed.pop(plain.id) is State.SUCCEEDED
    assert list(listed.values()) == [State.SUCCEEDED]
    assert [row.id for row in await store.claim(request(node))] == [gated[0].id]
    old.close()
    await store.close()


async def test_schedules_that_were_there_have_a_version(path: Path) -> None:
    """Of what was changed before nothing is known but the outcome."""
    store = SqliteStore(path)
    await store.open()
    made = await put(store, schedule(), 1)
    await store.pause_schedule(TENANT, "schedule", None, "ann")
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.executescript("DROP TABLE schedule_versions; DROP TABLE records; DROP TABLE events; DROP INDEX jobs_outside")
        connection.execute("DELETE FROM schema_version WHERE version = 3")
    connection.close()
    assert await store.migrate() == Migration(2, schema.NEWEST)
    await store.open()
    [row] = await store.list_versions(TENANT, "schedule", 10)
    assert (row.version, row.author, row.change, row.draft) == (2, None, Change.PAUSED, made.draft)
    await store.close()


async def test_a_second_migration_finds_nothing_to_do(path: Path) -> None:
    await SqliteStore(path).migrate()
    assert await SqliteStore(path).migrate() == Migration(schema.NEWEST, schema.NEWEST)
