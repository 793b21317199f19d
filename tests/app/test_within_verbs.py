"""Schedules, cancellations and changes of jobs in a caller's own transaction: all of them, or none."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pymysql
import pytest

import duetime as dt
from tests.app.test_within import file  # noqa: F401  # a fixture
from tests.stores.test_postgres_caller_transaction import ASYNC, BLOCKING

STRANGE = 'it\'s 100% of :all \\ $1 {"x"} ü'
NAMES = ["changed", "kept", "paused", "removed"]


class Undone(Exception):
    """Raised by a caller who changes their mind."""


class Scene:
    """A store with schedules and jobs, and a caller that changes all of them."""

    def __init__(self, app: dt.App) -> None:
        self.app = app
        self.jobs: list[Any] = []

    async def prepare(self) -> None:
        async with self.app:
            for one in await self.app.schedules():
                await self.app.remove(one.name)
            for name in NAMES:
                await self.app.schedule(name, "work", dt.Every("1h"), payload={"a": STRANGE})
            self.jobs = [await self.app.submit("work", delay="1h") for _ in range(2)]

    @property
    def calls(self) -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
        cancelled, moved = self.jobs
        return [
            ("schedule", ("new", "work", dt.Cron("0 9 * * MON")), {"payload": {"b": STRANGE}}),
            ("schedule", ("changed", "work", dt.Every("2h")), {"on_conflict": "replace", "author": STRANGE}),
            ("pause", ("paused", STRANGE), {}),
            ("remove", ("removed",), {}),
            ("cancel_job", (cancelled.id, STRANGE), {}),
            ("reschedule_job", (moved.id,), {"priority": 9, "delay": "2h"}),
        ]

    async def make(self, connection: Any) -> None:
        for name, arguments, named in self.calls:
            await getattr(self.app, name)(*arguments, connection=connection, **named)

    def make_blocking(self, connection: Any) -> None:
        for name, arguments, named in self.calls:
            getattr(self.app.sync, name)(*arguments, connection=connection, **named)

    async def check(self, made: bool) -> None:
        app, (cancelled, moved) = self.app, self.jobs
        async with app:
            schedules = {one.name: one for one in await app.schedules()}
            assert schedules.keys() == ({*NAMES, "new"} - {"removed"} if made else {*NAMES})
            assert schedules["changed"].when == dt.Every("2h" if made else "1h")
            assert schedules["paused"].pause_note == (STRANGE if made else None)
            assert (await app.get_job(cancelled.id)).state == ("cancelled" if made else "pending")
            assert (await app.get_job(moved.id)).priority == (9 if made else 5)
            if made:
                assert schedules["new"].payload == {"b": STRANGE}
                assert (await app.get_job(cancelled.id)).error == STRANGE
                assert (await app.versions("changed"))[0].author == STRANGE
                assert (await app.versions("removed"))[0].change == "removed"


def refused(scene: Scene, connection: Any) -> None:
    """What the store says is the same within a transaction."""
    sync = scene.app.sync
    with pytest.raises(dt.ScheduleNotFound):
        sync.pause("unknown", connection=connection)
    with pytest.raises(dt.ScheduleExists):
        sync.schedule("kept", "work", dt.Every("3h"), connection=connection)
    with pytest.raises(dt.JobNotFound):
        sync.cancel_job("00000000-0000-7000-8000-000000000000", connection=connection)


def both_ends(scene: Scene, opened: Callable[[], AbstractContextManager[Any]]) -> None:
    """On the thread that owns the connection: rolled back, then committed."""
    with suppress(Undone), opened() as connection:
        scene.make_blocking(connection)
        raise Undone
    asyncio.run(scene.check(False))
    with opened() as connection:
        refused(scene, connection)
        scene.make_blocking(connection)
        asyncio.run(scene.check(False))
    asyncio.run(scene.check(True))
    scene.app.sync.close()


@pytest.mark.server
@pytest.mark.parametrize("use", BLOCKING.values(), ids=BLOCKING)
def test_postgres_blocking_connections(migrated_url: str, use: Callable[[str], Any]) -> None:
    scene = Scene(dt.App(migrated_url))
    asyncio.run(scene.prepare())
    both_ends(scene, lambda: use(migrated_url))


@pytest.mark.server
@pytest.mark.parametrize("use", ASYNC.values(), ids=ASYNC)
async def test_postgres_async_connections(migrated_url: str, use: Callable[[str], Any]) -> None:
    scene = Scene(dt.App(migrated_url))
    await scene.prepare()
    async with scene.app:
        with suppress(Undone):
            async with use(migrated_url) as connection:
                await scene.make(connection)
                raise Undone
        await scene.check(False)
        async with use(migrated_url) as connection:
            await scene.make(connection)
            await scene.check(False)
        await scene.check(True)


@pytest.mark.server
async def test_a_running_job_is_cancelled_by_the_commit(migrated_url: str) -> None:
    app = dt.App(migrated_url)
    begun = asyncio.Event()

    @app.task("long")
    async def long() -> None:
        begun.set()
        await asyncio.Event().wait()

    connection = await asyncpg.connect(migrated_url)
    async with app.running():
        job = await long.submit()
        await asyncio.wait_for(begun.wait(), 60)
        async with connection.transaction():
            assert await app.cancel_job(job.id, connection=connection) == "requested"
        await job.wait("60s")
        assert job.state == "cancelled"
    await connection.close()


@contextmanager
def sqlite(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection


def test_sqlite(file: Path) -> None:  # noqa: F811
    scene = Scene(dt.App(f"sqlite:///{file}"))
    asyncio.run(scene.prepare())
    both_ends(scene, lambda: sqlite(file))


async def test_sqlite_within_a_task(file: Path) -> None:  # noqa: F811
    """The task's own transaction holds the only write lock."""
    app = dt.App(f"sqlite:///{file}")
    scene = Scene(app)
    await scene.prepare()

    @app.task("change", retry=dt.Retry(max_attempts=1))
    async def change(ctx: dt.Context, fail: bool) -> None:
        await scene.make(ctx.connection)
        if fail:
            raise Undone

    async with app.running():
        await (await change.submit(fail=True)).wait("60s")
        await scene.check(False)
        await (await change.submit(fail=False)).wait("60s", raise_on_failure=True)
        await scene.check(True)


@pytest.mark.server
def test_mariadb(mariadb_url: str) -> None:
    parts = urlsplit(mariadb_url)

    @contextmanager
    def opened() -> Iterator[Any]:
        connection = pymysql.connect(
            host=parts.hostname, port=parts.port, user=parts.username, password=parts.password or "",
            database=parts.path[1:],
        )  # fmt: skip
        with closing(connection):
            yield connection
            connection.commit()

    scene = Scene(dt.App(mariadb_url))
    asyncio.run(scene.prepare())
    both_ends(scene, opened)


def test_an_async_connection_is_refused_by_a_blocking_call(file: Path) -> None:  # noqa: F811
    app = dt.App(f"sqlite:///{file}")

    class Async:
        __module__ = "aiosqlite.core"

    with pytest.raises(dt.InvalidInput, match="is async"):
        app.sync.pause("any", connection=Async())
    app.sync.close()
