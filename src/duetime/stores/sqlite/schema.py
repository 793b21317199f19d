"""The schema's versions: numbered files, each applied once, all of them in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from duetime.errors import SchemaTooNew, StoreError
from duetime.store import Migration
from duetime.stores.sqlite import faults
from duetime.stores.sqlite.connection import connect
from duetime.stores.sqlite.session import Session
from duetime.stores.statements import scripts

MIGRATIONS = {int(name.partition("_")[0]): text for name, text in scripts("duetime.stores.sqlite", "migrations").items()}
NEWEST = max(MIGRATIONS)


def migrate(path: Path) -> Migration:
    """Bring the file to the newest version, creating it if need be. Whoever comes second finds the work done."""
    try:
        connection = connect(path)
        try:
            return _migrate(connection, path)
        finally:
            connection.close()
    except sqlite3.Error as problem:
        raise faults.translate(problem, path) from problem


def _migrate(connection: sqlite3.Connection, path: Path) -> Migration:
    if (version := _version(connection, path)) == NEWEST:
        return Migration(version, version)  # most opens: no write lock needed
    connection.execute("BEGIN IMMEDIATE")
    before = _version(connection, path)
    for number in range(before + 1, NEWEST + 1):
        for statement in _split(MIGRATIONS[number]):
            connection.execute(statement)
        Session(connection).change("write_version", (number,))
    connection.execute("COMMIT")
    return Migration(before, NEWEST)


def _version(connection: sqlite3.Connection, path: Path) -> int:
    session = Session(connection)
    ours, any_tables = session.all("has_tables")[0]
    if not ours and any_tables:
        raise StoreError(f"{path} holds the tables of another program: give Duetime a file of its own")
    version = int(session.value("read_version")) if ours else 0
    if version > NEWEST:
        raise SchemaTooNew(f"{path} was written by a newer Duetime (schema {version}, this one knows {NEWEST}): upgrade this installation")
    return version


def _split(script: str) -> Iterator[str]:
    """Statement by statement: sqlite3's own executescript would commit first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
