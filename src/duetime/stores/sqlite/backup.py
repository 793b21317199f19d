"""A copy of the file while processes use it, under a name that does not exist yet."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from duetime.clock import wall_micros
from duetime.errors import ConfigError, StoreError
from duetime.exclusive_file import name_file
from duetime.model.stored import Record
from duetime.stores.sql import records
from duetime.stores.sql.session import run_now
from duetime.stores.sqlite import errors
from duetime.stores.sqlite.session import SqliteSession, SqliteTransaction

CHECK = "PRAGMA integrity_check"


def copy_file(source: Path, target: Path, record: Record) -> int:
    """One consistent state of the source, checked, with this record in it. The copy appears under its name
    when it is complete and on disk. Returns its size in bytes."""
    if target.exists():
        raise ConfigError(f"{target} exists already: name a file that does not, or move it away")
    if not target.parent.is_dir():
        raise ConfigError(f"the folder {target.parent} does not exist: create it, or name another file")
    try:
        return _copy_file(source, target, record)
    except FileExistsError:
        raise ConfigError(f"{target} exists already: name a file that does not, or move it away") from None
    except OSError as problem:
        raise ConfigError(
            f"{target} cannot be written ({problem.strerror}): make room, or name a file that can be"
        ) from problem
    except sqlite3.Error as problem:
        is_full = getattr(problem, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        raise errors.translate(problem, target if is_full else source) from problem


def _copy_file(source: Path, target: Path, record: Record) -> int:
    descriptor, name = tempfile.mkstemp(prefix=f"{target.name}.", suffix=".partial", dir=target.parent)
    os.close(descriptor)
    partial = Path(name)
    try:
        _copy(source, partial)
        _finish(partial, record)
        _sync(partial)
        name_file(partial, target)  # fails if the name is taken meanwhile
        _sync(target.parent)
        return target.stat().st_size
    finally:
        partial.unlink(missing_ok=True)


def read_record(file: Path, kind: str, tenant: str, key: str) -> Record | None:
    """Of a file that is not opened as a store, which would upgrade it."""
    try:
        with closing(_open_read_only(file)) as connection:
            return run_now(records.get(SqliteSession(connection), kind, tenant, key))
    except sqlite3.Error as problem:
        raise errors.translate(problem, file) from problem


def _open_read_only(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
    try:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").fetchone():
            raise StoreError(f"{file} is not a store of Duetime: name the file of one")
    except sqlite3.DatabaseError as problem:
        connection.close()
        raise errors.translate(problem, file) from problem
    except StoreError:
        connection.close()
        raise
    return connection


def _copy(source: Path, partial: Path) -> None:
    """In one step: in several, each commit of another process would begin it again. Writers do not wait."""
    with closing(_open_read_only(source)) as original, closing(sqlite3.connect(partial)) as copied:
        original.backup(copied)


def _finish(partial: Path, record: Record) -> None:
    with closing(sqlite3.connect(partial, isolation_level=None)) as copied:
        copied.execute("PRAGMA journal_mode = delete").fetchall()  # one file, nothing next to it
        copied.execute("BEGIN IMMEDIATE")
        put = records.put(SqliteTransaction(copied, wall_micros()), *record[:4], None, None)
        run_now(put)
        copied.execute("COMMIT")
        found = [row[0] for row in copied.execute(CHECK)]
    if found != ["ok"]:
        raise StoreError(f"the copy of the file is damaged, and so the file itself may be: {found[0]}")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
