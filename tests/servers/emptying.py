"""Empties a PostgreSQL database between tests, which is faster than creating a new one. Independent of
pytest."""

from __future__ import annotations

from contextlib import suppress

import psycopg

TABLES = (
    "jobs", "history", "attempts", "once_markers", "limits", "limit_keys", "schedules", "schedule_versions",
    "queues", "leases", "nodes", "records", "events",
)  # fmt: skip
OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


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
            self._connection.execute(OTHERS)
        for table in TABLES:
            self._connection.execute(f"DELETE FROM duetime.{table}")
