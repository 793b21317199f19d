"""The failover run: three nodes and two servers of PostgreSQL with Patroni, under load. The roles of the
servers are switched as planned, then the primary is killed. Every acknowledged job ends once.

python -m tests.faults.failover --rounds 3 --ttl 20
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString
from uuid import UUID

import psycopg

import duetime as dt
from tests.faults.fleet import TIMEOUT, Fleet
from tests.servers.patroni import TTL, PatroniCluster, PatroniServer
from tests.servers.pgbouncer import PgBouncer

NODES = 3
CLIENTS = 4
LEASE = "10s"
TICK = 0.5  # seconds between two fires of the schedule
LATER_JOBS = 200  # spread over the run, so that some become due while there is no primary
BEFORE, AFTER = 1.5, 1.0  # seconds of load before each fault and after the last
MAX_RECOVERY = (
    5.0  # seconds from the promotion to the first completed job, on a machine with nothing else to do
)
STEPS = 10  # of a recovery, each of which waits for a busy machine as long as an acknowledgement does
POLL = 0.005  # seconds
POOL = {"server_login_retry": "1", "default_pool_size": "30"}
PROMOTED: LiteralString = "SELECT NOT pg_is_in_recovery()"
COUNT: LiteralString = "SELECT count(*) FROM duetime.history"
ENDED: LiteralString = "SELECT id, attempt FROM duetime.history"
DOUBLED: LiteralString = """
SELECT id FROM (SELECT id FROM duetime.history UNION ALL SELECT id FROM duetime.jobs) AS stored
GROUP BY id HAVING count(*) > 1
"""
FIRES: LiteralString = """
SELECT extract(epoch FROM fire_time)::float, state FROM duetime.history WHERE schedule = 'tick' ORDER BY fire_time
"""
Ends = dict[UUID, int]  # the attempt that ended each job


@dataclass(frozen=True, slots=True)
class Failover:
    """One change of the primary, in seconds."""

    fault: str
    promotion: float  # from the fault to the promotion of the standby
    submitted: float  # from the promotion to the first acknowledged job
    started: float  # ... to the first start of a job
    completed: float  # ... to the first job that is completed in the store
    usual: float  # the longest time without an acknowledged job just before: how busy the machine is


@dataclass(frozen=True, slots=True)
class Outage:
    """A fault after which the primary stays, and the longest time in which no job was acknowledged."""

    fault: str
    longest: float  # seconds


@dataclass(slots=True)
class Account:
    failovers: list[Failover]
    outages: list[Outage]
    acknowledged: int
    lost: list[UUID]  # acknowledged, or seen as ended, and not ended in the end
    ended_again: list[UUID]  # seen as ended, and ended by another attempt afterwards
    doubled: list[UUID]  # stored twice
    repeated: int  # jobs that started more than once

    def check(self) -> None:
        assert not self.lost, f"{len(self.lost)} jobs are lost: {self.lost[:3]}"
        assert not self.ended_again, f"{len(self.ended_again)} jobs ended again: {self.ended_again[:3]}"
        assert not self.doubled, f"{len(self.doubled)} jobs are stored twice: {self.doubled[:3]}"
        late = [one for one in self.failovers if one.completed > MAX_RECOVERY + STEPS * one.usual]
        assert not late, f"more than {MAX_RECOVERY} s from the promotion to the next completed job: {late}"

    def __str__(self) -> str:
        head = ("fault", "to promotion", "submitted", "started", "completed")
        rows = [
            (
                one.fault,
                *(f"{value:.2f} s" for value in (one.promotion, one.submitted, one.started, one.completed)),
            )
            for one in self.failovers
        ]
        table = "\n".join("".join(f"{cell:<14}" for cell in row) for row in [head, *rows])
        outages = "".join(
            f"{one.fault}: no job acknowledged for {one.longest:.2f} s\n" for one in self.outages
        )
        return (
            f"{table}\n{outages}{self.acknowledged:,} jobs acknowledged, {len(self.lost)} lost, {len(self.doubled)} "
            f"doubled, {len(self.ended_again)} ended again, {self.repeated} started again"
        )


class Run:
    def __init__(self, cluster: PatroniCluster, fleet: Fleet) -> None:
        self.fleet = fleet
        self._cluster = cluster
        self._stop = asyncio.Event()
        self._acknowledged: list[tuple[float, UUID]] = []
        self._seen: Ends = {}

    async def run(self, rounds: int, outages: bool, nodes: int) -> Account:
        for _ in range(nodes):
            self.fleet.spawn()
        await self.fleet.joined(nodes)
        await self.fleet.app.schedule("tick", "work", dt.Every(f"{TICK}s"), missed=dt.Missed("all"))
        await self._submit_later_jobs()
        clients = [asyncio.create_task(self._submit()) for _ in range(CLIENTS)]
        failovers = []
        killed: PatroniServer | None = None
        for _ in range(rounds):
            if killed is not None:
                await asyncio.to_thread(killed.start)
            await asyncio.to_thread(self._cluster.wait_synchronous)
            failovers.append(await self._fail_over("switchover", self._cluster.switch_over))
            await asyncio.to_thread(self._cluster.wait_synchronous)
            killed = self._cluster.primary
            failovers.append(await self._fail_over("kill -9", killed.kill))
        suffered = await self._suffer_outages(killed) if outages and killed is not None else []
        await asyncio.sleep(AFTER)
        self._stop.set()
        await asyncio.gather(*clients)
        await self.fleet.app.pause("tick")
        await self.fleet.until(self.fleet.queues_are_empty, "every job to end", 2 * TIMEOUT)
        return await asyncio.to_thread(self._account, failovers, suffered)

    async def _suffer_outages(self, standby: PatroniServer) -> list[Outage]:
        await asyncio.to_thread(standby.start)
        await asyncio.to_thread(self._cluster.wait_synchronous)
        found = [await self._outage("standby killed", standby.kill)]
        await asyncio.to_thread(standby.start)
        await asyncio.to_thread(self._cluster.wait_synchronous)
        etcd = asyncio.create_task(self._outage("etcd away", self._cluster.stop_etcd))
        await asyncio.sleep(2 * self._cluster.ttl)
        await asyncio.to_thread(self._cluster.start_etcd)
        return [*found, await etcd]

    async def _outage(self, fault: str, cause: Callable[[], object]) -> Outage:
        began = time.time()
        await asyncio.to_thread(cause)
        await asyncio.sleep(4 * self._cluster.ttl)
        return Outage(fault, self._longest_gap(began))

    async def _submit_later_jobs(self) -> None:
        later = [
            dt.NewJob("work", delay=f"{number * 100}ms", payload={"seconds": 0.02})
            for number in range(LATER_JOBS)
        ]
        self._acknowledged += [(time.time(), job.id) for job in await self.fleet.app.submit_many(later)]

    async def _submit(self) -> None:
        while not self._stop.is_set():
            with suppress(dt.StoreUnavailable):
                job = await self.fleet.app.submit("work", seconds=0.02)
                self._acknowledged.append((time.time(), job.id))
            await asyncio.sleep(0.02)

    async def _fail_over(self, fault: str, cause: Callable[[], object]) -> Failover:
        before = time.time()
        await asyncio.sleep(BEFORE)
        usual = self._longest_gap(before)
        standby = await asyncio.to_thread(lambda: self._cluster.standby)
        watch = asyncio.create_task(asyncio.to_thread(self._watch, standby))
        self._seen.update(await asyncio.to_thread(self._ends))
        began = time.time()
        await asyncio.to_thread(cause)
        promoted, completed = await watch

        async def resumed() -> bool:
            return bool(self._first_start(promoted)) and self._acknowledged[-1][0] > promoted

        await self.fleet.until(resumed, "jobs to be submitted and started")
        submitted = next(moment for moment, _ in self._acknowledged if moment > promoted)
        return Failover(
            fault,
            promoted - began,
            submitted - promoted,
            self._first_start(promoted) - promoted,
            completed - promoted,
            usual,
        )

    def _longest_gap(self, began: float) -> float:
        """The longest time since then in which no job was acknowledged."""
        moments = [began, *(moment for moment, _ in self._acknowledged if moment > began), time.time()]
        return max(later - earlier for earlier, later in itertools.pairwise(moments))

    def _first_start(self, after: float) -> float:
        return min((event["at"] for event in self.fleet.seen("start") if event["at"] > after), default=0.0)

    def _watch(self, standby: PatroniServer) -> tuple[float, float]:
        """When the standby was promoted, and when the first job was completed after that."""
        with psycopg.connect(standby.url(self._database), autocommit=True) as session:
            promoted = _when(session, PROMOTED, bool)
            completed = _value(session, COUNT)
            return promoted, _when(session, COUNT, lambda value: value > completed)

    def _ends(self) -> Ends:
        """Of all jobs that users see as ended now."""
        with psycopg.connect(self._cluster.primary.url(self._database)) as session:
            return dict(session.execute(ENDED).fetchall())

    def _account(self, failovers: list[Failover], outages: list[Outage]) -> Account:
        self.fleet.check_starts()
        ends = self._ends()
        with psycopg.connect(self._cluster.primary.url(self._database)) as session:
            doubled = [row[0] for row in session.execute(DOUBLED)]
            fires, states = zip(*session.execute(FIRES), strict=True)
        steps = {round(later - earlier, 3) for earlier, later in itertools.pairwise(fires)}
        assert steps == {TICK}, f"a fire is missing or doubled: {steps}"
        assert set(states) == {"succeeded"}, Counter(states)
        expected = {job for _, job in self._acknowledged} | self._seen.keys()
        return Account(
            failovers,
            outages,
            len(self._acknowledged),
            [job for job in expected if job not in ends],
            [job for job, attempt in self._seen.items() if ends.get(job, attempt) != attempt],
            doubled,
            sum(len(events) > 1 for events in self.fleet.starts().values()),
        )

    @property
    def _database(self) -> str:
        return self.fleet.store.rpartition("/")[2].partition("?")[0]


def _when(
    session: psycopg.Connection[tuple[int]], query: LiteralString, holds: Callable[[int], bool]
) -> float:
    deadline = time.monotonic() + 2 * TIMEOUT
    while not holds(_value(session, query)):
        assert time.monotonic() < deadline, f"waited in vain for {query}"
        time.sleep(POLL)
    return time.time()


def _value(session: psycopg.Connection[tuple[int]], query: LiteralString) -> int:
    row = session.execute(query).fetchone()
    assert row is not None
    return row[0]


async def failover_run(
    cluster: PatroniCluster,
    folder: Path,
    rounds: int,
    lease: str = LEASE,
    outages: bool = False,
    pools: Sequence[PgBouncer] = (),
    nodes: int = NODES,
) -> Account:
    store = cluster.create_database("failover")
    if pools:
        hosts = ",".join(f"127.0.0.1:{pool.port}" for pool in pools)
        store = f"postgresql://postgres@{hosts}/failover?pooler=transaction"
    async with Fleet(store, folder, lease) as fleet:
        return await Run(cluster, fleet).run(rounds, outages, nodes)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.failover", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="of one switchover and one kill")
    parser.add_argument("--ttl", type=int, default=TTL, help="of the leader's key in etcd, in seconds")
    parser.add_argument("--lease", default=LEASE, help="of the nodes")
    parser.add_argument("--outages", action="store_true", help="also of the standby and of etcd")
    parser.add_argument("--pooled", action="store_true", help="through a PgBouncer in front of each server")
    options = parser.parse_args()
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(PatroniCluster(options.ttl))
        pools = [
            stack.enter_context(PgBouncer(server, settings=POOL))
            for server in (cluster.servers if options.pooled else [])
        ]
        run = failover_run(cluster, folder, options.rounds, options.lease, options.outages, pools)
        account = asyncio.run(run)
    sys.stdout.write(
        f"{account}\nload of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, "
        f"{time.monotonic() - began:.0f} s\n"
    )
    account.check()


if __name__ == "__main__":
    main()
