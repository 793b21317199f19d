"""What a million finished jobs cost: bytes in each store, and in an archive. Small jobs: a payload of
about 30 bytes and a result, one in twenty with a failed attempt.

python -m bench.history_price --jobs 100000
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter

import psycopg
import pymysql
from redis import Redis

from bench.copy_speed import PAGE, jobs
from duetime.archives import archive_for
from duetime.archives.formats import FORMATS
from duetime.clock import wall_micros
from duetime.engine.plan.archiver import Archiver
from duetime.model.history import KeepRules
from duetime.model.stored import RowKind, row_key
from duetime.store import Store
from duetime.stores import from_url
from tests.servers.brokers import RedisServer
from tests.servers.mariadb import PASSWORD, USER, MariaDbServer
from tests.servers.postgres import PostgresServer

KINDS = ("sqlite", "postgres", "mariadb", "redis")
MILLION = 1_000_000
OF_POSTGRES = """SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'duetime' AND c.relkind = 'r'"""
OF_MARIADB = """SELECT SUM(file_size) FROM information_schema.innodb_sys_tablespaces
WHERE name LIKE 'history/%'"""


@dataclass(frozen=True, slots=True)
class Measured:
    url: str
    size: Callable[[], int]


@contextmanager
def started(kind: str, folder: Path) -> Iterator[Measured]:
    if kind == "sqlite":
        path = folder / "history.db"
        yield Measured(f"sqlite:///{path}", lambda: path.stat().st_size)
    elif kind == "postgres":
        with PostgresServer() as postgres:
            url = postgres.create_database("history")
            yield Measured(url, lambda: _postgres(url))
    elif kind == "mariadb":
        with MariaDbServer() as mariadb:
            url = mariadb.create_database("history")
            yield Measured(url, lambda: _mariadb(mariadb.port))
    else:
        with RedisServer() as server:
            yield Measured(server.url, lambda: _redis(server.url))


def _postgres(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(OF_POSTGRES).fetchone()
        return int(row[0]) if row else 0


def _mariadb(port: int) -> int:
    with pymysql.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD) as connection:
        cursor = connection.cursor()
        cursor.execute(OF_MARIADB)
        return int((cursor.fetchone() or (0,))[0])


def _redis(url: str) -> int:
    with Redis.from_url(url) as client:
        return int(client.info("memory")["used_memory"])


async def fill(store: Store, number: int) -> None:
    """Only the first half of these jobs has ended."""
    rows, after = islice(jobs(2 * number, wall_micros()), number), None
    while page := list(islice(rows, PAGE)):
        until = row_key(page[-1])
        await store.write_rows(RowKind.JOBS, page, after, until)
        after = until


async def measure(kind: str, number: int, folder: Path, form: str) -> str:
    archive = folder / f"archive-{kind}"
    archive.mkdir()
    with started(kind, folder) as made:
        store = from_url(made.url)
        await store.migrate()
        await store.open()
        empty = made.size()
        await fill(store, number)
        await store.close()
        size = made.size() - empty
        await store.open()
        began = perf_counter()
        done = await Archiver(store, archive_for(str(archive), form), KeepRules(0)).run()
        seconds = perf_counter() - began
        await store.close()
    scale = MILLION / number / 1e6
    speed = f"{done.jobs / seconds:,.0f} jobs/s"
    return f"| {kind} | {size * scale:,.0f} MB | {done.bytes * scale:,.0f} MB | {speed} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.history_price", description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000, help="on each store (%(default)s)")
    parser.add_argument("--store", action="append", choices=KINDS, help="may be repeated (all)")
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="of the archive (%(default)s)")
    options = parser.parse_args()
    sys.stdout.write(
        "| store | a million jobs in the store | in the archive | archived |\n|---|---|---|---|\n"
    )
    for kind in options.store or KINDS:
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(f"{asyncio.run(measure(kind, options.jobs, Path(folder), options.format))}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
