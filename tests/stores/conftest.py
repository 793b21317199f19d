"""For tests of stores: a PostgreSQL database with the schema in it, emptied before each test, which is
quicker than making one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.servers.proxy import Proxy

if TYPE_CHECKING:
    from duetime.stores.postgres import PostgresStore
    from tests.servers.emptying import Emptying
    from tests.servers.postgres import PostgresServer

NAME = "duetime_shared"


@pytest.fixture(scope="session")
async def postgres_schema(postgres_server: PostgresServer) -> AsyncIterator[str]:
    from duetime.stores.postgres import PostgresStore

    url = postgres_server.create_database(NAME)
    store = PostgresStore.from_url(url)
    await store.migrate()
    await store.close()
    yield url
    postgres_server.drop_database(NAME)


@pytest.fixture(scope="session")
def emptying(postgres_schema: str) -> Iterator[Emptying]:
    from tests.servers.emptying import Emptying

    emptying = Emptying(postgres_schema)
    yield emptying
    emptying.close()


@pytest.fixture
def postgres_database(postgres_schema: str, emptying: Emptying) -> str:
    """The URL of a database with an empty, current schema and no node."""
    emptying.empty(end_others=True)
    return postgres_schema


@pytest.fixture
async def store(postgres_database: str) -> AsyncIterator[PostgresStore]:
    """On that database; some modules prepare theirs further."""
    from duetime.stores.postgres import PostgresStore

    store = PostgresStore.from_url(postgres_database)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def proxy(postgres_server: PostgresServer) -> AsyncIterator[Proxy]:
    async with Proxy(postgres_server.port) as proxy:
        yield proxy


@pytest.fixture
async def far(proxy: Proxy, postgres_database: str) -> AsyncIterator[PostgresStore]:
    """A handle whose way to the server leads through the proxy."""
    from duetime.stores.postgres import PostgresStore

    store = PostgresStore.from_url(f"postgresql://postgres@127.0.0.1:{proxy.port}/{NAME}?sslmode=disable")
    await store.open()
    yield store
    await store.close()
