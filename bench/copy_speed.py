"""Seconds for `duetime copy` from SQLite to another store, and for a comparison alone. Half of the jobs wait,
half are in a history of thirty days, one in twenty of those with a failed attempt.

python -m bench.copy_speed --jobs 1000000 --schedules 20000 --to postgres
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter
from typing import Any
from uuid import UUID

from duetime.clock import wall_micros
from duetime.model.ids import Ids, segment_of
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Attempt, Ending, State
from duetime.model.schedule import Change, Schedule, ScheduleVersion
from duetime.model.stored import JobRow, RowKind, StoredRow, row_key
from duetime.model.when import Cron
from duetime.stores.sqlite import SqliteStore
from duetime.testing.conformance.drafts import schedule
from tests.servers.brokers import RedisServer
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer

PAGE = 10_000
MONTH = 30 * 86_400 * SECOND
PLAIN: dict[str, Any] = dict.fromkeys(JobRow._fields) | {
    "tenant": "default", "queue": "default", "priority": 5, "target": "report.build", "state": State.PENDING,
    "attempt": 0, "failures": 0, "losses": 0, "cancel_requested": False, "begun": False, "attempts": (),
    "markers": (),
}  # fmt: skip


def jobs(number: int, now: Micros) -> Iterator[JobRow]:
    """In the order of their ids, which begin with the fire time."""
    ids, step = Ids(), 2 * MONTH // number
    for at in range(number):
        fire_time = now - MONTH + at * step
        job_id, payload = ids.new(fire_time), b'{"customer":%d,"kind":"daily"}' % at
        row = {**PLAIN, "id": job_id, "fire_time": fire_time, "due_at": fire_time, "payload": payload}
        row["created_at"] = min(fire_time, now)
        if fire_time < now:
            row |= finished(job_id, fire_time, failed=at % 20 == 0)
        yield JobRow(**row)


def finished(job_id: UUID, started_at: Micros, *, failed: bool) -> dict[str, Any]:
    ended = {
        "claimed_at": started_at,
        "started_at": started_at,
        "finished_at": started_at + 50_000,
        "node": 7,
    }
    result: dict[str, Any] = {**ended, "state": State.SUCCEEDED, "attempt": 1, "result": b'{"pages":12}'}
    if failed:
        attempt = Attempt(job_id, 1, 7, Ending.FAILED, started_at, started_at + 9, "ValueError: bad luck")
        result |= {"attempt": 2, "failures": 1, "attempts": (attempt,)}
    return result


def schedules(number: int, now: Micros) -> Iterator[Schedule]:
    for at in range(number):
        draft = schedule(f"schedule-{at:06}", when=Cron(f"{at % 60} {at % 24} * * *"), payload=b"{}")
        segment = segment_of(draft.id)
        yield Schedule(draft, draft.id, 1, segment, False, None, now + MONTH, now - MONTH, 30, now, now)


async def write(store: SqliteStore, kind: RowKind, rows: Iterator[StoredRow]) -> None:
    after = None
    while page := list(islice(rows, PAGE)):
        until = row_key(page[-1])
        await store.write_rows(kind, page, after, until)
        after = until


async def fill(path: Path, number: int, recurring: int) -> None:
    store, now = SqliteStore(path), wall_micros()
    await store.open()
    await write(store, RowKind.JOBS, jobs(number, now))
    known = list(schedules(recurring, now))
    await write(store, RowKind.SCHEDULES, iter(known))
    versions = (ScheduleVersion(1, now, "ann", Change.CREATED, False, one.draft) for one in known)
    await write(store, RowKind.VERSIONS, versions)
    await store.close()


@contextmanager
def target(kind: str) -> Iterator[str]:
    """The URL of an empty store on a server of its own."""
    if kind == "redis":
        with RedisServer() as redis:
            yield redis.url
        return
    with PostgresServer(durable=True) if kind == "postgres" else MariaDbServer(durable=True) as server:
        yield server.create_database("copy")


def timed(*arguments: str) -> str:
    """The time, and the time that its process computed: the same on a busy machine."""
    began, cpu = perf_counter(), _cpu()
    subprocess.run([sys.executable, "-m", "duetime", *arguments], check=True)
    return f"{perf_counter() - began:.0f} s, {_cpu() - cpu:.0f} s of CPU"


def _cpu() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("--to", choices=("postgres", "mariadb", "redis"), default="postgres")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, target(asked.to) as url:
        path = Path(folder) / "duetime.db"
        asyncio.run(fill(path, asked.jobs, asked.schedules))
        stores = ("--from", f"sqlite:///{path}", "--to", url)
        copied = timed("copy", *stores)
        compared = timed("copy", *stores, "--check")
    print(f"{asked.jobs:,} jobs and {asked.schedules:,} schedules, copied and compared: {copied}")
    print(f"only compared: {compared}")


if __name__ == "__main__":
    main()
