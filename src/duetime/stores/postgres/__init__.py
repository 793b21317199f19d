"""The PostgreSQL store: for production, and for any number of processes."""

from __future__ import annotations

from duetime.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
