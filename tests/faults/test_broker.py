"""Real processes, PostgreSQL and a broker: the broker is killed, flushed and restarted, planners, dispatchers
and workers are killed. Every job runs, and no attempt starts twice. What brokers do to single messages:
`queues/test_faults.py`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Collection, Iterator
from pathlib import Path

import pytest

import duetime as dt
from tests.faults.broker_kills import kill_run
from tests.faults.fleet import TIMEOUT, Fleet
from tests.servers.brokers import NatsServer, RedisServer
from tests.servers.postgres import PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.server]
JOBS = 200


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    pytest.importorskip("redis")
    with RedisServer() as server:
        yield server


@pytest.fixture
async def brokered(
    durable_server: PostgresServer, redis: RedisServer, tmp_path: Path
) -> AsyncIterator[Fleet]:
    store = durable_server.create_database(f"broker_{redis.port}")
    async with Fleet(store, tmp_path) as fleet:
        yield fleet


def spawn(fleet: Fleet, redis: RedisServer, roles: str) -> None:
    fleet.spawn(environment={"WORKER_ROLES": roles, "WORKER_QUEUE": redis.url})


async def submit(fleet: Fleet) -> list[dt.JobHandle]:
    work = [dt.NewJob("work", payload={"seconds": 0.01}) for _ in range(JOBS)]
    return list(await fleet.app.submit_many(work))


async def check(fleet: Fleet, jobs: list[dt.JobHandle], killed: Collection[int] = ()) -> None:
    await fleet.finished(jobs)
    assert {str(job.state) for job in jobs} == {"succeeded"}, fleet.logs()
    fleet.check_starts()
    assert fleet.unexplained(killed) == []


async def test_jobs_survive_the_end_of_broker_dispatcher_and_worker(
    brokered: Fleet, redis: RedisServer
) -> None:
    fleet = brokered
    for roles in ("planner,dispatcher", "planner,dispatcher", "worker", "worker"):
        spawn(fleet, redis, roles)
    await fleet.joined(4)
    jobs = await submit(fleet)
    await fleet.recorded("effect", JOBS // 4)
    redis.stop(signal.SIGKILL)
    jobs += await submit(fleet)
    await fleet.recorded("effect", 2 * JOBS)  # from the store
    await asyncio.to_thread(redis.start)
    for number, roles in ((0, "planner,dispatcher"), (2, "worker")):
        fleet.workers[number].kill()
        await asyncio.to_thread(fleet.workers[number].wait, TIMEOUT)
        jobs += await submit(fleet)
        spawn(fleet, redis, roles)
    await check(fleet, jobs, {fleet.workers[2].pid})
    assert "the broker does not answer" in fleet.logs()


async def test_worker_returns_to_the_broker(brokered: Fleet, redis: RedisServer) -> None:
    spawn(brokered, redis, "planner,dispatcher,worker")
    await brokered.joined(1)
    await check(brokered, await submit(brokered))
    redis.stop(signal.SIGKILL)
    await check(brokered, await submit(brokered))
    await asyncio.to_thread(redis.start)

    async def returned() -> bool:
        return "worker: the broker answers again" in brokered.logs()

    await brokered.until(returned, "the worker to return")
    await check(brokered, await submit(brokered))


async def test_empty_broker_after_a_flush_loses_no_job(brokered: Fleet, redis: RedisServer) -> None:
    from redis.asyncio import Redis

    spawn(brokered, redis, "planner,dispatcher")
    await brokered.joined(1)
    jobs = await submit(brokered)
    async with Redis.from_url(redis.url, protocol=2) as client:

        async def pushed() -> bool:
            return bool(await client.dbsize())

        await brokered.until(pushed, "messages in the broker")
        await client.flushall()
    spawn(brokered, redis, "worker")
    await check(brokered, jobs)


async def test_every_fire_is_accounted_for_after_kills(
    durable_server: PostgresServer, tmp_path: Path
) -> None:
    """The kill run in small."""
    with NatsServer() as broker:
        store = durable_server.create_database(f"kills_{broker.port}")
        account = await kill_run(store, broker, tmp_path, schedules=200, seconds=10, interval=2)
    account.check()
