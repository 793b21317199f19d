"""The stores to measure on: our own PostgreSQL and MariaDB with durable commits, our own Redis, and SQLite
files on the same disk."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

import psutil
import psycopg
from redis import Redis

from bench.pending import add_pending
from bench.processes import Ground, family_cpu_seconds
from tests.servers.brokers import RedisServer
from tests.servers.mariadb import MariaDbServer
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


class MariaDbStage:
    """Next to the bare figures of PostgreSQL on the same disk."""

    name = "mariadb"

    def __init__(self, server: MariaDbServer) -> None:
        self.server = server

    @contextmanager
    def ground(self) -> Iterator[Ground]:
        self.server.drop_database(DATABASE)
        with _folder() as folder:
            ground = Ground(self.server.create_database(DATABASE), folder)
            ground.client("migrate")
            yield ground
        self.server.drop_database(DATABASE)

    @contextmanager
    def left(self, ground: Ground) -> Iterator[Callable[[], int]]:
        with self._counting("") as count:
            yield count

    @contextmanager
    def unsettled(self, ground: Ground) -> Iterator[Callable[[], int]]:
        with self._counting("WHERE node >= 0") as count:
            yield count

    @contextmanager
    def _counting(self, condition: str) -> Iterator[Callable[[], int]]:
        with closing(self.server.connect()) as connection:

            def count() -> int:
                with connection.cursor() as cursor:
                    cursor.execute(f"SELECT COUNT(*) FROM {DATABASE}.duetime_jobs {condition}")
                    return int(cursor.fetchall()[0][0])

            yield count

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


class RedisStage:
    """The server syncs its append-only file every second, or before it answers."""

    name = "redis"

    def __init__(self, server: RedisServer) -> None:
        self.server = server
        self.client = Redis.from_url(server.url)

    @contextmanager
    def ground(self, name: str = DATABASE) -> Iterator[Ground]:
        self._clear(name)
        with _folder() as folder:
            ground = Ground(f"{self.server.url}?prefix={name}", folder)
            ground.client("migrate")
            yield ground
        self._clear(name)

    def _clear(self, name: str) -> None:
        """The store of this prefix only: another ground may be in use."""
        for key in self.client.scan_iter(f"{{{name}}}:*", count=1_000):
            self.client.delete(key)

    @contextmanager
    def left(self, ground: Ground) -> Iterator[Callable[[], int]]:
        yield lambda: self.client.hlen(f"{{{_prefix(ground)}}}:jobs")

    @contextmanager
    def unsettled(self, ground: Ground) -> Iterator[Callable[[], int]]:
        yield lambda: self.client.hlen(f"{{{_prefix(ground)}}}:running")

    def finished(self, ground: Ground) -> int:
        return int(self.client.hlen(f"{{{_prefix(ground)}}}:past"))

    def add_pending(self, ground: Ground, count: int) -> None:
        ground.client("later", count, 31, patience=3_600.0)

    def kill(self) -> None:
        """And start it again, with what it had written."""
        self.server.stop(signal.SIGKILL)
        self.server.start()

    def resident_megabytes(self) -> float:
        return float(psutil.Process(self.server.pid).memory_info().rss) / 2**20

    def server_cpu(self) -> float:
        return family_cpu_seconds(self.server.pid)


def _prefix(ground: Ground) -> str:
    return ground.url.rpartition("=")[2]


@contextmanager
def redis_stage(appendfsync: str = "everysec") -> Iterator[RedisStage]:
    with RedisServer(appendfsync=appendfsync) as server:
        yield RedisStage(server)


@contextmanager
def postgres_stage() -> Iterator[PostgresStage]:
    with PostgresServer(durable=True, settings=SETTINGS) as server:
        yield PostgresStage(server)


@contextmanager
def mariadb_stage() -> Iterator[MariaDbStage]:
    with MariaDbServer(durable=True, settings={"innodb-buffer-pool-size": "1G"}) as server:
        yield MariaDbStage(server)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="duetime-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
