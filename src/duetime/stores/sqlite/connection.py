"""Opening connections. Each is checked to be durable."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Event

from duetime.clock import monotonic_micros
from duetime.errors import StoreError
from duetime.model.search import error_group, has_field, has_label

MIN_SQLITE = (3, 35, 0)  # RETURNING, and several ON CONFLICT clauses
BUSY_TIMEOUT_MILLISECONDS = 5_000
RETRY_MILLISECONDS = 20
# synchronous=FULL: with NORMAL, the default of some builds in WAL mode, the last commits may be lost in a
# power failure.
DURABLE = {"journal_mode": "wal", "synchronous": 2}
TUNING = {
    "temp_store": "memory",
    "secure_delete": "off",
    "wal_autocheckpoint": 4_000,
    "journal_size_limit": 64 * 1024 * 1024,
}
CACHE_KIBIBYTES = 64 * 1024


def connect(path: Path, busy_milliseconds: int = BUSY_TIMEOUT_MILLISECONDS) -> sqlite3.Connection:
    """A connection in autocommit mode: transactions are begun and ended explicitly."""
    if sqlite3.sqlite_version_info < MIN_SQLITE:
        raise StoreError(
            f"SQLite {sqlite3.sqlite_version} is too old: Duetime needs 3.35 or newer, so use a newer Python"
        )
    if not path.exists():
        _create(path)
    connection = sqlite3.connect(
        path, timeout=busy_milliseconds / 1_000, isolation_level=None, cached_statements=256
    )
    try:
        _enter_wal(connection, busy_milliseconds)
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _create(path: Path) -> None:
    """A new file is for its owner only; SQLite gives its other files the same mode. It is made under another
    name: to close a descriptor of a file drops all locks of the process on it, those of SQLite included."""
    with suppress(OSError):  # it exists meanwhile, or SQLite says better what is wrong
        descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
        os.close(descriptor)
        try:
            os.link(name, path)
        finally:
            os.unlink(name)


def _enter_wal(connection: sqlite3.Connection, busy_milliseconds: int) -> None:
    """When several connections open a new file at the same time, SQLite refuses all but the one that switches
    it to WAL mode."""
    give_up_at = monotonic_micros() + busy_milliseconds * 1_000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = wal").fetchall()
            return
        except sqlite3.OperationalError as problem:
            if "locked" not in str(problem) or monotonic_micros() >= give_up_at:
                raise
        Event().wait(RETRY_MILLISECONDS / 1_000)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # SQLite's own lower() knows ASCII only, and its JSON functions would take some labels for paths.
    connection.create_function("folded", 1, str.casefold, deterministic=True)
    connection.create_function("has_label", 3, has_label, deterministic=True)
    connection.create_function("has_field", 3, has_field, deterministic=True)
    connection.create_function("error_group", 1, error_group, deterministic=True)
    for name, value in {**DURABLE, **TUNING, "cache_size": -CACHE_KIBIBYTES}.items():
        connection.execute(f"PRAGMA {name} = {value}").fetchall()
    for name, value in DURABLE.items():
        found = connection.execute(f"PRAGMA {name}").fetchone()[0]
        if found != value:
            raise StoreError(
                f"{path}: {name} is {found!r} and cannot be made {value!r}: use a local disk that "
                "supports memory mapping"
            )
