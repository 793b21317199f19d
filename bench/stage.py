"""The stores to measure on: our own PostgreSQL with durable commits, and SQLite files on the same disk."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

import psycopg

from bench.pending import add_pending
from bench.processes import Ground, family_cpu_seconds
from tests.servers.postgres import PostgresServer

SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
DATABASE = "bench"


class Stage(Protocol):
    """One kind of store. Every measurement gets its own ground: an empty, migrated store."""

    name: str

    @contextmanager
    def ground(self) -> Iterator[Ground]: ...

    @contextmanager
    def unsettled(self, ground: Ground) -> Iterator[Callable[[], int]]:
        """Count the jobs that have started and are not settled yet."""

    @contextmanager
    def left(self, ground: Ground) -> Iterator[Callable[[], int]]:
        """Count the jobs that are not settled yet."""

    def server_cpu(self) -> float: ...


class PostgresStage:
    name = "postgres"

    def __init__(self, server: PostgresServer) -> None:
        self.server = server

    @contextmanager
    def ground(self, name: str = DATABASE) -> Iterator[Ground]:
        with self.database(name) as url, _folder() as folder:
            ground = Ground(url, folder)
            ground.client("migrate")
            yield ground

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        """An empty database, after a checkpoint so that earlier measurements do not write into this one."""
        self.server.drop_database(name)
        url = self.server.create_database(name)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
        yield url
        self.server.drop_database(name)

    @contextmanager
    def left(self, ground: Ground) -> Iterator[Callable[[], int]]:
        with psycopg.connect(ground.url, autocommit=True) as connection:
            yield lambda: connection.execute("SELECT count(*) FROM duetime.jobs").fetchall()[0][0]

    @contextmanager
    def unsettled(self, ground: Ground) -> Iterator[Callable[[], int]]:
        # A job that has started is on its node until it is settled, and the index on `node` is small when
        # millions are pending.
        with psycopg.connect(ground.url, autocommit=True) as connection:
            yield lambda: connection.execute(
                "SELECT count(*) FROM duetime.jobs WHERE node IS NOT NULL"
            ).fetchall()[0][0]

    def add_pending(self, ground: Ground, count: int) -> None:
        pattern = ground.client("far", 30)["id"]
        add_pending(ground.url, pattern, count)

    @contextmanager
    def held_transaction(self, ground: Ground) -> Iterator[None]:
        """A transaction of another client with a snapshot, open as long as the block lasts."""
        with psycopg.connect(ground.url) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.execute("SELECT pg_current_xact_id()")
            yield
            connection.rollback()

    def server_cpu(self) -> float:
        return family_cpu_seconds(self.server.pid)


class SqliteStage:
    name = "sqlite"

    @contextmanager
    def ground(self) -> Iterator[Ground]:
        with _folder() as folder:
            ground = Ground(f"sqlite:///{folder / 'bench.db'}", folder)
            ground.client("migrate")
            yield ground

    @contextmanager
    def left(self, ground: Ground) -> Iterator[Callable[[], int]]:
        with closing(sqlite3.connect(f"file:{ground.folder / 'bench.db'}?mode=ro", uri=True)) as connection:
            yield lambda: connection.execute("SELECT count(*) FROM jobs").fetchone()[0]

    @contextmanager
    def unsettled(self, ground: Ground) -> Iterator[Callable[[], int]]:
        with closing(sqlite3.connect(f"file:{ground.folder / 'bench.db'}?mode=ro", uri=True)) as connection:
            yield lambda: connection.execute("SELECT count(*) FROM jobs WHERE node IS NOT NULL").fetchone()[0]

    def server_cpu(self) -> float:
        return 0.0


@contextmanager
def postgres_stage() -> Iterator[PostgresStage]:
    with PostgresServer(durable=True, settings=SETTINGS) as server:
        yield PostgresStage(server)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="duetime-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
