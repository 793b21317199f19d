"""The embedded store: one SQLite file, durable, shared by the processes of one machine."""

from __future__ import annotations

from duetime.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
