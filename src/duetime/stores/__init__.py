"""The stores, chosen by URL. Each is imported only when asked for, so that its driver need not be
installed."""

from __future__ import annotations

from urllib.parse import urlsplit

from duetime.errors import ConfigError, UnknownStore
from duetime.store import Store

KNOWN = (
    'use "memory://", "sqlite:///file.db", "postgresql://user@host/database", "mysql://user@host/database" '
    'or "redis://host:6379/0"'
)


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
        case "redis" | "rediss":
            return _redis(url)
        case "mysql" | "mariadb":
            return _mysql(url)
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


def _redis(url: str) -> Store:
    try:
        from duetime.stores.redis import RedisStore
    except ModuleNotFoundError as missing:
        raise ConfigError(f"Redis needs the package {missing.name}: pip install 'duetime[redis]'") from None
    return RedisStore.from_url(url)


def _mysql(url: str) -> Store:
    try:
        from duetime.stores.mysql import MySqlStore
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"MariaDB and MySQL need the package {missing.name}: pip install 'duetime[mysql]'"
        ) from None
    return MySqlStore.from_url(url)
