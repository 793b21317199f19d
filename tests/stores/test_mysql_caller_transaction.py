"""Jobs stored in a caller's own transaction on MariaDB, by the drivers and libraries that callers use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import asyncmy
import django
import pymysql
import pytest
import sqlalchemy
from django.conf import settings
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from duetime.errors import InvalidInput
from duetime.model.hint import Hint, JobHint
from duetime.model.job import JobDraft
from duetime.stores.mysql import MySqlStore
from duetime.testing.conformance.drafts import TENANT, job
from tests.servers.mariadb import MariaDbServer

NAME = "duetime_callers"
STRANGE = 'it\'s \\ a key; -- with 100% of "everything", ü'


@pytest.fixture(scope="module")
def database(mariadb_server: MariaDbServer) -> Iterator[str]:
    mariadb_server.drop_database(NAME)
    yield mariadb_server.create_database(NAME)
    mariadb_server.drop_database(NAME)


@pytest.fixture
async def store(database: str) -> AsyncIterator[MySqlStore]:
    store = MySqlStore.from_url(database)
    await store.migrate()
    await store.open()
    yield store
    await store.close()


def options(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "host": parts.hostname, "port": parts.port, "user": parts.username, "password": parts.password,
        "database": NAME,
    }  # fmt: skip


async def is_stored(store: MySqlStore, job_id: UUID) -> bool:
    return await store.get_job(TENANT, job_id) is not None


async def draft(store: MySqlStore) -> JobDraft:
    return job(await store.time(), owner=STRANGE, payload=b'{"a": "\\u00fc;\\n"}')


async def check(store: MySqlStore, stored: JobDraft) -> None:
    found = await store.get_job(TENANT, stored.id)
    assert found is not None
    assert (found.owner, found.payload) == (stored.owner, stored.payload)


class TestAsyncmy:
    async def test_job_is_visible_after_the_commit(self, store: MySqlStore, database: str) -> None:
        first, second = await draft(store), await draft(store)
        connection = await asyncmy.connect(**options(database))
        try:
            await connection.begin()
            assert await store.within(connection).add_jobs([first]) == [first.id]
            assert not await is_stored(store, first.id)
            await connection.rollback()
            await connection.begin()
            assert await store.within(connection).add_jobs([second]) == [second.id]
            await connection.commit()
        finally:
            connection.close()
        assert not await is_stored(store, first.id)
        await check(store, second)

    async def test_workers_are_told_after_the_commit(self, store: MySqlStore, database: str) -> None:
        hints: list[Hint] = []
        stored = await draft(store)
        connection = await asyncmy.connect(**options(database))
        unsubscribe = store.subscribe(hints.append)
        try:
            await connection.begin()
            await store.within(connection).add_jobs([stored])
            await connection.commit()
            while JobHint(stored.queue, stored.priority, stored.due_at, TENANT) not in hints:
                await store.time()
        finally:
            unsubscribe()
            connection.close()

    async def test_connection_in_autocommit_is_refused(self, store: MySqlStore, database: str) -> None:
        connection = await asyncmy.connect(**options(database), autocommit=True)
        try:
            with pytest.raises(InvalidInput, match="no transaction is open"):
                await store.within(connection).add_jobs([await draft(store)])
        finally:
            connection.close()

    async def test_connection_to_another_database_is_refused(
        self, store: MySqlStore, database: str, mariadb_server: MariaDbServer
    ) -> None:
        connection = await asyncmy.connect(**{**options(database), "database": "mysql"})
        try:
            await connection.begin()
            with pytest.raises(InvalidInput, match="without Duetime's tables"):
                await store.within(connection).add_jobs([await draft(store)])
        finally:
            connection.close()

    async def test_held_unique_key_gives_the_job_that_holds_it(
        self, store: MySqlStore, database: str
    ) -> None:
        holder = (await draft(store))._replace(unique_key=STRANGE)
        second = (await draft(store))._replace(unique_key=STRANGE)
        await store.add_jobs([holder])
        connection = await asyncmy.connect(**options(database))
        try:
            await connection.begin()
            assert await store.within(connection).add_jobs([second]) == [holder.id]
            await connection.commit()
        finally:
            connection.close()

    async def test_connection_of_a_task_is_accepted(self, store: MySqlStore) -> None:
        stored = await draft(store)
        transaction = await store.begin_transaction()
        assert await store.within(transaction.connection).add_jobs([stored]) == [stored.id]
        await transaction.abandon()
        assert not await is_stored(store, stored.id)


async def test_pymysql_connection(store: MySqlStore, database: str) -> None:
    stored = await draft(store)
    with closing(pymysql.connect(**options(database))) as connection:
        caller = store.within(connection)
        assert caller.blocking
        assert caller.add_jobs_now([stored]) == [stored.id]
        assert not await is_stored(store, stored.id)
        connection.commit()
    await check(store, stored)


async def test_sqlalchemy_connection_and_session(store: MySqlStore, database: str) -> None:
    first, second = await draft(store), await draft(store)
    engine = sqlalchemy.create_engine(database.replace("mysql:", "mysql+pymysql:"))
    with engine.begin() as connection:
        assert store.within(connection).add_jobs_now([first]) == [first.id]
    with Session(engine) as session:
        assert store.within(session).add_jobs_now([second]) == [second.id]
        session.commit()
    engine.dispose()
    await check(store, first)
    await check(store, second)


async def test_async_sqlalchemy_connection_and_session(store: MySqlStore, database: str) -> None:
    first, second = await draft(store), await draft(store)
    engine = create_async_engine(database.replace("mysql:", "mysql+asyncmy:"))
    async with engine.begin() as connection:
        assert await store.within(connection).add_jobs([first]) == [first.id]
    async with AsyncSession(engine) as session:
        assert await store.within(session).add_jobs([second]) == [second.id]
        await session.commit()
    await engine.dispose()
    await check(store, first)
    await check(store, second)


async def test_django_connection(store: MySqlStore, database: str) -> None:
    stored = await draft(store)
    # On a thread: Django refuses to work where an event loop runs.
    assert await asyncio.to_thread(add_with_django, store, database, stored) == [stored.id]
    await check(store, stored)


def add_with_django(store: MySqlStore, database: str, stored: JobDraft) -> list[UUID]:
    pymysql.install_as_MySQLdb()
    if not settings.configured:
        settings.configure(
            DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "x"}}, USE_TZ=True
        )
        django.setup()
    from django.db.backends.mysql.base import DatabaseWrapper  # only possible once it is configured

    parts = urlsplit(database)
    connection = DatabaseWrapper(
        {
            "ENGINE": "django.db.backends.mysql", "NAME": NAME, "USER": parts.username,
            "PASSWORD": parts.password, "HOST": parts.hostname, "PORT": parts.port, "OPTIONS": {},
            "AUTOCOMMIT": True, "TIME_ZONE": None, "CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False,
            "ATOMIC_REQUESTS": False, "TEST": {},
        },
        alias="other",
    )  # fmt: skip
    try:
        with pytest.raises(InvalidInput, match="no transaction is open"):
            store.within(connection).add_jobs_now([stored])
        connection.set_autocommit(False)
        ids = store.within(connection).add_jobs_now([stored])
        connection.commit()
        return ids
    finally:
        connection.close()


async def test_other_database_is_refused(store: MySqlStore) -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    with engine.connect() as connection, pytest.raises(InvalidInput, match="it belongs to sqlite"):
        store.within(connection).add_jobs_now([await draft(store)])
    engine.dispose()
