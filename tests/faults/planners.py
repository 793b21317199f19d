"""The planner run: one planner, then five; the leader is killed, the next leader is stopped for a while and
continues; then two planners are left. Who holds which segment is read all the time, and every fire is
accounted for.

python -m tests.faults.planners --schedules 300 --lease 15 --stopped 30 --leases etcd
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import psycopg

from duetime.engine.node.registry import ALL_TENANTS
from duetime.engine.node.timer import NodeClock
from duetime.errors import LeasesUnavailable
from duetime.leases.etcd import EtcdLeases
from duetime.model.ids import SEGMENTS
from duetime.model.lease import LEADER, segment_lease
from tests.faults.broker_kills import FINISHED, STORED, Account, Plan, account_of, count, sleep_until
from tests.faults.fleet import TIMEOUT, Fleet
from tests.servers.etcd import EtcdServer
from tests.servers.postgres import PostgresServer

INTERVAL = 2  # seconds between the fires of a schedule
LOOK_INTERVAL = 0.05  # seconds between two looks at the leases
NAMES = (LEADER, *map(segment_lease, range(SEGMENTS)))
HELD = """
SELECT l.name, n.name FROM duetime.records r
CROSS JOIN jsonb_each(convert_from(r.value, 'UTF8')::jsonb) AS l(name, held)
JOIN duetime.nodes n ON n.id = (l.held ->> 0)::bigint
WHERE r.kind = 'leases' AND NOT n.dead AND n.lease_until > clock_timestamp()
"""
TAKEOVER = 3.0  # seconds: the reaper looks, then the planners do
EXPIRED = "expired-record"  # the leader deletes it
NODES = "SELECT id, name FROM duetime.nodes"
PLANNED = """
SELECT extract(epoch FROM min(fire_time - created_at)) FROM duetime.history WHERE fire_time BETWEEN %s AND %s
"""
COUNT_EXPIRED = f"SELECT count(*) FROM duetime.records WHERE kind = '{EXPIRED}'"
Planner = subprocess.Popen[bytes]
Database = psycopg.AsyncConnection[tuple[Any, ...]]


class HolderReader(Protocol):
    """By lease, the name of the node that holds it now."""

    async def __call__(self) -> Mapping[str, str]: ...


@dataclass(slots=True)
class Gaps:
    """How long each lease had no holder that this predicate accepts."""

    accepts: Callable[[str | None], bool]
    since: dict[str, float] = field(default_factory=dict)
    longest: float = 0.0

    def look(self, holders: Mapping[str, str], now: float) -> None:
        for name in NAMES:
            if self.accepts(holders.get(name)):
                self.since.pop(name, None)
            else:
                self.longest = max(self.longest, now - self.since.setdefault(name, now))


class LeaseWatch:
    """Looks at the leases all the time."""

    def __init__(self, read: HolderReader) -> None:
        self._read = read
        self.halted: set[str] = set()  # nodes whose process is killed or stopped
        self.holders: Mapping[str, str] = {}
        self.begin()

    def begin(self) -> None:
        """Measure from now on."""
        self.free = Gaps(lambda holder: holder is not None)
        self.unattended = Gaps(lambda holder: holder is not None and holder not in self.halted)

    async def run(self) -> None:
        while True:
            self.holders = await self._read()
            now = time.monotonic()
            self.free.look(self.holders, now)
            self.unattended.look(self.holders, now)
            await asyncio.sleep(LOOK_INTERVAL)

    def shares(self) -> dict[str, int]:
        return Counter(holder for name, holder in self.holders.items() if name != LEADER)

    def balanced(self, nodes: Sequence[str]) -> bool:
        """Exactly these hold all segments, each its part within 10 %, and one of them leads."""
        shares = self.shares()
        fair = SEGMENTS / len(nodes)
        return (
            self.holders.get(LEADER) in nodes
            and sum(shares.values()) == SEGMENTS
            and shares.keys() == set(nodes)
            and all(abs(share - fair) <= fair / 10 for share in shares.values())
        )


@dataclass(frozen=True, slots=True)
class Step:
    """What happened, and what was measured until the segments were shared again."""

    name: str
    balanced_after: float  # seconds
    shares: tuple[int, ...]
    free: float  # the longest time that a lease had no holder
    unattended: float  # the longest time without a holder whose process runs
    pruned_after: float | None  # when a new leader did its first duty
    without_leases: bool  # no planner was there before, or etcd was away
    began_at: datetime
    ended_at: datetime
    ahead: float | None = None  # seconds before its time that a fire was planned, at least
    late: float | None = None  # seconds after its time that a job started, at most

    HEADER = (
        f"{'':34}{'shared after':>14}{'segments':>18}{'longest free':>14}{'no process':>12}"
        f"{'planned ahead':>15}{'started late':>14}{'pruned':>9}"
    )

    def __str__(self) -> str:
        pruned, ahead, late = (
            "" if seconds is None else f"{seconds:.1f} s"
            for seconds in (self.pruned_after, self.ahead, self.late)
        )
        shares = " ".join(map(str, self.shares))
        return (
            f"{self.name:34}{self.balanced_after:>12.2f} s{shares:>18}{self.free:>12.2f} s"
            f"{self.unattended:>10.2f} s{ahead:>15}{late:>14}{pruned:>9}"
        )


@dataclass(frozen=True, slots=True)
class PlannerRun:
    lease: float
    steps: list[Step]
    account: Account

    def check(self) -> None:
        self.account.check()
        for step in self.steps:
            if not step.without_leases:
                assert step.free <= self.lease, f"a lease was free for too long: {step}"
                assert step.unattended <= self.lease + TAKEOVER, f"held by no running process: {step}"

    def __str__(self) -> str:
        return "\n".join([Step.HEADER, *map(str, self.steps), str(self.account)])


class PlannerFleet:
    """Planner processes, one worker process, and what the leases say about them."""

    def __init__(self, fleet: Fleet, watch: LeaseWatch, database: Database, leases: str) -> None:
        self.fleet = fleet
        self.watch = watch
        self._database = database
        self._leases = leases
        self.steps: list[Step] = []
        self.living: list[Planner] = []

    def spawn(self, count: int) -> None:
        environment = {"WORKER_ROLES": "planner", "WORKER_LEASES": self._leases}
        self.living += [self.fleet.spawn(environment=environment) for _ in range(count)]

    @property
    def leader(self) -> Planner:
        return next(one for one in self.living if name_of(one) == self.watch.holders[LEADER])

    @asynccontextmanager
    async def step(
        self, name: str, new_leader: bool = False, without_leases: bool = False
    ) -> AsyncIterator[None]:
        """Do something to the planners, then wait until they share the segments again."""
        if new_leader:
            await self._expire_a_record()
        self.watch.begin()
        began, began_at = time.monotonic(), datetime.now(UTC)
        yield
        nodes = [name_of(one) for one in self.living]

        async def balanced() -> bool:
            return self.watch.balanced(nodes)

        await self.fleet.until(balanced, f"{name}: shared, but {self.watch.shares()}", TIMEOUT)
        balanced_after = time.monotonic() - began
        pruned_after = await self._pruned(began) if new_leader else None
        shares = tuple(sorted(self.watch.shares().values()))
        free, unattended = self.watch.free.longest, self.watch.unattended.longest
        measured = Step(
            name, balanced_after, shares, free, unattended, pruned_after,
            without_leases, began_at, datetime.now(UTC),
        )  # fmt: skip
        self.steps.append(measured)

    async def _expire_a_record(self) -> None:
        store = self.fleet.app.store
        expires_at = await store.time() + 1
        await store.put_record(EXPIRED, ALL_TENANTS, str(len(self.steps)), b"", expires_at=expires_at)

    async def _pruned(self, began: float) -> float:
        async def pruned() -> bool:
            return await count(self._database, COUNT_EXPIRED) == 0

        await self.fleet.until(pruned, "the new leader to prune")
        return time.monotonic() - began

    def halt(self, planner: Planner, number: signal.Signals) -> None:
        self.living.remove(planner)
        self.watch.halted.add(name_of(planner))
        planner.send_signal(number)

    def resume(self, planner: Planner) -> None:
        self.living.append(planner)
        self.watch.halted.discard(name_of(planner))
        planner.send_signal(signal.SIGCONT)


async def planner_run(
    store: str,
    folder: Path,
    schedules: int,
    lease: float,
    stopped: float,
    most: int,
    seconds: float,
    etcd: EtcdServer | None = None,
) -> PlannerRun:
    """The fires are spread over so many seconds; the changes may take longer."""
    async with (
        Fleet(store, folder) as fleet,
        await psycopg.AsyncConnection.connect(store, autocommit=True) as database,
    ):
        table = None if etcd is None else EtcdLeases(etcd.url, NodeClock())
        watch = LeaseWatch(store_reader(database) if table is None else etcd_reader(database, table))
        watching = asyncio.create_task(watch.run())
        planners = PlannerFleet(fleet, watch, database, "" if etcd is None else etcd.url)
        try:
            fleet.spawn(environment={"WORKER_ROLES": "worker"})
            fleet.lease = f"{lease}s"
            async with planners.step("one planner", without_leases=True):
                planners.spawn(1)
            begin = datetime.now(UTC) + timedelta(seconds=3 + schedules / 50)
            plan = Plan(schedules, INTERVAL, round(seconds / INTERVAL), begin)
            await plan.declare(fleet.app)
            await sleep_until(begin)
            await _change(planners, most, stopped)
            if etcd is not None:
                async with planners.step(f"etcd is away for {stopped:.0f} s", without_leases=True):
                    await asyncio.to_thread(etcd.stop, signal.SIGKILL)
                    await asyncio.sleep(stopped)
                    await asyncio.to_thread(etcd.start)
            await sleep_until(plan.end)
            expected = plan.fires()
            async with asyncio.timeout(TIMEOUT):
                while await count(database, FINISHED) < len(expected):
                    await asyncio.sleep(0.2)
            rows = await (await database.execute(STORED)).fetchall()
            steps = [await _measured(step, database, fleet) for step in planners.steps]
        finally:
            watching.cancel()
            if table is not None:
                await table.close()
        fleet.check_starts()
        return PlannerRun(lease, steps, account_of(fleet, expected, rows))


async def _measured(step: Step, database: Database, fleet: Fleet) -> Step:
    [(ahead,)] = await (await database.execute(PLANNED, (step.began_at, step.ended_at))).fetchall()
    began, ended = step.began_at.timestamp(), step.ended_at.timestamp()
    late = [event["at"] - event["due"] for event in fleet.seen("start") if began <= event["due"] <= ended]
    return step if ahead is None else replace(step, ahead=float(ahead), late=max(late, default=None))


async def _change(planners: PlannerFleet, most: int, stopped: float) -> None:
    async with planners.step(f"{most} planners"):
        planners.spawn(most - 1)
    async with planners.step("the leader is killed", new_leader=True):
        planners.halt(planners.leader, signal.SIGKILL)
    sleeper, stopped_at = planners.leader, time.monotonic()
    async with planners.step("the next leader is stopped", new_leader=True):
        planners.halt(sleeper, signal.SIGSTOP)
    await asyncio.sleep(max(0.0, stopped_at + stopped - time.monotonic()))
    async with planners.step(f"it continues after {time.monotonic() - stopped_at:.0f} s"):
        planners.resume(sleeper)
    async with planners.step(f"all but {most // 2} leave"):
        for planner in planners.living[most // 2 :]:
            planners.halt(planner, signal.SIGTERM)


def store_reader(database: Database) -> HolderReader:
    async def read() -> Mapping[str, str]:
        return dict(await (await database.execute(HELD)).fetchall())

    return read


def etcd_reader(database: Database, table: EtcdLeases) -> HolderReader:
    async def read() -> Mapping[str, str]:
        names: dict[int, str] = dict(await (await database.execute(NODES)).fetchall())
        try:
            leases = await table.leases(0)
        except LeasesUnavailable:
            return {}
        return {lease.name: names[lease.holder] for lease in leases if lease.holder is not None}

    return read


def name_of(planner: Planner) -> str:
    """Its node."""
    return f"{socket.gethostname()}-{planner.pid}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.planners", description=__doc__)
    parser.add_argument("--schedules", type=int, default=300)
    parser.add_argument("--lease", type=float, default=15, help="seconds")
    parser.add_argument("--stopped", type=float, default=30, help="seconds for which the leader is stopped")
    parser.add_argument("--planners", type=int, default=5)
    parser.add_argument("--leases", choices=["store", "etcd"], default="store")
    options = parser.parse_args()
    began = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = stack.enter_context(PostgresServer(durable=True)).create_database("planners")
        etcd = stack.enter_context(EtcdServer()) if options.leases == "etcd" else None
        seconds = options.stopped + 2 * options.lease + 4 * options.planners
        if etcd is not None:
            seconds += options.stopped + options.lease
        run = planner_run(
            store, folder, options.schedules, options.lease, options.stopped, options.planners, seconds, etcd
        )
        measured = asyncio.run(run)
    load = f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    sys.stdout.write(f"{measured}\n{load}, {time.monotonic() - began:.0f} s\n")
    measured.check()


if __name__ == "__main__":
    main()
