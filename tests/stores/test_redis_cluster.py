"""The Redis store on a Redis Cluster of three masters: all its keys are in one slot, and every host of the
cluster may be named in the URL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from redis import Redis

import duetime as dt
from duetime.store import Store
from duetime.stores.redis import RedisStore
from duetime.testing.conformance import claim, fire, limits, unique
from tests.servers.brokers import PASSWORD, USER, RedisServer
from tests.servers.redis_cluster import RedisCluster

pytestmark = pytest.mark.slow
PREFIX = "cluster"


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisCluster]:
    with RedisCluster() as cluster:
        yield cluster


@pytest.fixture
def owner(cluster: RedisCluster) -> RedisServer:
    return cluster.owner(f"{{{PREFIX}}}:")


@pytest.fixture
def others(cluster: RedisCluster, owner: RedisServer) -> list[RedisServer]:
    return [server for server in cluster.masters if server is not owner]


@pytest.fixture
async def store(owner: RedisServer, others: list[RedisServer]) -> AsyncIterator[Store]:
    with Redis.from_url(owner.url) as client:
        client.flushall()
    store = RedisStore.from_url(_url_of(*others))  # none of them has the keys
    await store.migrate()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def second_store(store: Store) -> AsyncIterator[Store]:
    second = store.clone()
    await second.open()
    yield second
    await second.close()


class TestRedisCluster(
    unique.AdmissionConformance,
    claim.ClaimConformance,
    limits.LimitConformance,
    fire.FireConformance,
):
    """The verbs that touch most keys: a key in another slot would be refused."""


async def test_all_keys_are_on_one_master(
    store: Store, owner: RedisServer, others: list[RedisServer]
) -> None:
    app = dt.App(_url_of(owner, *others))

    @app.task("double")
    def double(number: int) -> int:
        return 2 * number

    async with app.running():
        await app.schedule("each second", double, dt.Every("1s"), payload={"number": 1})
        job = await app.submit(double, number=21)
        assert (await asyncio.wait_for(job.wait(), 60)).result == 42
    counts = {}
    for server in (owner, *others):
        with Redis.from_url(server.url) as client:
            counts[server.port] = len(list(client.scan_iter(f"{{{PREFIX}}}:*")))
    assert counts.pop(owner.port) > 5
    assert set(counts.values()) == {0}


def _url_of(*servers: RedisServer) -> str:
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    return f"redis://{USER}:{PASSWORD}@{hosts}?prefix={PREFIX}"
