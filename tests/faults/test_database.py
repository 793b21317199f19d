"""Failures of the database, network partitions, lock waits and wrong clocks, on a PostgreSQL that syncs to
disk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

import duetime as dt
from tests.faults.crashes import survive_crashes
from tests.faults.fleet import LEASE, SHORT_LEASE, Fleet
from tests.servers.postgres import PostgresServer
from tests.servers.proxy import Proxy

pytestmark = [pytest.mark.slow, pytest.mark.server]
NOT_RENEWED = "its lease could not be renewed in time"


async def test_acknowledged_jobs_survive_database_crashes(
    durable_server: PostgresServer, tmp_path: Path
) -> None:
    def crash() -> None:
        durable_server.crash()
        durable_server.start()

    async with Fleet(durable_server.create_database("crashes"), tmp_path, lease="10s") as fleet:
        await survive_crashes(fleet, crash)


# Claims wait while another session holds the lock, as they would for a slow disk or a standby.
SLOW_CLAIMS = """
CREATE FUNCTION wait_for_lock() RETURNS trigger LANGUAGE plpgsql
AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END';
CREATE TRIGGER slow AFTER UPDATE ON duetime.jobs
FOR EACH ROW WHEN (NEW.state = 'running') EXECUTE FUNCTION wait_for_lock();
"""
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'late_claim' AND wait_event = 'advisory'"
# The node reads when the next job is due; before that it has read which jobs it holds.
CONTINUED = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = 'late_claim' AND state = 'idle' AND query LIKE '%min(c.due_at) AS due_at%'
"""


async def test_job_of_a_claim_that_commits_late_runs(durable_server: PostgresServer, tmp_path: Path) -> None:
    """The node has already checked which jobs it holds. It stays alive, so no other node would recover the
    job."""
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
            await fleet.until(lambda: _counts(holder, CONTINUED), "the node to continue claiming")
        await fleet.finished([job])
        assert job.state == "succeeded"
        fleet.check_starts()


async def _counts(connection: psycopg.Connection, query: LiteralString) -> bool:
    row = connection.execute(query).fetchone()
    return row is not None and row[0] > 0


async def test_unreachable_database_raises_without_the_password(tmp_path: Path) -> None:
    app = dt.App("postgresql://postgres:secret-word@127.0.0.1:1/nowhere")
    with pytest.raises(dt.StoreUnavailable) as caught:
        await app.open()
    assert "127.0.0.1" in str(caught.value)
    assert "secret-word" not in str(caught.value)


async def test_nodes_with_wrong_clocks_follow_the_database(
    durable_server: PostgresServer, tmp_path: Path
) -> None:
    """No job starts early or late, and no node loses its lease."""
    async with Fleet(durable_server.create_database("skew"), tmp_path) as fleet:
        fleet.spawn(environment={"WORKER_SKEW": "90"})
        fleet.spawn(environment={"WORKER_SKEW": "-45"})
        await fleet.joined(2)
        await fleet.app.schedule("tick", "work", dt.Every("500ms"))
        jobs = await fleet.app.submit_many(
            [dt.NewJob("work", payload={"seconds": 2.5}, delay=f"{number * 100}ms") for number in range(30)]
        )
        await fleet.finished(jobs)
        assert {(str(job.state), job.attempt) for job in jobs} == {("succeeded", 1)}, (
            "a living node lost its lease"
        )
        fleet.check_starts()
        lateness = [event["at"] - event["due"] for event in fleet.seen("start")]
        assert max(lateness) < 30.0, "a wrong clock delayed jobs by 45 s or 90 s"


async def test_partitioned_node_stops_and_rejoins(durable_server: PostgresServer, tmp_path: Path) -> None:
    """A node without the database stops its jobs when its lease ends. Another node runs them. Later the first
    one joins again."""
    url = durable_server.create_database("partition")
    async with Fleet(url, tmp_path, lease=SHORT_LEASE) as fleet, Proxy(durable_server.port) as proxy:
        cut_off = fleet.spawn(store=url.replace(str(durable_server.port), str(proxy.port)))
        await fleet.joined(1)
        job = await fleet.app.submit("work", seconds=4.0)
        await fleet.recorded("start", 1)
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
        fleet.check_starts()


async def test_node_whose_heartbeats_alone_fail_stops_its_jobs_and_joins_again(
    durable_server: PostgresServer, tmp_path: Path
) -> None:
    """B9. Another session locks the row of the node: it could claim and settle, but it cannot renew its
    lease."""
    async with Fleet(durable_server.create_database("heartbeats"), tmp_path, lease=SHORT_LEASE) as fleet:
        fleet.spawn()
        await fleet.joined(1)
        [node] = await fleet.app.nodes()
        job = await fleet.app.submit("work", seconds=6.0)
        await fleet.recorded("start", 1)
        with psycopg.connect(fleet.store) as holder:
            holder.execute("SELECT FROM duetime.nodes WHERE id = %s FOR UPDATE", [node.id])

            async def stopped() -> bool:
                return NOT_RENEWED in fleet.logs()

            await fleet.until(stopped, "the node to stop its jobs")
            assert time.time() < fleet.seen("start")[0]["at"] + 6.0, "it stops before its job would end"
            holder.rollback()
        await fleet.finished([job])
        assert (job.state, job.attempt, job.failures) == ("succeeded", 2, 0)
        assert [event["attempt"] for event in fleet.seen("effect")] == [2]
        assert node.id not in {other.id for other in await fleet.app.nodes() if not other.dead}
        fleet.check_starts()


@contextmanager
def _without_connections(url: str) -> Iterator[None]:
    """All connections that the server allows are in use, and no other program has one."""
    others = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> ALL (%s)"""
    with ExitStack() as stack:
        held = [stack.enter_context(psycopg.connect(url, autocommit=True))]
        ended = None
        while ended != (0,):
            try:
                held.append(stack.enter_context(psycopg.connect(url)))
            except psycopg.OperationalError:
                pids = [connection.info.backend_pid for connection in held]
                ended = held[0].execute(others, [pids]).fetchone()
        yield


async def test_server_without_free_connections_delays_jobs_and_ends_no_node(tmp_path: Path) -> None:
    """C9."""
    with PostgresServer(settings={"max_connections": "60"}) as server:
        async with Fleet(server.create_database("connections"), tmp_path, SHORT_LEASE) as fleet:
            workers = [fleet.spawn(), fleet.spawn()]
            await fleet.joined(2)
            jobs = await fleet.app.submit_many([dt.NewJob("work", delay=f"{n * 100}ms") for n in range(80)])
            with _without_connections(fleet.store):
                with pytest.raises(dt.StoreUnavailable):
                    await fleet.app.submit("work")

                async def both_stopped() -> bool:
                    return all(NOT_RENEWED in log.read_text() for log in tmp_path.glob("worker-*.log"))

                await fleet.until(both_stopped, "the leases to end")
            await fleet.finished(jobs)
            assert {str(job.state) for job in jobs} == {"succeeded"}
            assert all(worker.poll() is None for worker in workers), fleet.logs()
            assert "Traceback" not in fleet.logs()
            fleet.check_starts()


async def test_locked_job_does_not_delay_heartbeat_or_other_jobs(
    durable_server: PostgresServer, tmp_path: Path
) -> None:
    """Another session holds the lock for longer than the lease."""
    url = durable_server.create_database("locks")
    async with Fleet(url, tmp_path, lease="5s") as fleet:
        fleet.spawn()
        await fleet.joined(1)
        long_job = await fleet.app.submit("work", seconds=2.0)
        await fleet.recorded("start", 1)
        with psycopg.connect(url) as holder:
            holder.execute("SELECT 1 FROM duetime.jobs WHERE id = %s FOR UPDATE", (long_job.id,))
            others = await fleet.app.submit_many([dt.NewJob("work") for _ in range(10)])
            await fleet.finished(others)
            [node] = await fleet.app.nodes()
            await fleet.until(
                lambda: _renewed_since(fleet, node.lease_until), "a heartbeat after the first lease"
            )
            holder.rollback()
        await fleet.finished([long_job])
        assert {job.attempt for job in others} == {1}
        fleet.check_starts()


async def _renewed_since(fleet: Fleet, lease_until: int) -> bool:
    """Whether that lease has ended and the node has a later one."""
    now = await fleet.app.now()
    return now > lease_until and any(
        not node.dead and node.lease_until > now for node in await fleet.app.nodes()
    )
