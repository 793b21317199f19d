"""Empties a PostgreSQL database between tests, which is faster than creating a new one. Independent of
pytest."""

from __future__ import annotations

import time
from contextlib import suppress

import psycopg

TABLES = (
    "jobs", "history", "attempts", "once_markers", "limits", "limit_keys", "schedules", "schedule_versions",
    "queues", "queue_tenants", "nodes", "records", "events",
)  # fmt: skip
OTHERS = """FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"""
END_OTHERS = f"SELECT count(pg_terminate_backend(pid)) {OTHERS}"
END_TIMEOUT = 120.0  # seconds


class Emptying:
    """Keeps one connection: a new one would plan all statements again, which takes ten times as long."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection = psycopg.connect(url, autocommit=True)

    def empty(self, end_others: bool = False) -> None:
        """Delete all rows; with `end_others`, end all other sessions first."""
        try:
            self._empty(end_others)
        except psycopg.OperationalError:  # a test ended this session
            self.close()
            self._connection = psycopg.connect(self._url, autocommit=True)
            self._empty(end_others)

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._connection.close()

    def _empty(self, end_others: bool) -> None:
        if end_others:
            self._end_others()
        for table in TABLES:
            self._connection.execute(f"DELETE FROM duetime.{table}")

    def _end_others(self) -> None:
        """Returns when the sessions are gone: a pooler would give a client a session that is about to end.
        Asks again each time: a pooler may have been opening another session for a client that has left, and
        keeps it for minutes."""
        give_up_at = time.monotonic() + END_TIMEOUT
        while self._connection.execute(END_OTHERS).fetchone() != (0,):
            assert time.monotonic() < give_up_at, "the other sessions do not end"
            time.sleep(0.001)
