"""The database fails (reliability 2.C) and clocks disagree (2.E): on a real PostgreSQL that syncs to disk."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

import duetime as dt
from tests.faults.fleet import LEASE, SHORT_LEASE, Fleet
from tests.servers.postgres import PostgresServer
from tests.servers.proxy import Proxy

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(240)]


async def test_database_crashes_under_load(durable_server: PostgresServer, tmp_path: Path) -> None:
    """C1, A17: whatever was acknowledged is there and runs; processes survive and reconnect by themselves."""
    async with Fleet(durable_server.create_database("crashes"), tmp_path, lease="10s") as fleet:
        workers = [fleet.spawn(), fleet.spawn()]
        await fleet.joined(2)
        await fleet.app.schedule("tick", "work", dt.Every("500ms"))
        acknowledged: list[dt.JobHandle] = []
        stop = asyncio.Event()
        client = asyncio.create_task(_submit(fleet, acknowledged, stop))
        for _ in range(3):
            await asyncio.sleep(1.0)
            await asyncio.to_thread(durable_server.crash)
            await asyncio.to_thread(durable_server.start)
        before = len(acknowledged)
        await fleet.until(lambda: _longer(acknowledged, before + 20), "the client to get through again")
        stop.set()
        await client
        await fleet.finished(acknowledged)
        assert {job.state for job in acknowledged} == {"succeeded"}
        assert all(worker.poll() is None for worker in workers), fleet.logs()
        fleet.check_promises()
        await _check_fires(fleet)
        assert "Traceback" not in fleet.logs()


async def _longer(jobs: list[dt.JobHandle], count: int) -> bool:
    return len(jobs) >= count


async def _submit(fleet: Fleet, acknowledged: list[dt.JobHandle], stop: asyncio.Event) -> None:
    while not stop.is_set():
        try:
            acknowledged.append(await fleet.app.submit("work", seconds=0.02))
        except dt.StoreUnavailable:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.01)


async def _check_fires(fleet: Fleet) -> None:
    await fleet.app.pause("tick")

    async def all_done() -> bool:
        return all(fire.state.final for fire in await fleet.app.jobs(schedule="tick", limit=500))

    await fleet.until(all_done, "every fire to be done")
    fires = sorted(fire.fire_time.timestamp() for fire in await fleet.app.jobs(schedule="tick", limit=500))
    steps = {round(later - earlier, 3) for earlier, later in itertools.pairwise(fires)}
    assert steps == {0.5}, "a fire is missing or doubled"


# Claims wait where somebody else holds the lock, as they would for a disk or a standby.
SLOW_CLAIMS = """
CREATE FUNCTION stand_by() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END';
CREATE TRIGGER slow AFTER UPDATE ON duetime.jobs FOR EACH ROW WHEN (NEW.state = 'running') EXECUTE FUNCTION stand_by();
"""
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'late_claim' AND wait_event = 'advisory'"
# It asks when the next job is due: before that it has asked what it holds.
GOING_ON = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'late_claim' AND state = 'idle' AND query LIKE '%least(min(%'"


async def test_a_claim_that_commits_after_its_node_asked_what_it_holds(durable_server: PostgresServer, tmp_path: Path) -> None:
    """A8, C3: the node lives on, so nobody else would ever give the job back."""
    url = durable_server.create_database("late_claim")
    async with Fleet(url, tmp_path) as fleet, Proxy(durable_server.port) as proxy:
        fleet.spawn(store=url.replace(str(durable_server.port), str(proxy.port)))
        await fleet.joined(1)
        with psycopg.connect(url, autocommit=True) as holder:
            holder.execute(SLOW_CLAIMS)
            holder.execute("SELECT pg_advisory_lock(1)")
            job = await fleet.app.submit("work")
            await fleet.until(lambda: _counts(holder, WAITING), "the claim to wait")
            proxy.cut()
            await fleet.until(lambda: _counts(holder, GOING_ON), "the node to go on claiming")
        await fleet.finished([job])
        assert job.state == "succeeded"
        fleet.check_promises()


async def _counts(connection: psycopg.Connection, query: LiteralString) -> bool:
    row = connection.execute(query).fetchone()
    return row is not None and row[0] > 0


async def test_unreachable_database_is_told_at_once(tmp_path: Path) -> None:
    app = dt.App("postgresql://postgres:secret-word@127.0.0.1:1/nowhere")
    with pytest.raises(dt.StoreUnavailable) as told:
        await app.open()
    assert "127.0.0.1" in str(told.value)
    assert "secret-word" not in str(told.value)


async def test_clocks_ninety_seconds_apart(durable_server: PostgresServer, tmp_path: Path) -> None:
    """E1: nodes follow the database's clock, so nothing starts early, no lease is stolen and nobody waits."""
    async with Fleet(durable_server.create_database("skew"), tmp_path) as fleet:
        fleet.spawn(environment={"WORKER_SKEW": "90"})
        fleet.spawn(environment={"WORKER_SKEW": "-45"})
        await fleet.joined(2)
        await fleet.app.schedule("tick", "work", dt.Every("500ms"))
        jobs = await fleet.app.submit_many([dt.NewJob("work", payload={"seconds": 2.5}, delay=f"{number * 100}ms") for number in range(30)])
        await fleet.finished(jobs)
        assert {(str(job.state), job.attempt) for job in jobs} == {("succeeded", 1)}, "a lease was taken from a living node"
        fleet.check_promises()
        lateness = [event["at"] - event["due"] for event in fleet.seen("start")]
        assert max(lateness) < 30.0, "a skewed clock held work back: by 45 s or 90 s"


async def test_lost_heartbeats_fence_the_node(durable_server: PostgresServer, tmp_path: Path) -> None:
    """B9, C12: cut off from the database beyond its lease, a node stops by itself; another does the work; it returns when healed."""
    url = durable_server.create_database("partition")
    async with Fleet(url, tmp_path, lease=SHORT_LEASE) as fleet, Proxy(durable_server.port) as proxy:
        cut_off = fleet.spawn(store=url.replace(str(durable_server.port), str(proxy.port)))
        await fleet.joined(1)
        job = await fleet.app.submit("work", seconds=4.0)
        await fleet.until(lambda: _seen(fleet, 1), "the job to start")
        await proxy.blackhole()
        fleet.lease = LEASE
        fleet.spawn()
        await fleet.finished([job])
        assert (job.state, job.attempt) == ("succeeded", 2)
        await proxy.pass_through()
        await fleet.joined(2)
        more = await fleet.app.submit_many([dt.NewJob("work") for _ in range(40)])
        await fleet.finished(more)
        await job.refresh()
        assert (job.attempt, job.result) == (2, 2)
        assert cut_off.poll() is None
        fleet.check_promises()


async def _seen(fleet: Fleet, times: int) -> bool:
    return len(fleet.seen("start")) >= times


async def test_rows_locked_by_somebody_else_delay_only_themselves(durable_server: PostgresServer, tmp_path: Path) -> None:
    """B8, C11: a lock on a job held for longer than the lease neither stops the heart nor other jobs."""
    url = durable_server.create_database("locks")
    async with Fleet(url, tmp_path, lease="5s") as fleet:
        fleet.spawn()
        await fleet.joined(1)
        long_job = await fleet.app.submit("work", seconds=2.0)
        await fleet.until(lambda: _seen(fleet, 1), "the job to start")
        with psycopg.connect(url) as holder:
            holder.execute("SELECT 1 FROM duetime.jobs WHERE id = %s FOR UPDATE", (long_job.id,))
            others = await fleet.app.submit_many([dt.NewJob("work") for _ in range(10)])
            await fleet.finished(others)
            await asyncio.sleep(6.0)  # the lock itself: longer than the lease
            await fleet.until(lambda: _beats(fleet), "the heart to beat")
            holder.rollback()
        await fleet.finished([long_job])
        assert {job.attempt for job in others} == {1}
        fleet.check_promises()


async def _beats(fleet: Fleet) -> bool:
    now = await fleet.app.now()
    return any(not node.dead and node.lease_until > now for node in await fleet.app.nodes())
