"""Random kills: workers under load are killed at random instants and replaced, and the server of the store is killed a
few times and started again. No acknowledged job may be lost, start early, or be completed twice. Prints a table in
Markdown: times are the median and the greatest.

python -m tests.faults.random_kills --store redis-everysec --kills 40
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median

import duetime as dt
from duetime.model.job import DEFAULT_TENANT, Job, JobFilter, State
from tests.faults.fleet import CLOCK_ERROR, TIMEOUT, Fleet
from tests.servers.brokers import RedisServer
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer

STORES = {
    "sqlite": "SQLite",
    "postgres": "PostgreSQL",
    "redis-everysec": "Redis, `everysec`",
    "redis-always": "Redis, `always`",
    "mariadb": "MariaDB",
}
LEASE = "3s"  # Redis and MariaDB notice a killed worker when this ends
WORKERS = 3
TAKES = 0.1  # seconds of each job
MAX_DELAY = 1.5  # seconds: half of the jobs are due later
BATCH, PAUSE = 10, 0.1  # jobs of a call, seconds between calls
SETTLE_TIMEOUT = 120.0  # seconds, for all jobs to end
SERVER_KILLS = 3
# Seconds, on a machine that does other things, too; the lease and the restart of a server are among them.
MOST = {"next_starts": 5.0, "restarts": 25.0, "servers": 20.0}
KILLING = 0.8  # of the time of a store; in the rest servers start, and the last jobs end
COLUMNS = (
    "store",
    "jobs",
    "worker kills",
    "server kills",
    "lost",
    "early",
    "completed twice",
    "ran again",
    "next start after a worker kill",
    "jobs of the killed worker run again after",
    "first new job after a server kill",
)
HEADER = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"


@dataclass(frozen=True, slots=True)
class KilledStore:
    """`crash` kills the server and starts it again; a file has none."""

    url: str
    crash: Callable[[], None] | None = None


@contextmanager
def started(name: str, folder: Path) -> Iterator[KilledStore]:
    """A durable store of this name, empty."""
    if name == "sqlite":
        yield KilledStore(f"sqlite:///{folder / 'kills.db'}")
    elif name == "postgres":
        with PostgresServer(durable=True) as postgres:
            yield killed_postgres(postgres, "kills")
    elif name == "mariadb":
        with MariaDbServer(durable=True) as mariadb:

            def crash() -> None:
                mariadb.crash()
                mariadb.start()

            yield KilledStore(mariadb.create_database("kills"), crash)
    else:
        with RedisServer(appendfsync=name.removeprefix("redis-")) as redis:

            def crash() -> None:
                redis.stop(signal.SIGKILL)
                redis.start()

            yield KilledStore(redis.url, crash)


def killed_postgres(server: PostgresServer, database: str) -> KilledStore:
    def crash() -> None:
        server.crash()
        server.start()

    return KilledStore(server.create_database(database), crash)


@dataclass(slots=True)
class Account:
    """What became of the acknowledged jobs, and how soon work went on."""

    jobs: int
    kills: int
    lost: list[str]
    early: list[str]
    doubled: list[str]  # stored twice, or run by more or other attempts than the one whose success is stored
    unexplained: list[str]  # ran again although neither their worker nor the server was killed
    again: int  # jobs that ran again
    next_starts: list[float] = field(
        repr=False
    )  # seconds from the kill of a worker to the next start anywhere
    restarts: list[float] = field(
        repr=False
    )  # seconds from the kill of a worker to the next start of its jobs
    # Seconds from each kill of the server to the first start of a job stored after it
    servers: list[float] = field(repr=False)

    def check(self) -> None:
        for what in ("lost", "early", "doubled", "unexplained"):
            jobs = getattr(self, what)
            assert not jobs, f"{len(jobs)} of {self.jobs} jobs are {what}: {jobs[:3]}"
        for what, most in MOST.items():
            seconds = getattr(self, what)
            assert max(seconds, default=0.0) <= most, f"{what} after more than {most} s: {seconds}"

    def row(self, store: str) -> str:
        counts = (self.jobs, self.kills, len(self.servers))
        problems = (len(self.lost), len(self.early), len(self.doubled))
        times = (self.next_starts, self.restarts, self.servers)
        cells = [store, *(f"{count:,}" for count in (*counts, *problems, self.again)), *map(_spread, times)]
        return f"| {' | '.join(cells)} |"


def _spread(seconds: list[float]) -> str:
    return f"{median(seconds):.2f} / {max(seconds):.2f} s" if seconds else "(none)"


class Run:
    def __init__(self, fleet: Fleet, store: KilledStore, random: Random) -> None:
        self._fleet, self._store, self._random = fleet, store, random
        self._acknowledged: list[dt.JobHandle] = []
        self._killed: dict[int, float] = {}  # pid -> when
        self._servers_killed: list[float] = []  # when

    async def kill(self, kills: int, server_kills: int = 1, seconds: float = float("inf")) -> Account:
        """Kill that many workers, and the server so often in between; on a slow machine, as many as the time
        allows."""
        ends = time.monotonic() + seconds
        server_first = Counter(kills * (number + 1) // (server_kills + 1) for number in range(server_kills))
        for _ in range(WORKERS):
            self._fleet.spawn()
        await self._fleet.joined(WORKERS)
        load = asyncio.create_task(self._submit())
        for number in range(kills):
            if time.monotonic() > ends:
                break
            for _ in range(server_first[number]):
                await self._kill_the_server()
            await self._kill_a_worker()
        await asyncio.sleep(PAUSE)
        load.cancel()
        with suppress(asyncio.CancelledError):
            await load
        lost = await self._unfinished()
        return self._account(lost, await self._doubled())

    async def _submit(self) -> None:
        """In batches and one by one. Only jobs whose call returned are acknowledged; a call that failed may have
        stored its jobs."""
        while True:
            delays = [self._random.choice((0.0, self._random.uniform(0, MAX_DELAY))) for _ in range(BATCH)]
            jobs = [dt.NewJob("work", {"seconds": TAKES}, delay=f"{delay * 1000:.0f}ms") for delay in delays]
            with suppress(dt.StoreUnavailable):
                self._acknowledged += await self._fleet.app.submit_many(jobs)
            await asyncio.sleep(PAUSE / 2)
            with suppress(dt.StoreUnavailable):  # by itself: some stores give it to an idle worker directly
                self._acknowledged.append(await self._fleet.app.submit("work", seconds=TAKES))
            await asyncio.sleep(PAUSE / 2)

    async def _kill_the_server(self) -> None:
        if self._store.crash is not None:
            await self._fleet.newest_joined()  # a worker that finds no server when it starts ends
            await asyncio.sleep(self._random.uniform(0.1, 0.5))
            self._servers_killed.append(time.time())
            await asyncio.to_thread(self._store.crash)

    async def _kill_a_worker(self) -> None:
        """At a random instant, one that has run jobs; another takes its place. One more goes on."""
        await asyncio.sleep(self._random.uniform(0.1, 0.8))

        async def others_work() -> bool:
            return len(self._working()) >= 2

        await self._fleet.until(others_work, "two workers to start jobs")
        victim = self._random.choice(self._working())
        victim.kill()
        self._killed[victim.pid] = time.time()
        await asyncio.to_thread(victim.wait, TIMEOUT)
        self._fleet.spawn()

    def _working(self) -> list[subprocess.Popen[bytes]]:
        busy = {event["pid"] for event in self._fleet.seen("start")}
        return [worker for worker in self._fleet.workers if worker.pid in busy and worker.poll() is None]

    async def _unfinished(self) -> list[dt.JobHandle]:
        """The jobs that have not succeeded when the time is up."""
        left, deadline = self._acknowledged, time.monotonic() + SETTLE_TIMEOUT
        while left and time.monotonic() < deadline:
            for first in range(0, len(left), 50):
                with suppress(dt.StoreUnavailable):
                    await asyncio.gather(*(job.refresh() for job in left[first : first + 50]))
            left = [job for job in left if job.state != "succeeded"]
            await asyncio.sleep(0.1)
        return left

    async def _doubled(self) -> list[str]:
        """Counted from the rows of the store and the effects of the tasks."""
        store, rows = self._fleet.app.store, list[Job]()
        while page := await store.list_jobs(JobFilter(DEFAULT_TENANT), 1_000, rows[-1].id if rows else None):
            rows += page
        stored = Counter(str(row.id) for row in rows)
        effects = Counter((event["job"], event["attempt"]) for event in self._fleet.seen("effect"))
        completed = {str(row.id): row.attempt for row in rows if row.state is State.SUCCEEDED}
        later = {
            event["job"]
            for event in self._fleet.seen("start")
            if event["attempt"] > completed.get(event["job"], event["attempt"])
        }
        odd = {job for job, attempt in completed.items() if effects[job, attempt] != 1}
        return sorted({job for job, count in stored.items() if count > 1} | later | odd)

    def _account(self, lost: list[dt.JobHandle], doubled: list[str]) -> Account:
        starts = self._fleet.starts()
        events = sorted(
            (event for found in starts.values() for event in found), key=lambda event: event["at"]
        )
        restarts = [
            after["at"] - self._killed[before["pid"]]
            for found in starts.values()
            for before, after in itertools.pairwise(found)
            if before["pid"] in self._killed and after["at"] > self._killed[before["pid"]]
        ]

        def next_start(moment: float) -> float:
            return next((event["at"] for event in events if event["at"] > moment), float("inf")) - moment

        return Account(
            len(self._acknowledged),
            len(self._killed),
            [str(job.id) for job in lost],
            [event["job"] for event in events if event["at"] < event["due"] - CLOCK_ERROR],
            doubled,
            self._fleet.unexplained(self._killed, self._servers_killed),
            sum(len(found) > 1 for found in starts.values()),
            [next_start(moment) for moment in self._killed.values()],
            restarts,
            [self._first_after(moment) for moment in self._servers_killed],
        )

    def _first_after(self, moment: float) -> float:
        """Seconds until the first start of a job that was stored after this moment."""
        stored = {str(job.id) for job in self._acknowledged if job.record.created_at > moment * 1e6}
        starts = [event["at"] for event in self._fleet.seen("start") if event["job"] in stored]
        return min(starts, default=float("inf")) - moment


async def kill_run(
    store: KilledStore,
    folder: Path,
    kills: int,
    seed: int,
    server_kills: int = 1,
    seconds: float = float("inf"),
) -> Account:
    async with Fleet(store.url, folder, LEASE) as fleet:
        return await Run(fleet, store, Random(seed)).kill(kills, server_kills, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.random_kills", description=__doc__)
    parser.add_argument("--store", action="append", choices=STORES, help="may be repeated (all)")
    parser.add_argument("--kills", type=int, default=40, help="of workers, on each store (%(default)s)")
    parser.add_argument(
        "--server-kills", type=int, default=SERVER_KILLS, help="on each store that has one (%(default)s)"
    )
    parser.add_argument(
        "--minutes", type=float, default=8, help="for all stores: fewer kills if it is short (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    sys.stdout.write(f"{HEADER}\n")
    accounts: list[Account] = []
    stores = options.store or list(STORES)
    seconds = KILLING * 60 * options.minutes / len(stores)
    for name in stores:
        with tempfile.TemporaryDirectory() as folder, started(name, Path(folder)) as store:
            run = kill_run(store, Path(folder), options.kills, options.seed, options.server_kills, seconds)
            accounts.append(asyncio.run(run))
        sys.stdout.write(f"{accounts[-1].row(STORES[name])}\n")
        sys.stdout.flush()
    sys.stdout.write(
        f"\n{time.monotonic() - began:.0f} s in all; load of the machine {os.getloadavg()[0]:.1f} on "
        f"{os.cpu_count()} cores, lease {LEASE}\n"
    )
    for account in accounts:
        account.check()


if __name__ == "__main__":
    main()
