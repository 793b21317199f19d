"""The versions of the schema: numbered files, each applied once, all of them in one transaction."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from duetime.errors import SchemaTooNew, StoreError
from duetime.store import Migration
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
    if (version := _version(connection, path)) == NEWEST:
        return Migration(version, version)  # most opens: no write lock needed
    connection.execute("BEGIN IMMEDIATE")
    before = _version(connection, path)
    for number in range(before + 1, NEWEST + 1):
        for statement in _split(MIGRATIONS[number]):
            connection.execute(statement)
        run_now(SqliteSession(connection).change("write_version", (number,)))
    connection.execute("COMMIT")
    return Migration(before, NEWEST)


def _version(connection: sqlite3.Connection, path: Path) -> int:
    session = SqliteSession(connection)
    tables = {name for (name,) in run_now(session.all("table_names"))}
    if "schema_version" not in tables and tables & _TABLES:
        raise StoreError(f"{path} holds the tables of another program: give Duetime a file of its own")
    version = int(run_now(session.value("read_version"))) if "schema_version" in tables else 0
    if version > NEWEST:
        raise SchemaTooNew(
            f"{path} was written by a newer Duetime (schema {version}, this one knows {NEWEST}): "
            "upgrade this installation"
        )
    return version


def _split(script: str) -> Iterator[str]:
    """Statement by statement: sqlite3's own executescript would commit first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
