"""Restored files of a real Redis server: with `max_silence` in the URL, a store without a living node for longer
than that is refused, whether a copy of its files or the files themselves are older."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

import duetime as dt
from duetime.app.adoption import Adoption
from duetime.errors import StoreNotAdopted
from duetime.stores.redis import RedisStore
from tests.servers.brokers import RedisServer
from tests.servers.process import give

pytestmark = pytest.mark.slow  # servers of their own

OPTIONS = "?prefix=copies&max_silence=3s"
LEASE = "500ms"
TIMEOUT = 60


@pytest.fixture
def production() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


async def is_refused(server: RedisServer) -> bool:
    app = dt.App(f"{server.url}{OPTIONS}")
    try:
        await app.open()
    except StoreNotAdopted as refused:
        return "no node has lived since" in str(refused)
    await app.close()
    return False


async def until_refused(server: RedisServer) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not await is_refused(server):
            await asyncio.sleep(0.1)


async def adopt(server: RedisServer) -> None:
    store = RedisStore.from_url(f"{server.url}{OPTIONS}")
    await store.open()
    await Adoption(store).adopt(None, None)
    await store.close()


def copy_of_snapshot(server: RedisServer) -> RedisServer:
    """A server on a copy of the RDB file, as docs/backup.md says it: with `appendonly yes` from the start, Redis
    would not read the file."""
    copy = RedisServer(durable=False)
    with Redis.from_url(server.url) as client:
        client.save()
    file = copy.folder / "dump.rdb"
    shutil.copy(server.folder / file.name, file)
    give(file)
    copy.start()
    with Redis.from_url(copy.url) as client:
        client.config_set("appendonly", "yes")
    return copy


async def test_server_on_a_copy_of_the_snapshot_is_refused(production: RedisServer) -> None:
    """Next to production, whose nodes work all the time."""
    app = dt.App(f"{production.url}{OPTIONS}")
    await app.migrate()
    async with app.running(lease=LEASE):
        job = await app.submit("later", delay="1h")
        copy = await asyncio.to_thread(copy_of_snapshot, production)
        try:
            await until_refused(copy)
            assert not await is_refused(production)
            await adopt(copy)
            adopted = dt.App(f"{copy.url}{OPTIONS}")
            async with adopted.running(lease=LEASE):
                assert (await adopted.get_job(job.id)).id == job.id
        finally:
            copy.close()


async def test_older_append_only_file_in_place_is_refused(production: RedisServer, tmp_path: Path) -> None:
    app = dt.App(f"{production.url}{OPTIONS}")
    await app.migrate()
    async with app.running(lease=LEASE):
        pass
    production.stop()
    files = production.folder / "appendonlydir"
    yesterday = shutil.copytree(files, tmp_path / "yesterday")
    production.start()
    async with app.running(lease=LEASE):
        lived_from = await app.store.time()
        async with asyncio.timeout(TIMEOUT):
            while await app.store.time() < lived_from + 4_000_000:  # longer than max_silence
                await asyncio.sleep(0.1)
    production.restart()
    assert not await is_refused(production)
    production.stop()
    shutil.rmtree(files)
    shutil.copytree(yesterday, files)
    for path in (files, *files.iterdir()):
        give(path)
    production.start()
    assert await is_refused(production)
    await adopt(production)
    assert not await is_refused(production)


def test_wrong_duration_is_named() -> None:
    with pytest.raises(dt.ConfigError, match="max_silence"):
        RedisStore.from_url("redis://localhost?max_silence=soon")
