"""Opening connections: every one is durable, and says so when asked."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from threading import Event

from duetime.clock import monotonic_micros
from duetime.errors import StoreError
from duetime.model.job import error_line
from duetime.stores.labels import has_label

OLDEST_SQLITE = (3, 35, 0)  # RETURNING, and several ON CONFLICT clauses
BUSY_MILLISECONDS = 5_000
MILLISECONDS_BETWEEN_TRIES = 20
# synchronous=FULL: in WAL mode the default of some builds, NORMAL, may forget the last commits when the power goes.
WANTED = {"journal_mode": "wal", "synchronous": 2}
TUNING = {"temp_store": "memory", "secure_delete": "off", "wal_autocheckpoint": 4_000, "journal_size_limit": 64 * 1024 * 1024}
CACHE_KIBIBYTES = 64 * 1024


def connect(path: Path, busy_milliseconds: int = BUSY_MILLISECONDS) -> sqlite3.Connection:
    """A connection in autocommit mode: transactions are begun and ended by name."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old: Duetime needs 3.35 or newer, so use a newer Python")
    connection = sqlite3.connect(path, timeout=busy_milliseconds / 1_000, isolation_level=None, cached_statements=256)
    try:
        _enter_wal(connection, busy_milliseconds)
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _enter_wal(connection: sqlite3.Connection, busy_milliseconds: int) -> None:
    """Where several open a new file at once, SQLite does not wait for the one that turns it into a WAL, but refuses the others."""
    give_up_at = monotonic_micros() + busy_milliseconds * 1_000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = wal").fetchall()
            return
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem) or monotonic_micros() >= give_up_at:
                raise
        Event().wait(MILLISECONDS_BETWEEN_TRIES / 1_000)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # SQLite's own lower() knows the letters of ASCII only, and labels may hold whatever its JSON functions take for a path.
    connection.create_function("folded", 1, str.casefold, deterministic=True)
    connection.create_function("has_label", 3, has_label, deterministic=True)
    connection.create_function("error_line", 1, error_line, deterministic=True)
    for name, value in {**WANTED, **TUNING, "cache_size": -CACHE_KIBIBYTES}.items():
        connection.execute(f"PRAGMA {name} = {value}").fetchall()
    for name, value in WANTED.items():
        found = connection.execute(f"PRAGMA {name}").fetchone()[0]
        if found != value:
            raise StoreError(f"{path}: {name} is {found!r} and cannot be made {value!r}: use a local disk that supports memory mapping")
