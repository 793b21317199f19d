"""Failures of Redis: a killed server, full memory, a replica that takes over."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.stores.redis import RedisStore
from duetime.stores.redis.address import parse
from duetime.stores.redis.connection import RedisConnection
from tests.faults.crashes import survive_crashes
from tests.faults.fleet import Fleet
from tests.servers.brokers import PASSWORD, USER, RedisServer

pytestmark = pytest.mark.slow


async def test_acknowledged_jobs_survive_kills_of_the_server(tmp_path: Path) -> None:
    """With `appendfsync everysec`; `test_kills.py` kills one with `always`, too."""
    with RedisServer() as server:

        def crash() -> None:
            server.stop(signal.SIGKILL)
            server.start()

        async with Fleet(server.url, tmp_path, lease="10s") as fleet:
            await survive_crashes(fleet, crash)


async def test_full_memory_refuses_jobs_and_finishes_the_accepted_ones(tmp_path: Path) -> None:
    with RedisServer() as server:
        async with Fleet(server.url, tmp_path) as fleet:
            accepted = await fleet.app.submit_many([dt.NewJob("work") for _ in range(50)])
            await _command(server, "CONFIG", "SET", "maxmemory", "1mb")
            with pytest.raises(dt.StoreFull, match="maxmemory"):
                await fleet.app.submit("work")
            assert len(await fleet.app.jobs(limit=100)) == 50
            fleet.spawn()
            await fleet.finished(accepted)
            assert {job.state for job in accepted} == {"succeeded"}
            fleet.check_starts()


@pytest.fixture
def replicated() -> Iterator[tuple[RedisServer, RedisServer]]:
    """A server and its replica."""
    with RedisServer(repl_diskless_sync_delay="0") as server:
        replica = RedisServer(replicaof=f"127.0.0.1 {server.port}", masterauth=PASSWORD, masteruser=USER)
        with replica:
            yield server, replica
            replica.stop(signal.SIGKILL)  # it does not end while it writes its first AOF


async def test_workers_continue_on_a_promoted_replica(
    replicated: tuple[RedisServer, RedisServer], tmp_path: Path
) -> None:
    server, replica = replicated
    async with Fleet(_url_of(*replicated), tmp_path, lease="10s") as fleet:
        fleet.spawn()
        await fleet.joined(1)
        assert await _command(server, "WAIT", 1, 30_000) == 1  # the replica has its first copy
        jobs = await fleet.app.submit_many([dt.NewJob("work", payload={"seconds": 0.5}) for _ in range(50)])
        later = await fleet.app.submit_many([dt.NewJob("work", delay="2s") for _ in range(20)])
        assert await _command(server, "WAIT", 1, 30_000) == 1
        await asyncio.to_thread(server.stop, signal.SIGKILL)
        await _command(replica, "REPLICAOF", "NO", "ONE")
        await fleet.finished([*jobs, *later])
        assert {job.state for job in (*jobs, *later)} == {"succeeded"}
        fleet.check_starts()


async def test_reader_does_not_stay_with_a_replica(replicated: tuple[RedisServer, RedisServer]) -> None:
    """A replica answers reads with what it knew a moment ago."""
    server, replica = replicated
    await RedisStore.from_url(server.url).migrate()
    store = RedisStore.from_url(_url_of(replica, server))
    await store.open()
    try:
        for each in replicated:
            await _command(each, "CONFIG", "RESETSTAT")
        await store.get_record("kind", "tenant", "key")
        calls = [await _command(each, "INFO", "commandstats") for each in replicated]
        assert [b"cmdstat_fcall:" in call for call in calls] == [True, False]
    finally:
        await store.close()


def _url_of(*servers: RedisServer) -> str:
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    return f"redis://{USER}:{PASSWORD}@{hosts}"


async def _command(server: RedisServer, *command: str | int) -> Any:
    connection = RedisConnection(parse(server.url))
    try:
        return await connection.command(*command)
    finally:
        await connection.close()
