"""Submitting within the caller's transaction: the job exists if and when the caller commits."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import psycopg
import pytest

import duetime as dt
from duetime.model.job import JobDraft
from duetime.stores.memory import MemoryStore


class FakeTransaction:
    def __init__(self, blocking: bool, calls: list[tuple[str, list[UUID], threading.Thread]]) -> None:
        self.blocking = blocking
        self._calls = calls

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return self._note("awaited", drafts)

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return self._note("now", drafts)

    def _note(self, way: str, drafts: Sequence[JobDraft]) -> list[UUID]:
        ids = [draft.id for draft in drafts]
        self._calls.append((way, ids, threading.current_thread()))
        return ids


class Hospitable(MemoryStore):
    """Takes the words "async" and "blocking" for connections, and notes how jobs came in through them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, list[UUID], threading.Thread]] = []

    def within(self, connection: Any) -> Any:
        if connection not in ("async", "blocking"):
            raise dt.InvalidInput("connection", f"{connection!r} is none of ours")
        return FakeTransaction(connection == "blocking", self.calls)


@pytest.mark.parametrize(("connection", "way"), [("async", "awaited"), ("blocking", "now")])
async def test_a_connection_takes_the_jobs_and_the_store_does_not(connection: str, way: str) -> None:
    store = Hospitable()
    app = dt.App(store)
    await app.open()
    job = await app.submit("work", n=1, connection=connection)
    many = await app.submit_many([dt.NewJob("work", {"n": n}) for n in range(3)], connection=connection)
    assert [call[:2] for call in store.calls] == [(way, [job.id]), (way, [one.id for one in many])]
    assert (job.created, await app.jobs()) == (True, [])
    await app.close()


def test_blocking_connection_is_used_on_the_calling_thread() -> None:
    store = Hospitable()
    app = dt.App(store)
    job = app.sync.submit("work", n=1, connection="blocking")
    [other] = app.sync.submit_many([dt.NewJob("work", {"n": 2})], connection="blocking")
    here = threading.current_thread()
    assert store.calls == [("now", [job.id], here), ("now", [other.id], here)]
    with pytest.raises(dt.InvalidInput, match=r"connection.*await app\.submit"):
        app.sync.submit("work", connection="async")
    assert len(store.calls) == 2
    app.sync.close()


async def test_unusable_connection_is_refused_before_anything_is_stored(client: dt.App) -> None:
    with pytest.raises(dt.InvalidInput) as refused:
        await client.submit("work", connection=object())
    assert refused.value.field == "connection"
    assert await client.jobs() == []


async def test_uniqueness_rules_are_refused_within_a_transaction() -> None:
    store = Hospitable()
    app = dt.App(store)
    await app.open()
    with pytest.raises(dt.InvalidInput, match=r"unique.*within your own transaction"):
        await app.submit("work", unique_key="k", on_conflict="replace", connection="async")
    plain = await app.submit("work", unique_key="k", connection="async")
    assert [call[1] for call in store.calls] == [[plain.id]]
    await app.close()


async def test_invalid_jobs_are_refused_before_the_connection_is_used() -> None:
    store = Hospitable()
    app = dt.App(store)
    await app.open()
    with pytest.raises(dt.InvalidInput, match="priority"):
        await app.submit("work", priority=11, connection="blocking")
    assert store.calls == []
    await app.close()


# -- SQLite
# -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "duetime.db"
    asyncio.run(dt.App(f"sqlite:///{path}").migrate())
    return path


def orders(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE IF NOT EXISTS orders (number INTEGER)")
    connection.commit()
    return connection


def test_sqlite_jobs_follow_commit_and_rollback(file: Path) -> None:
    app = dt.App(f"sqlite:///{file}")
    with closing(orders(file)) as connection:
        connection.execute("INSERT INTO orders VALUES (1)")
        kept = app.sync.submit("ship", order=1, connection=connection)
        connection.commit()
        connection.execute("INSERT INTO orders VALUES (2)")
        lost = app.sync.submit("ship", order=2, connection=connection)
        with pytest.raises(dt.JobNotFound):
            app.sync.get_job(lost.id)
        connection.rollback()
        assert connection.execute("SELECT number FROM orders").fetchall() == [(1,)]
    assert app.sync.get_job(kept.id).payload == {"order": 1}
    assert [job.id for job in app.sync.jobs()] == [kept.id]
    app.sync.close()


async def test_sqlite_jobs_of_a_transaction_run_when_it_is_committed(tmp_path: Path) -> None:
    path = tmp_path / "duetime.db"
    app = dt.App(f"sqlite:///{path}")
    await app.migrate()
    ran: list[int] = []

    @app.task("ship")
    async def ship(order: int) -> None:
        ran.append(order)

    async with app.running():
        with closing(orders(path)) as connection:
            connection.execute("INSERT INTO orders VALUES (1)")
            jobs = await app.submit_many(
                [dt.NewJob("ship", {"order": n}) for n in (1, 2)], connection=connection
            )
            assert ran == []
            connection.commit()
        for job in jobs:
            await job.wait("60s")
    assert sorted(ran) == [1, 2]


def test_sqlite_another_file_is_refused(file: Path, tmp_path: Path) -> None:
    app = dt.App(f"sqlite:///{file}")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other, pytest.raises(dt.InvalidInput) as refused:
        app.sync.submit("ship", order=1, connection=other)
    assert refused.value.field == "connection"
    app.sync.close()


# -- PostgreSQL: one connection of each kind; the others are proved with the store
# ---------------------------------------
def test_postgres_blocking_connection(migrated_url: str) -> None:
    app = dt.App(migrated_url)
    with psycopg.connect(migrated_url) as connection:
        lost = app.sync.submit("ship", order=1, connection=connection)
        connection.rollback()
        kept = app.sync.submit("ship", order=2, connection=connection)
        with pytest.raises(dt.JobNotFound):
            app.sync.get_job(kept.id)
        connection.commit()
        assert app.sync.get_job(kept.id).payload == {"order": 2}
        with pytest.raises(dt.JobNotFound):
            app.sync.get_job(lost.id)
    app.sync.close()


async def test_postgres_async_connection(migrated_url: str) -> None:
    app = dt.App(migrated_url)
    ran: list[int] = []

    @app.task("ship")
    async def ship(order: int) -> None:
        ran.append(order)

    connection = await asyncpg.connect(migrated_url)
    async with app.running():
        undone = connection.transaction()
        await undone.start()
        await ship.submit(order=1, connection=connection)
        await undone.rollback()
        async with connection.transaction():
            jobs = await app.submit_many(
                [dt.NewJob("ship", {"order": n}) for n in (2, 3)], connection=connection
            )
        for job in jobs:
            await job.wait("60s", raise_on_failure=True)
    await connection.close()
    assert sorted(ran) == [2, 3]
