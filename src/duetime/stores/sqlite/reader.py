"""A connection that reads, on a thread of its own: in WAL mode readers and writers do not wait for each
other."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from duetime.stores.sqlite import errors
from duetime.stores.sqlite.connection import connect
from duetime.stores.sqlite.session import SqliteSession
from duetime.stores.sqlite.threads import ThreadRequest


class SqliteReader:
    """Serves each request from one snapshot, so that a job on its way to the past is seen once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def serve(self, requests: list[ThreadRequest[SqliteSession]]) -> None:
        for request in requests:
            try:
                self._read(request)
            except Exception as problem:
                request.error = errors.translate(problem, self._path)
                self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _read(self, request: ThreadRequest[SqliteSession]) -> None:
        if self._connection is None:
            self._connection = connect(self._path)
            self._connection.execute("PRAGMA query_only = ON")
        self._connection.execute("BEGIN")
        request.perform(SqliteSession(self._connection))
        self._connection.execute("COMMIT")
