"""Kills of MariaDB and of workers on it, and of a server of a Galera cluster: no job is lost, none starts
early, none is completed twice."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

import duetime as dt
from duetime.model.instant import SECOND
from duetime.model.lease import NodeDraft
from duetime.stores.mysql import MySqlStore
from duetime.testing.conformance.drafts import claim, job, request
from tests.faults.fleet import Fleet
from tests.servers.mariadb import GaleraCluster, MariaDbServer

pytestmark = [pytest.mark.slow, pytest.mark.server]

# Galera counts transactions that lost against one on another server, when they committed and before.
CONFLICTS = ("wsrep_local_cert_failures", "wsrep_local_bf_aborts")
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def durable_mariadb() -> Iterator[MariaDbServer]:
    """Syncs to disk, because these tests kill it."""
    with MariaDbServer(durable=True) as server:
        yield server


class Load:
    """Submits jobs until it is stopped; those that the store acknowledged must run."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(self._submit())
        self.acknowledged: list[dt.JobHandle] = []

    async def more(self, count: int = 20) -> float:
        """How many seconds it took."""
        began = asyncio.get_running_loop().time()
        wanted = len(self.acknowledged) + count

        async def enough() -> bool:
            return len(self.acknowledged) >= wanted

        await self._fleet.until(enough, f"{count} more jobs to be acknowledged")
        return asyncio.get_running_loop().time() - began

    async def finish(self) -> None:
        """All acknowledged jobs ran, none early, no attempt twice."""
        self._stop.set()
        await self._task
        await self._fleet.finished(self.acknowledged)
        assert {job.state for job in self.acknowledged} == {"succeeded"}
        assert {job.failures for job in self.acknowledged} == {0}
        self._fleet.check_starts()

    async def _submit(self) -> None:
        while not self._stop.is_set():
            try:
                self.acknowledged.append(await self._fleet.app.submit("work", seconds=0.02))
            except dt.StoreUnavailable:
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.01)


async def test_acknowledged_jobs_survive_kills_of_mariadb_and_workers(
    durable_mariadb: MariaDbServer, tmp_path: Path
) -> None:
    url = durable_mariadb.create_database(f"kills_{next(_numbers)}")
    async with Fleet(url, tmp_path, lease="4s") as fleet:
        survivor, doomed = fleet.spawn(), fleet.spawn()
        await fleet.joined(2)
        await fleet.app.schedule("tick", "work", dt.Every("500ms"), missed=dt.Missed("all"))
        load = Load(fleet)
        await load.more()
        doomed.kill()
        for _ in range(2):
            await load.more()
            await asyncio.to_thread(durable_mariadb.crash)
            await asyncio.to_thread(durable_mariadb.start)
        await load.more()
        await load.finish()
        await fleet.check_fires("tick", 0.5)
        assert survivor.poll() is None, fleet.logs()
        assert "Traceback" not in fleet.logs()


async def test_death_of_a_galera_server_costs_seconds_and_no_job(tmp_path: Path) -> None:
    """Workers and the client use different servers, so that their transactions conflict when they commit."""
    with GaleraCluster() as cluster:
        cluster.nodes[0].create_database("jobs")
        urls = [_url(cluster.nodes[at:] + cluster.nodes[:at]) for at in range(3)]
        await _check_conflicts(cluster, urls)
        # A lease that outlasts the eviction of the dead server, during which the others commit nothing. A node
        # that lost its lease would rightly run its jobs again.
        async with Fleet(urls[0], tmp_path) as fleet:
            for url in urls:
                fleet.spawn(store=url)
            await fleet.joined(3)
            load = Load(fleet)
            usual = await load.more()
            await asyncio.to_thread(cluster.nodes[2].crash)
            outage = await load.more()
            await load.finish()
            assert outage < 30 + 10 * usual, (outage, usual)
            assert all(worker.poll() is None for worker in fleet.workers), fleet.logs()
            assert _status(cluster.nodes[0], "wsrep_cluster_size") == 2


async def _check_conflicts(cluster: GaleraCluster, urls: list[str]) -> None:
    """Claims on two servers find the same jobs; the server that commits second repeats its claim."""
    stores = [MySqlStore.from_url(url) for url in urls[:2]]
    await stores[0].migrate()
    for store in stores:
        await store.open()
    try:
        node = await stores[0].join(NodeDraft("both", ("worker",), ""), 3_600 * SECOND)
        claimed: list[UUID] = []
        rounds = 0
        while not sum(_status(server, name) for server in cluster.nodes for name in CONFLICTS):
            rounds += 1
            assert rounds < 1_000, "claims on two servers never met"
            now = await stores[0].time()
            await stores[0].add_jobs([job(now) for _ in range(20)])
            answers = await asyncio.gather(*(claim(store, request(node, room=20)) for store in stores))
            claimed += [row.id for answer in answers for row in answer]
        assert len(set(claimed)) == len(claimed), "a job was claimed twice"
    finally:
        await stores[0].leave(node)
        for store in stores:
            await store.close()


def _status(server: MariaDbServer, name: str) -> int:
    return int(str(server.execute(f"SHOW STATUS LIKE '{name}'")[0][1]))


def _url(nodes: list[MariaDbServer]) -> str:
    """All servers, the first one preferred."""
    first = nodes[0].database_url("jobs")
    places = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
    return first.replace(f"127.0.0.1:{nodes[0].port}", places)
