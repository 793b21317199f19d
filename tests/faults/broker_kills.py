"""The kill run: three planners that dispatch, three workers, PostgreSQL and a broker. A planner, a worker and
the broker are killed once each, and the broker is started again. Every fire is accounted for, none twice.

python -m tests.faults.broker_kills --broker rabbitmq --schedules 10000 --seconds 60
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

import duetime as dt
from tests.faults.fleet import TIMEOUT, Fleet
from tests.servers.brokers import BrokerServer, NatsServer, RabbitServer, RedisServer
from tests.servers.postgres import PostgresServer

BROKERS = {"rabbitmq": RabbitServer, "redis": RedisServer, "nats": NatsServer}
PLANNERS, WORKERS = 3, 3
LEASE = "10s"
TAKES = 0.01  # seconds of each job
STORED = """
SELECT schedule, fire_time, state FROM duetime.history WHERE schedule IS NOT NULL
UNION ALL SELECT schedule, fire_time, state FROM duetime.jobs WHERE schedule IS NOT NULL
"""
FINISHED = "SELECT count(*) FROM duetime.history"
Fire = tuple[str, datetime]


@dataclass(frozen=True, slots=True)
class Plan:
    """Schedules whose fires are spread evenly over each interval."""

    schedules: int
    interval: int  # seconds
    rounds: int
    begin: datetime

    @property
    def end(self) -> datetime:
        return self.begin + timedelta(seconds=self.interval * self.rounds)

    def at(self, share: float) -> datetime:
        return self.begin + share * (self.end - self.begin)

    def first(self, number: int) -> datetime:
        return self.begin + timedelta(milliseconds=self.interval * 1000 * number // self.schedules)

    def fires(self) -> set[Fire]:
        return {
            (f"schedule-{number}", self.first(number) + timedelta(seconds=self.interval * round_))
            for number in range(self.schedules)
            for round_ in range(self.rounds)
        }

    async def declare(self, app: dt.App) -> None:
        numbers = iter(range(self.schedules))

        async def declare_some() -> None:
            for number in numbers:
                first = self.first(number)
                await app.schedule(
                    f"schedule-{number}",
                    "work",
                    dt.Every(f"{self.interval}s", anchor=first),
                    start_at=first,
                    max_runs=self.rounds,
                    missed=dt.Missed("all"),
                    payload={"seconds": TAKES},
                )

        await asyncio.gather(*(declare_some() for _ in range(200)))
        assert datetime.now(UTC) < self.begin, "declaring the schedules took too long: use fewer"


@dataclass(slots=True)
class Account:
    """What became of the fires."""

    fires: int
    missing: list[Fire]  # no job, or it has not ended
    doubled: list[Fire]  # more than one job, or more than one end
    states: Counter[str]
    unexplained: list[str]  # jobs that ran again although no worker of theirs was killed
    repeated: int  # jobs that ran again because their worker was killed
    lateness: list[float] = field(repr=False)  # seconds, of first starts, sorted

    def check(self) -> None:
        assert not self.missing, f"{len(self.missing)} fires are missing: {self.missing[:3]}"
        assert not self.doubled, f"{len(self.doubled)} fires are doubled: {self.doubled[:3]}"
        assert not self.unexplained, f"{len(self.unexplained)} jobs ran twice: {self.unexplained[:3]}"
        assert self.states == {"succeeded": self.fires}, self.states

    def __str__(self) -> str:
        late, last = self.lateness, len(self.lateness) - 1
        return (
            f"{self.fires:,} fires, {len(self.missing)} missing, {len(self.doubled)} doubled, "
            f"{dict(self.states)}; {self.repeated} ran again after the kill of their worker, "
            f"{len(self.unexplained)} for no reason; lateness p50 {late[last // 2] * 1e3:.1f} ms, "
            f"p99 {late[last * 99 // 100] * 1e3:.0f} ms, greatest {late[-1]:.2f} s"
        )


async def kill_run(
    store: str, broker: BrokerServer, folder: Path, schedules: int, seconds: int, interval: int
) -> Account:
    async with Fleet(store, folder, LEASE) as fleet:
        for roles in PLANNERS * ["planner,dispatcher"] + WORKERS * ["worker"]:
            fleet.spawn(environment={"WORKER_ROLES": roles, "WORKER_QUEUE": broker.url})
        await fleet.joined(PLANNERS + WORKERS)
        lead = timedelta(seconds=12 + schedules / 130)  # a busy machine needs a while to declare them
        plan = Plan(schedules, interval, seconds // interval, datetime.now(UTC) + lead)
        await plan.declare(fleet.app)
        planner, worker = fleet.workers[0], fleet.workers[PLANNERS]
        await sleep_until(plan.at(0.25))
        planner.kill()
        await sleep_until(plan.at(0.4))
        worker.kill()
        await sleep_until(plan.at(0.6))
        await asyncio.to_thread(broker.stop, signal.SIGKILL)
        await asyncio.to_thread(broker.start)
        await sleep_until(plan.end)
        expected = plan.fires()
        async with await psycopg.AsyncConnection.connect(store, autocommit=True) as database:
            async with asyncio.timeout(3 * seconds + TIMEOUT):
                while await count(database, FINISHED) < len(expected):
                    await asyncio.sleep(0.5)  # counting takes the machine's time, too
            rows = await (await database.execute(STORED)).fetchall()
        fleet.check_starts()
        logs = "".join(log.read_text() for log in folder.glob("worker-*.log"))
        assert "the broker does not answer" in logs, "no process used the broker"
        return account_of(fleet, expected, rows, {worker.pid})


def account_of(
    fleet: Fleet, expected: set[Fire], rows: list[tuple[str, datetime, str]], killed: Collection[int] = ()
) -> Account:
    found = Counter((schedule, fire_time.astimezone(UTC)) for schedule, fire_time, _ in rows)
    starts = fleet.starts()
    unexplained = fleet.unexplained(killed)
    return Account(
        len(expected),
        [*(expected - found.keys())],
        [fire for fire, count in found.items() if count > 1 or fire not in expected],
        Counter(state for _, _, state in rows),
        unexplained,
        sum(len(events) > 1 for events in starts.values()) - len(unexplained),
        sorted(events[0]["at"] - events[0]["due"] for events in starts.values()),
    )


async def count(database: psycopg.AsyncConnection[Any], query: str) -> int:
    row = await (await database.execute(query)).fetchone()
    assert row is not None
    return int(row[0])


async def sleep_until(moment: datetime) -> None:
    await asyncio.sleep(max(0.0, (moment - datetime.now(UTC)).total_seconds()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.broker_kills", description=__doc__)
    parser.add_argument("--broker", choices=BROKERS, default="rabbitmq")
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--interval", type=int, default=10, help="seconds between the fires of a schedule")
    options = parser.parse_args()
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        PostgresServer(durable=True) as database,
        BROKERS[options.broker]() as broker,
    ):
        store = database.create_database("kills")
        run = kill_run(store, broker, Path(folder), options.schedules, options.seconds, options.interval)
        account = asyncio.run(run)
    sys.stdout.write(
        f"{options.broker}: {account}\nload of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, "
        f"{time.monotonic() - began:.0f} s\n"
    )
    account.check()


if __name__ == "__main__":
    main()
