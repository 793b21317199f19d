"""Stores that were restored: under a running node, and with the tools of MariaDB."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

import duetime as dt
from duetime.app.adoption import STAMP, Adoption, fence, refuse_unadopted, why_refused
from duetime.app.health import Health
from duetime.app.store_copy import StoreCopy
from duetime.errors import StoreNotAdopted
from duetime.model.codec import encode
from duetime.model.events import Event, TurnFailed
from duetime.model.identity import Stamp
from duetime.model.instant import SECOND, to_datetime
from duetime.model.job import DEFAULT_TENANT, JobFilter, State
from duetime.model.schedule import MissedPolicy
from duetime.model.when import Every
from duetime.stores import from_url
from duetime.stores.memory import MemoryStore
from duetime.testing.conformance.drafts import HOUR, put, schedule
from tests.servers.mariadb import MariaDbServer


async def test_node_does_not_join_a_store_that_was_restored_meanwhile(tmp_path: Path) -> None:
    refused = asyncio.Event()

    def watch(event: Event) -> None:
        if isinstance(event, TurnFailed) and isinstance(event.problem, StoreNotAdopted):
            refused.set()

    app = dt.App(f"sqlite:///{tmp_path}/duetime.db", observers=[watch])
    ran: list[int] = []

    @app.task("count")
    async def count() -> None:
        ran.append(1)

    async with app.running() as node:
        await fence(app.store, "the store was restored")
        node.fenced("its lease ended while the database was away")
        async with asyncio.timeout(60):
            await refused.wait()
        job = await app.submit("count")
        assert node.heartbeat is None
        assert "restored" in str(await Health(app)._store_trouble())
        assert ran == []
        await Adoption(app.store).adopt(None, None)
        await job.wait(timeout="60s")


async def test_restored_store_is_not_copied(tmp_path: Path) -> None:
    source, target = from_url(f"sqlite:///{tmp_path}/duetime.db"), MemoryStore()
    await source.open()
    await fence(source, "the store was restored")
    with pytest.raises(StoreNotAdopted, match="adopt"):
        await StoreCopy(source, target, "source", lambda _: None).run()
    await source.close()


@pytest.fixture
def mariadb_url(mariadb_server: MariaDbServer) -> Iterator[str]:
    yield mariadb_server.create_database("adoption")
    mariadb_server.execute("DROP DATABASE adoption")


async def test_tables_that_a_dump_made_are_noticed(mariadb_server: MariaDbServer, mariadb_url: str) -> None:
    """A dump drops a table and makes it again, after the last heartbeat that is in it."""
    store = from_url(mariadb_url)
    await store.migrate()
    await store.open()
    await refuse_unadopted(store)
    await refuse_unadopted(store)
    an_hour_ago = Stamp("", "", await store.time() - HOUR)
    await store.put_record(*STAMP, encode(asdict(an_hour_ago)))
    mariadb_server.execute(
        "CREATE TABLE adoption.dumped AS SELECT * FROM adoption.duetime_schema_version; "
        "DROP TABLE adoption.duetime_schema_version; "
        "RENAME TABLE adoption.dumped TO adoption.duetime_schema_version"
    )
    with pytest.raises(StoreNotAdopted, match="older than its last use"):
        await refuse_unadopted(store)
    await Adoption(store).adopt(None, None)
    assert await why_refused(store) is None
    await store.close()


@pytest.mark.parametrize(("missed", "runs"), [("skip", 0), ("latest", 1), ("all", 6)])
async def test_policy_decides_about_the_last_seconds(missed: MissedPolicy, runs: int) -> None:
    """A node may have called these fires already, up to the last one."""
    store = MemoryStore()
    await store.open()
    now = await store.time()
    every_second = schedule("beat", when=Every("1s", anchor=to_datetime(now)), missed=dt.Missed("all"))
    await put(store, every_second, now - 5 * SECOND)
    await Adoption(store).adopt(missed, "cancel")
    fires = await store.list_jobs(JobFilter(DEFAULT_TENANT, due_before=None), 100)
    past = [one for one in fires if one.fire_time <= now]
    assert len(past) == 6
    assert sum(one.state is State.PENDING for one in past) == runs
    await store.close()
