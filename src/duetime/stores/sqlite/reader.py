"""The connection that reads, on a thread of its own: in WAL mode it waits for no writer and no writer waits for it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from duetime.stores.sqlite import faults
from duetime.stores.sqlite.connection import connect
from duetime.stores.sqlite.session import Session
from duetime.stores.sqlite.thread import Request


class Reader:
    """Serves each request from one snapshot, so that a job on its way to the past is seen once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def serve(self, requests: list[Request[Session]]) -> None:
        for request in requests:
            try:
                request.answer = self._read(request)
            except Exception as problem:
                request.error = faults.translate(problem, self._path)
                self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _read(self, request: Request[Session]) -> object:
        if self._connection is None:
            self._connection = connect(self._path)
            self._connection.execute("PRAGMA query_only = ON")
        self._connection.execute("BEGIN")
        answer: object = request.work(Session(self._connection))
        self._connection.execute("COMMIT")
        return answer
