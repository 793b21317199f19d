"""The stores, chosen by URL. Each is imported only when asked for, so that its driver need not be
installed."""

from __future__ import annotations

from urllib.parse import urlsplit

from duetime.errors import ConfigError, UnknownStore
from duetime.store import Store

DEFAULT_URL = "sqlite:///duetime.db"
KNOWN = 'use "memory://", "sqlite:///file.db" or "postgresql://user@host/database"'


def from_url(url: str) -> Store:
    """The store this URL names, not yet opened."""
    scheme = urlsplit(url).scheme.lower()
    match scheme:
        case "memory":
            from duetime.stores.memory import MemoryStore

            return MemoryStore()
        case "sqlite":
            from duetime.stores.sqlite import SqliteStore

            return SqliteStore.from_url(url)
        case "postgresql" | "postgres":
            return _postgres(url)
        case _:
            raise UnknownStore(f"no store speaks {scheme or url!r}: {KNOWN}")


def _postgres(url: str) -> Store:
    try:
        from duetime.stores.postgres import PostgresStore
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"PostgreSQL needs the package {missing.name}: pip install 'duetime[postgres]'"
        ) from None
    return PostgresStore.from_url(url)
