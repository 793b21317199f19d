"""The idle cost of a publisher: a worker process with many scheduled posts, none of them due.

python -m tests.momentum.idle --store sqlite --posts 10000 --seconds 60
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import duetime as dt
from momentum.database import posts
from momentum.model import Post
from momentum.publishing.publisher import PUBLISH
from tests.momentum.processes import FleetSettings, MomentumFleet, running_fleet
from tests.momentum.samples import sample_post, utc_now
from tests.servers.postgres import PostgresServer

ACCOUNTS = 50
BATCH = 500


async def idle_share(settings: FleetSettings, folder: Path, count: int, seconds: float) -> float:
    """CPU time of the worker as a share of one core."""
    async with running_fleet(settings, folder) as fleet:
        await plan_posts(fleet, count)
        worker = fleet.spawn()
        await fleet.joined(1)
        await asyncio.sleep(10)  # it has started and caught up
        before = cpu_seconds(worker.pid)
        await asyncio.sleep(seconds)
        return (cpu_seconds(worker.pid) - before) / seconds


async def plan_posts(fleet: MomentumFleet, count: int) -> None:
    accounts = [await fleet.account(f"m-{number}") for number in range(ACCOUNTS)]
    momentum = fleet.momentum
    for first in range(0, count, BATCH):
        async with momentum.database.transaction() as connection:
            made = [
                sample_post(
                    accounts[number % ACCOUNTS], scheduled_at=utc_now() + timedelta(days=1, seconds=number)
                )
                for number in range(first, min(first + BATCH, count))
            ]
            for post in made:
                await posts.insert(connection, post)
            await momentum.app.submit_many([job_of(post) for post in made], connection=connection)


def job_of(post: Post) -> dt.NewJob:
    """As `Publisher.plan` makes it, for many posts together."""
    assert post.scheduled_at is not None
    arguments = {
        "post_id": post.id,
        "post_version": post.version,
        "account_id": post.account_id,
        "scheduled_at": post.scheduled_at.isoformat(),
    }
    return dt.NewJob(PUBLISH, arguments, at=post.scheduled_at, queue="linkedin", labels={"post": post.id})


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    from tests.momentum.platforms.fixtures import running_sandbox

    parser = argparse.ArgumentParser(prog="python -m tests.momentum.idle", description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--posts", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        PostgresServer() as server,
        running_sandbox(Path(name)) as sandbox,
    ):
        url = server.create_database("idle") if options.store == "postgres" else f"sqlite:///{name}/idle.db"
        settings = FleetSettings(url, sandbox.url, f"file://{name}/media")
        share = asyncio.run(idle_share(settings, Path(name), options.posts, options.seconds))
    sys.stdout.write(
        f"{options.store}: {options.posts:,} posts, {share:.2%} of a core over {options.seconds:g} s\n"
    )


if __name__ == "__main__":
    main()
