"""An app whose leases are in etcd: what it shows, and what it does while etcd is away."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

import duetime as dt
from duetime.api.service import build
from duetime.app.leases import NO_LEASES
from duetime.config import Settings
from duetime.engine.plan.leases import read_leases
from duetime.errors import LeasesUnavailable
from duetime.model.ids import SEGMENTS
from tests.api.conftest import RING, client_of, refused
from tests.app.waiting import eventually
from tests.servers.etcd import EtcdServer
from tests.servers.proxy import Proxy

LEASE = "2s"


@pytest.fixture
async def proxy(etcd_server: EtcdServer) -> AsyncIterator[Proxy]:
    async with Proxy(etcd_server.port) as made:
        yield made


@pytest.fixture
async def app(etcd_url: str, proxy: Proxy) -> dt.App:
    made = dt.App("memory://", leases=f"etcd://127.0.0.1:{proxy.port}?{etcd_url.partition('?')[2]}")

    @made.task("tick")
    async def tick() -> None: ...

    return made


async def all_held(app: dt.App) -> bool:
    with suppress(LeasesUnavailable):
        leases = await app.nodes.leases()
        return len(leases) == SEGMENTS + 1 and {lease.holder for lease in leases} == {1}
    return False


async def test_leases_are_in_etcd_and_shown(app: dt.App) -> None:
    service = build(app, Settings(), ring=RING)  # takes a second on a busy machine: half of a lease
    async with app.running(lease=LEASE), client_of(service) as client:
        await eventually(lambda: all_held(app))
        assert await read_leases(app.store) == []
        shown = (await client.get("/api/v1/leases")).json()["items"]
        assert {lease["holder"] for lease in shown} == {1}
        assert (await app.stats()).leader == 1
        metrics = (await client.get("/metrics")).text
        assert f'duetime_leases{{role="planner",state="held"}} {SEGMENTS + 1}' in metrics
        assert (await client.get("/readyz")).json()["remark"] is None
    await app.open()
    assert {lease.holder for lease in await app.nodes.leases()} == {None}, "the node has left"
    await app.close()


async def test_fires_continue_while_etcd_is_away(
    app: dt.App, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    """Without leases every planner plans what is overdue by a second."""
    caplog.set_level(logging.WARNING, "duetime")
    async with (
        app.running(lease=LEASE, lookahead="1s"),
        client_of(build(app, Settings(), ring=RING)) as client,
    ):
        await eventually(lambda: all_held(app))
        await app.schedule("tick", "tick", dt.Every("1s"), missed=dt.Missed("all"))
        await proxy.blackhole()

        async def noticed() -> bool:
            remark: str | None = (await client.get("/readyz")).json().get("remark")
            return remark == NO_LEASES

        await eventually(noticed)
        assert refused(await client.get("/api/v1/leases"), 503, "leases_unavailable")["detail"] == NO_LEASES
        assert (await app.stats()).leader is None
        ended_at = datetime.now(UTC) + timedelta(seconds=2)  # the leases, at the latest

        async def fired() -> bool:
            jobs = await app.jobs(schedule="tick", state="succeeded", limit=500)
            return sum(job.fire_time > ended_at for job in jobs) >= 3

        await eventually(fired)
        await proxy.pass_through()
        await eventually(lambda: all_held(app))
    told = [record.message for record in caplog.records if record.message.startswith("leases: ")]
    assert len(told) == 2, told
    assert "stops using its leases" in told[0]
    assert told[1] == "leases: etcd answers again"
