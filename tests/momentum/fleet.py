"""The fleet proof: posts due within a short time, three workers on PostgreSQL, a broker or none, workers killed
at random and started again, and a LinkedIn with faults. Afterwards LinkedIn has each post once, or the post is
`unknown`; none is lost, none early.

python -m tests.momentum.fleet --queue sqs --posts 200 --seconds 60
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from momentum.database import posts, tables
from momentum.model import Account, Post, PostState
from tests.momentum.platforms.fixtures import running_sandbox
from tests.momentum.processes import FleetSettings, MomentumFleet, running_fleet
from tests.momentum.samples import utc_now
from tests.servers.brokers import MotoServer, RabbitServer
from tests.servers.postgres import PostgresServer

QUEUES = ("sqs", "rabbitmq", "store")
WORKERS = 3
MEMBERS, ORGANIZATIONS = 12, 8
THROTTLED = "m-0"  # this member gets a 429, and a person ends its hold at the end
CLOCK_ERROR = timedelta(milliseconds=2)
OPTIONS = {
    "lead": 2.0,
    "call_timeout": 5.0,
    "max_attempts": 12,
    "first_delay": 0.2,
    "max_delay": 2.0,
    "hold_jitter": 0.0,
    "recheck": 0.1,
    "find_delays": [1.0, 2.0, 3.0],
    "watch_interval": 5.0,
    "stranded_after": 30.0,
}
# kind, how many of a hundred posts it hits, and its other fields
FAULTS: Sequence[tuple[str, int, dict[str, Any]]] = (
    ("timeout_after", 4, {}),
    ("reset_after", 4, {}),
    ("error_after", 3, {"status": 502}),
    ("error_before", 3, {"status": 503}),
    ("reset_before", 2, {}),
    ("conflict", 6, {}),
    ("slow", 6, {"seconds": 1.0}),
)


@dataclass
class Tally:
    """What became of the posts."""

    posts: int
    kills: int
    states: Counter[str] = field(default_factory=Counter)
    doubled: list[str] = field(default_factory=list)  # more than once at LinkedIn
    lost: list[str] = field(default_factory=list)  # not at LinkedIn, and the post says otherwise or nothing
    early: list[str] = field(default_factory=list)
    unknown_there: int = 0  # in doubt, and LinkedIn has it
    faults: int = 0
    attempts: int = 0
    lateness: list[float] = field(default_factory=list)  # seconds, sorted
    undisturbed: list[float] = field(default_factory=list)  # of posts that no fault and no kill delayed

    def check(self) -> None:
        assert not self.doubled, f"{len(self.doubled)} posts are doubled: {self.doubled[:3]}"
        assert not self.lost, f"{len(self.lost)} posts are lost: {self.lost[:3]}"
        assert not self.early, f"{len(self.early)} posts are early: {self.early[:3]}"
        assert set(self.states) <= {"published", "unknown"}, self.states

    def table(self) -> str:
        rows = {
            "posts": self.posts,
            "published": self.states["published"],
            "unknown, LinkedIn has it": self.unknown_there,
            "unknown, LinkedIn does not": self.states["unknown"] - self.unknown_there,
            "doubled": len(self.doubled),
            "lost": len(self.lost),
            "early": len(self.early),
            "attempts": self.attempts,
            "faults of LinkedIn": self.faults,
            "workers killed": self.kills,
            "lateness p50": _milliseconds(self.lateness, 0.5),
            "lateness p99": _milliseconds(self.lateness, 0.99),
            "lateness p50, first attempt": _milliseconds(self.undisturbed, 0.5),
            "lateness p99, first attempt": _milliseconds(self.undisturbed, 0.99),
        }
        width = max(map(len, rows))
        return "\n".join(f"{name:<{width}}  {value:>10}" for name, value in rows.items())


async def fleet_run(
    settings: FleetSettings, folder: Path, count: int, seconds: float, kill_every: float, seed: int = 1
) -> Tally:
    chance = random.Random(seed)
    async with running_fleet(settings, folder) as fleet:
        await script_faults(fleet, count)
        accounts = await make_accounts(fleet)
        throttled = accounts[0]
        for _ in range(WORKERS):
            fleet.spawn()
        await fleet.joined(WORKERS)
        begin = utc_now() + timedelta(seconds=1 + count / 40)  # so long it takes to store them
        planned = await make_posts(fleet, accounts, count, begin, seconds, chance)
        kills = asyncio.create_task(kill_workers(fleet, begin, seconds, kill_every, chance))
        await sleep_until(begin + timedelta(seconds=seconds))
        killed = await kills

        async def ended() -> bool:
            await release(fleet, throttled)
            return await all_decided(fleet)

        await fleet.until(ended, "all posts to be decided", timeout=60 + 2 * seconds)
        tally = await tally_of(fleet, planned, throttled)
        tally.kills = killed
        return tally


async def script_faults(fleet: MomentumFleet, count: int) -> None:
    await fleet.sandbox.change(member_daily_limit=1_000_000, app_daily_limit=1_000_000, processing_seconds=0)
    for number, (kind, percent, fields) in enumerate(FAULTS):
        times = max(1, count * percent // 100)
        await fleet.sandbox.faults(kind, times=times, skip=number, every=5, **fields)
    await fleet.sandbox.faults("throttle_member", author=f"urn:li:person:{THROTTLED}")


async def make_accounts(fleet: MomentumFleet) -> list[Account]:
    members = [await fleet.account(f"m-{number}") for number in range(MEMBERS)]
    return [*members, *[await fleet.account(f"o-{n}", organization=9000 + n) for n in range(ORGANIZATIONS)]]


async def make_posts(
    fleet: MomentumFleet,
    accounts: Sequence[Account],
    count: int,
    begin: datetime,
    seconds: float,
    chance: random.Random,
) -> list[Post]:
    numbers, made = iter(range(count)), list[Post]()

    async def make_some() -> None:
        for number in numbers:
            due = begin + timedelta(seconds=chance.uniform(0, seconds))
            made.append(await fleet.post(accounts[number % len(accounts)], scheduled_at=due))

    await asyncio.gather(*(make_some() for _ in range(8)))
    return made


async def kill_workers(
    fleet: MomentumFleet, begin: datetime, seconds: float, every: float, chance: random.Random
) -> int:
    """Kill one at a time, and start another in its place."""
    end, kills = begin + timedelta(seconds=seconds), 0
    await sleep_until(begin)
    while utc_now() + timedelta(seconds=every) < end or not kills:
        await asyncio.sleep(chance.uniform(0.5, 1.0) * every)
        victim = chance.choice([worker for worker in fleet.workers if worker.poll() is None])
        await fleet.kill(victim)
        fleet.spawn()
        kills += 1
        await fleet.joined(WORKERS)
    return kills


async def release(fleet: MomentumFleet, throttled: Account) -> None:
    """A person ends the hold of the throttled member."""
    async with fleet.momentum.database.transaction() as connection:
        await fleet.momentum.publisher.resume(connection, "linkedin", throttled.id)


async def all_decided(fleet: MomentumFleet) -> bool:
    """No post is on its way, and no post of an organization waits for its look-up."""
    table, accounts = tables.posts, tables.accounts
    decided = [PostState.PUBLISHED.value, PostState.UNKNOWN.value, PostState.FAILED.value]
    looked_up = (
        (table.c.state == PostState.UNKNOWN.value)
        & (accounts.c.kind == "organization")
        & (table.c.error_code != "not_found")
    )
    query = (
        select(func.count())
        .select_from(table.join(accounts, accounts.c.id == table.c.account_id))
        .where(table.c.state.not_in(decided) | looked_up)
    )
    async with fleet.momentum.database.reading() as connection:
        return (await connection.execute(query)).scalar() == 0


async def tally_of(fleet: MomentumFleet, planned: Sequence[Post], throttled: Account) -> Tally:
    there: dict[str, list[dict[str, Any]]] = {}
    for each in await fleet.sandbox.posts():
        there.setdefault(each["typed"], []).append(each)
    async with fleet.momentum.database.reading() as connection:
        stored = [await posts.get(connection, None, post.id) for post in planned]
        query = select(tables.attempts.c.post_id, func.count()).group_by(tables.attempts.c.post_id)
        tries = {row[0]: row[1] for row in await connection.execute(query)}
    tally = Tally(len(planned), 0)
    tally.attempts = sum(tries.values())
    faults = await fleet.sandbox.scripted()
    tally.faults = sum(fault["done"] for fault in faults)
    assert faults[-1]["done"] == 1, "no post was throttled"
    for post in stored:
        copies = there.pop(post.content.text, [])
        tally.states[post.state.value] += 1
        if len(copies) > 1:
            tally.doubled.append(post.id)
        if post.state is PostState.PUBLISHED and [post.platform_id] != [each["id"] for each in copies]:
            tally.lost.append(f"{post.id}: {post.platform_id} is not {copies}")
        if post.state not in (PostState.PUBLISHED, PostState.UNKNOWN):
            tally.lost.append(f"{post.id}: {post.state.value} {post.error}")
        tally.unknown_there += post.state is PostState.UNKNOWN and bool(copies)
        for copy in copies[:1]:
            assert post.scheduled_at is not None
            late = datetime.fromisoformat(copy["created_at"]) - post.scheduled_at
            if late < -CLOCK_ERROR:
                tally.early.append(f"{post.id}: {late}")
            if post.account_id == throttled.id:
                continue  # it waits for the person who ends its hold
            tally.lateness.append(late.total_seconds())
            if tries.get(post.id) == 1 and post.state is PostState.PUBLISHED:
                tally.undisturbed.append(late.total_seconds())
    assert not there, f"LinkedIn has posts that were not planned: {[*there][:3]}"
    tally.lateness.sort()
    tally.undisturbed.sort()
    return tally


@contextmanager
def queue_server(name: str) -> Iterator[str | None]:
    """The URL of a broker on this machine; None for the store."""
    if name == "sqs":
        with MotoServer() as moto:
            yield f"sqs://key:secret@eu-west-1?endpoint={moto.endpoint}"
    elif name == "rabbitmq":
        with RabbitServer() as rabbit:
            yield rabbit.url
    else:
        yield None


async def sleep_until(moment: datetime) -> None:
    await asyncio.sleep(max(0.0, (moment - utc_now()).total_seconds()))


def _milliseconds(sorted_seconds: Sequence[float], share: float) -> str:
    if not sorted_seconds:
        return "-"
    return f"{sorted_seconds[int((len(sorted_seconds) - 1) * share)] * 1e3:,.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.momentum.fleet", description=__doc__)
    parser.add_argument("--queue", choices=QUEUES, default="store")
    parser.add_argument("--posts", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0, help="the posts are due within this time")
    parser.add_argument("--kill-every", type=float, default=5.0, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        PostgresServer(durable=True) as database,
        queue_server(options.queue) as queue,
        running_sandbox(Path(folder)) as sandbox,
    ):
        settings = FleetSettings(
            database.create_database("fleet"),
            sandbox.url,
            f"file://{folder}/media",
            queue=queue,
            options=OPTIONS,
        )
        run = fleet_run(
            settings, Path(folder), options.posts, options.seconds, options.kill_every, options.seed
        )
        tally = asyncio.run(run)
    sys.stdout.write(
        f"queue: {options.queue}\n{tally.table()}\n"
        f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, "
        f"{time.monotonic() - began:.0f} s\n"
    )
    tally.check()


if __name__ == "__main__":
    main()
