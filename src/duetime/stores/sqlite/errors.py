"""What SQLite's error codes mean to callers."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from duetime.errors import StoreError, StoreFull, StoreUnavailable

_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY})
# A quota or a limit on file sizes ends a write with these, not with SQLITE_FULL.
_CANNOT_GROW = frozenset({sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_UNREACHABLE = frozenset(
    {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT}
)
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def code_of(error: BaseException) -> int:
    """The primary result code; extended codes carry it in their low byte."""
    return _extended_code_of(error) & 0xFF


def _extended_code_of(error: BaseException) -> int:
    """0 for an error that Python's driver raised by itself, such as one about parameters."""
    return getattr(error, "sqlite_errorcode", 0)


def is_busy(error: BaseException) -> bool:
    return code_of(error) in _BUSY


def is_stale_snapshot(error: BaseException) -> bool:
    """Others wrote after this transaction had begun to read; waiting does not help, only another
    transaction."""
    return _extended_code_of(error) == sqlite3.SQLITE_BUSY_SNAPSHOT


def is_full(error: BaseException) -> bool:
    return code_of(error) in _FULL or _extended_code_of(error) in _CANNOT_GROW


def breaks_connection(error: BaseException) -> bool:
    """Whether to go on with another connection: the state of this one may not match the file."""
    return code_of(error) in _UNREACHABLE | _DAMAGED


def translate(error: Exception, path: Path) -> Exception:
    """The error a caller sees. An error that SQLite did not raise stays as it is."""
    if not isinstance(error, sqlite3.Error):
        return error
    code = code_of(error)
    if code in _BUSY:
        return StoreUnavailable(
            f"{path} is locked by another connection ({error}): end its transaction, and repeat; a call "
            "within a transaction of your own needs connection="
        )
    if is_full(error):
        return StoreFull(
            f"{path} cannot be written ({error}): make room on the disk or allow writing, then repeat"
        )
    if code in _UNREACHABLE:
        return StoreUnavailable(
            f"{path} cannot be read or written now ({error}): check the disk, then repeat"
        )
    if code in _DAMAGED:
        return StoreError(
            f"{path} is damaged or not a SQLite database ({error}): restore it from a backup, or use "
            "another file"
        )
    return StoreError(f"{path}: {error}")
