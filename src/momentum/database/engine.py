"""The database: SQLite or PostgreSQL, under the same URL as Duetime's store, so that a post and its job are
written in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit
from uuid import uuid4

from sqlalchemy import event, insert, inspect, select, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from momentum.database import tables
from momentum.errors import ConfigError

SCHEMA_VERSION = 1
MIGRATION_LOCK = 0x6D6F6D656E74756D  # of PostgreSQL's advisory locks: "momentum"
BUSY_TIMEOUT = 10.0  # seconds that SQLite waits for another writer
BEGIN_TRIES = 6
KNOWN = 'use "sqlite:///momentum.db" or "postgresql://user@host/database"'


class Database:
    """Connections to the database. Every write is inside of `transaction()`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self._is_sqlite = engine.dialect.name == "sqlite"
        # SQLite has one writer. The tasks of this process queue here, in order, instead of polling the file.
        self._writer = asyncio.Lock()

    @classmethod
    def of(cls, url: str) -> Database:
        """The database that this URL names. Nothing is opened yet."""
        match urlsplit(url).scheme.lower():
            case "sqlite":
                return cls(_sqlite(url))
            case "postgresql" | "postgres":
                return cls(_postgres(url))
            case scheme:
                raise ConfigError(f"database: Momentum cannot use {scheme or url!r}: {KNOWN}")

    async def require(self) -> None:
        """Raises ConfigError unless the database and its tables exist. Creates nothing."""
        advice = "start `momentum serve`, or give another with --database"
        file = self.engine.url.database if self._is_sqlite else None
        if file is not None and not await asyncio.to_thread(Path(file).exists):
            raise ConfigError(f"database: there is no file {file}: {advice}")
        async with self.reading() as connection:
            names = await connection.run_sync(lambda found: inspect(found).get_table_names())
        if tables.meta.name not in names:
            raise ConfigError(f"database: it has no tables of Momentum: {advice}")

    async def migrate(self) -> None:
        """Create the tables that are missing. Several processes may call it at the same time."""
        async with self.transaction() as connection:
            if not self._is_sqlite:
                await connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            await connection.run_sync(tables.metadata.create_all)
            query = select(tables.meta.c.value).where(tables.meta.c.name == "schema")
            stored = (await connection.execute(query)).scalar()
            if stored is None:
                row = {"name": "schema", "value": str(SCHEMA_VERSION)}
                await connection.execute(insert(tables.meta).values(row))
            elif int(stored) > SCHEMA_VERSION:
                raise ConfigError(
                    f"database: its tables have version {stored}, and this Momentum knows {SCHEMA_VERSION}: "
                    "install a newer Momentum"
                )

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that writes: committed at the end of the block, rolled back by an exception."""
        async with AsyncExitStack() as stack:
            if self._is_sqlite:
                await stack.enter_async_context(self._writer)
            connection = await self._begin(stack)
            yield connection

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A connection that only reads."""
        async with self.engine.connect() as connection:
            if self._is_sqlite:
                await connection.execution_options(momentum_reads=True)
            yield connection

    async def close(self) -> None:
        await self.engine.dispose()

    async def _begin(self, stack: AsyncExitStack) -> AsyncConnection:
        connection = await stack.enter_async_context(self.engine.connect())
        for last in (tried == BEGIN_TRIES for tried in range(1, BEGIN_TRIES + 1)):
            try:
                await stack.enter_async_context(connection.begin())
                return connection
            except OperationalError as problem:
                if last or "locked" not in str(problem):
                    raise
        raise AssertionError("unreachable")


def _sqlite(url: str) -> AsyncEngine:
    parts = urlsplit(url)
    name = unquote(parts.path.removeprefix("/"))
    if parts.netloc or parts.query or name in ("", ":memory:"):
        raise ConfigError(f"database: {url!r} does not name a file: {KNOWN}")
    engine = create_async_engine(
        f"sqlite+aiosqlite:///{Path(name).absolute()}",
        connect_args={"timeout": BUSY_TIMEOUT, "isolation_level": None},  # we begin transactions ourselves
    )

    @event.listens_for(engine.sync_engine, "connect")
    def prepare(raw: Any, _: Any) -> None:
        cursor = raw.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        # An intent to publish must survive a power failure: it is on the disk before the call is made.
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Any) -> None:
        # A transaction that reads first and writes later fails if another one wrote in between.
        reads = connection.get_execution_options().get("momentum_reads", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine


def _postgres(url: str) -> AsyncEngine:
    """The driver reads the URL, as it does for Duetime's store, so that all its options mean the same."""
    try:
        import asyncpg
    except ModuleNotFoundError:
        raise ConfigError("database: PostgreSQL needs asyncpg: pip install 'duetime[momentum]'") from None

    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    pooled = options.pop("pooler", None) is not None
    dsn = urlunsplit(parts._replace(query=urlencode(options)))
    # Behind a pooler each transaction may use another server session: no statement is kept there.
    caching: dict[str, Any] = {"statement_cache_size": 0} if pooled else {}

    async def connect(*_: Any, **__: Any) -> Any:
        return await asyncpg.connect(dsn, **caching)

    pooling: dict[str, Any] = {"pool_size": 10, "max_overflow": 20, "pool_pre_ping": True}
    if pooled:
        pooling = {
            "poolclass": NullPool,
            "connect_args": {
                "prepared_statement_cache_size": 0,
                "prepared_statement_name_func": lambda: f"momentum_{uuid4().hex}",
            },
        }
    return create_async_engine("postgresql+asyncpg://", async_creator=connect, **pooling)
