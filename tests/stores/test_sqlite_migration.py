"""From one schema of the SQLite store to the next: data stays, and migrating again changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from duetime.errors import MigrationRefused, SchemaTooNew
from duetime.model.job import JobFilter, State
from duetime.stores.sqlite import SqliteStore, schema
from duetime.stores.sqlite.connection import connect
from duetime.testing.conformance.drafts import TENANT, add, claim_one, job, joined, settle, stored, success

LATER = schema.NEWEST + 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "duetime.db"


@pytest.fixture
def later_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version after this one, which adds a table and a column."""
    script = (
        "CREATE TABLE added (name TEXT);\nALTER TABLE jobs ADD COLUMN added INTEGER;\n"
        "INSERT INTO added VALUES ('x;y');\n"
    )
    monkeypatch.setitem(schema.MIGRATIONS, LATER, script)
    monkeypatch.setattr(schema, "NEWEST", LATER)


async def versions(store: SqliteStore) -> tuple[int, int]:
    """Before and after it is migrated."""
    migration = await store.migrate()
    return migration.before, migration.after


async def filled(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await add(store, job(await store.time()))
    await store.close()


async def test_open_brings_an_older_file_to_the_newest_version(
    path: Path, request: pytest.FixtureRequest
) -> None:
    await filled(path)
    request.getfixturevalue("later_version")
    store = SqliteStore(path)
    assert await versions(store) == (schema.NEWEST - 1, LATER)
    await store.open()
    [found] = await store.list_jobs(JobFilter(TENANT), 10)
    claimed = await claim_one(store, await joined(store))
    assert await settle(store, [success(claimed, await store.time())]) == []
    assert (await stored(store, found.id)).state is State.SUCCEEDED
    await store.close()
    connection = connect(path)
    assert connection.execute("SELECT name FROM added").fetchall() == [("x;y",)]
    connection.close()


@pytest.mark.usefixtures("later_version")
async def test_new_file_gets_all_versions(path: Path) -> None:
    assert await versions(SqliteStore(path)) == (0, LATER)


async def test_second_migration_changes_nothing(path: Path) -> None:
    assert await versions(SqliteStore(path)) == (0, schema.NEWEST)
    assert await versions(SqliteStore(path)) == (schema.NEWEST, schema.NEWEST)


async def test_failed_migration_leaves_the_file_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(path)
    with monkeypatch.context() as later:
        later.setitem(
            schema.MIGRATIONS, LATER, "CREATE TABLE added (name TEXT);\nCREATE TABLE added (name TEXT);\n"
        )
        later.setattr(schema, "NEWEST", LATER)
        with pytest.raises(Exception, match="added"):
            await SqliteStore(path).open()
    connection = connect(path)
    assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'added'").fetchone() == (0,)
    connection.close()
    assert await versions(SqliteStore(path)) == (schema.NEWEST, schema.NEWEST)


async def test_newer_schema_that_only_has_more_is_accepted(
    path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue("later_version")
    await filled(path)
    monkeypatch.undo()
    await filled(path)
    assert await versions(SqliteStore(path)) == (LATER, LATER)
    plan = await SqliteStore(path).migrate(dry_run=True)
    assert (plan.state.version, plan.steps) == (LATER, ())


async def test_contraction_waits_for_an_old_node(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(path)
    await store.open()
    node = await joined(store)  # of version 1
    script = f"-- contract: from {LATER}, needs 1.1.0\nALTER TABLE jobs ADD COLUMN added INTEGER;\n"
    monkeypatch.setitem(schema.MIGRATIONS, LATER, script)
    monkeypatch.setattr(schema, "NEWEST", LATER)
    with pytest.raises(MigrationRefused, match=r"1\.1\.0"):
        await SqliteStore(path).open()
    await store.leave(node)
    assert await versions(SqliteStore(path)) == (LATER - 1, LATER)
    await store.close()


async def test_newer_schema_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(schema.MIGRATIONS, LATER, f"-- contract: from {LATER}, needs 99.0\nSELECT 1;\n")
    monkeypatch.setattr(schema, "NEWEST", LATER)
    await filled(path)
    monkeypatch.undo()
    with pytest.raises(SchemaTooNew, match="upgrade"):
        await SqliteStore(path).open()
    with pytest.raises(SchemaTooNew):
        await SqliteStore(path).migrate()
