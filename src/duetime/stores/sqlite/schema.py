"""The versions of the schema: numbered files, each applied once, all of them in one transaction."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from duetime.clock import wall_micros
from duetime.errors import StoreError
from duetime.model.migration import (
    Migration,
    NodeVersion,
    SchemaState,
    migration_of,
    refuse_incompatible,
    refuse_old_nodes,
)
from duetime.stores.sql.session import run_now
from duetime.stores.sqlite import errors
from duetime.stores.sqlite.connection import connect
from duetime.stores.sqlite.session import SqliteSession
from duetime.stores.statements import scripts

MIGRATIONS = {
    int(name.partition("_")[0]): text for name, text in scripts("duetime.stores.sqlite", "migrations").items()
}
NEWEST = max(MIGRATIONS)
_TABLES = frozenset(
    name for text in MIGRATIONS.values() for name in re.findall(r"^CREATE TABLE (\w+)", text, re.MULTILINE)
)


def migrate(path: Path) -> Migration:
    """Bring the file to the newest version; create it if it is missing. Several processes may call this at
    the same time."""
    try:
        connection = connect(path)
        try:
            return _migrate(connection, path)
        finally:
            connection.close()
    except sqlite3.Error as problem:
        raise errors.translate(problem, path) from problem


def _migrate(connection: sqlite3.Connection, path: Path) -> Migration:
    if (state := _state(connection, path)).version >= NEWEST:
        return Migration(state)  # most opens: no write lock needed
    connection.execute("BEGIN IMMEDIATE")
    migration = migration_of(_scripts(), _state(connection, path))
    session = SqliteSession(connection)
    for step in migration.steps:
        if step.number > 1:
            refuse_old_nodes(step, _nodes(session))
        for statement in _split(MIGRATIONS[step.number]):
            connection.execute(statement)
        run_now(session.change("write_version", (step.number, step.compatible_from)))
    connection.execute("COMMIT")
    return migration


def plan(path: Path) -> Migration:
    """Without creating or changing the file."""
    if not path.exists():
        return migration_of(_scripts(), SchemaState(0, 0))
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            state = _state(connection, path)
            return migration_of(_scripts(), state, _nodes(SqliteSession(connection)) if state.version else ())
    except sqlite3.Error as problem:
        raise errors.translate(problem, path) from problem


def _scripts() -> list[str]:
    return [MIGRATIONS[number] for number in sorted(MIGRATIONS)]


def _nodes(session: SqliteSession) -> list[NodeVersion]:
    return [NodeVersion(*row) for row in run_now(session.all("living_versions", (wall_micros(),)))]


def _state(connection: sqlite3.Connection, path: Path) -> SchemaState:
    session = SqliteSession(connection)
    tables = {name for (name,) in run_now(session.all("table_names"))}
    if "schema_version" not in tables and tables & _TABLES:
        raise StoreError(f"{path} holds the tables of another program: give Duetime a file of its own")
    row = run_now(session.one("read_version")) if "schema_version" in tables else None
    state = SchemaState(0, 0) if row is None else SchemaState(*row)
    refuse_incompatible(state, NEWEST, str(path))
    return state


def _split(script: str) -> Iterator[str]:
    """Statement by statement: sqlite3's own executescript would commit first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
