"""A URL that names several servers: a new session goes to the one that accepts writes."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import asyncpg
import psycopg
import pytest

from duetime.errors import ConfigError, StoreUnavailable
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.address import parse
from duetime.stores.postgres.connect import (
    KEEPALIVE_IDLE,
    UNACKNOWLEDGED_TIMEOUT,
    connect,
)
from duetime.testing.conformance.drafts import TENANT, add, job, stored
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import PostgresServer, ReplicaServer
from tests.servers.process import free_port
from tests.servers.proxy import Proxy
from tests.stores.conftest import NAME

pytestmark = pytest.mark.slow  # servers of their own


def url(*ports: int, options: str = "sslmode=disable") -> str:
    return f"postgresql://postgres@{','.join(f'127.0.0.1:{port}' for port in ports)}/{NAME}?{options}"


def make_read_only(database: str, on: bool) -> None:
    """As a standby is. A session keeps the value it began with."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = off")
        setting = "SET default_transaction_read_only = on" if on else "RESET default_transaction_read_only"
        connection.execute(f"ALTER DATABASE {NAME} {setting}")


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A machine that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


class TestParsing:
    def test_each_server_has_its_address(self) -> None:
        address = parse("postgresql://user:secret@one:6001,two,[::1]:6003/database?sslmode=require")
        assert address.dsns == (
            "postgresql://user:secret@one:6001/database?sslmode=require",
            "postgresql://user:secret@two/database?sslmode=require",
            "postgresql://user:secret@[::1]:6003/database?sslmode=require",
        )
        assert address.place == "one:6001,two:5432,::1:6003/database"

    def test_one_of_several_servers_must_accept_writes(self) -> None:
        assert parse("postgresql://one,two/database").sessions == ("read-write",)
        assert parse("postgresql:///database?host=one,two").sessions == ("read-write",)
        assert parse("postgresql://one/database").sessions == (None,)

    def test_standby_can_be_preferred(self) -> None:
        address = parse("postgresql://one,two/database?target_session_attrs=prefer-standby")
        assert address.sessions == ("standby", "any")

    def test_unknown_session_attribute_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="target_session_attrs='writer': use one of any, primary"):
            parse("postgresql://one,two/database?target_session_attrs=writer")


async def test_server_that_refuses_is_passed_over(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    store = PostgresStore.from_url(url(free_port(), postgres_server.port))
    await store.open()
    await store.close()


async def test_servers_that_do_not_answer_leave_time_for_the_others_and_are_tried_last(
    postgres_server: PostgresServer, postgres_database: str, silent_port: int
) -> None:
    address = parse(url(silent_port, silent_port, postgres_server.port))
    good = address.dsns[-1]
    store = PostgresStore(address)
    await store.open()
    await store.close()
    assert address.dsns[0] == good


async def test_server_that_refuses_the_user_is_not_passed_over(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    wrong = url(postgres_server.port, postgres_server.port).replace(f"/{NAME}", "/missing")
    with pytest.raises(ConfigError, match="missing"):
        await PostgresStore.from_url(wrong).open()


async def test_store_without_a_server_that_accepts_writes_is_unavailable(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    make_read_only(postgres_database, True)
    try:
        with pytest.raises(StoreUnavailable, match=r"a server is not read-write; .*Connect call failed"):
            await PostgresStore.from_url(url(postgres_server.port, free_port())).open()
        reading = url(free_port(), postgres_server.port, options="target_session_attrs=prefer-standby")
        store = PostgresStore.from_url(f"{reading}&sslmode=disable")
        await store.open()
        await store.close()
    finally:
        make_read_only(postgres_database, False)


async def test_session_with_a_server_that_became_read_only_is_replaced(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    """As after a switchover behind an address that did not change: the write fails, and goes elsewhere."""
    store = PostgresStore.from_url(url(postgres_server.port))
    make_read_only(postgres_database, True)
    try:
        await store.open()
    finally:
        make_read_only(postgres_database, False)
    assert await stored(store, (await add(store, job(0))).id)
    await store.close()


async def test_task_gets_no_session_with_a_server_that_is_read_only(
    postgres_database: str, store: PostgresStore
) -> None:
    """It would be kept, and every task that gets it would fail."""
    make_read_only(postgres_database, True)
    try:
        with pytest.raises(StoreUnavailable, match="a server is not read-write"):
            await store.begin_transaction()
    finally:
        make_read_only(postgres_database, False)
    transaction = await store.begin_transaction()
    await transaction.abandon()


async def test_store_moves_to_the_server_that_remains(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    async with Proxy(postgres_server.port) as one, Proxy(postgres_server.port) as two:
        store = PostgresStore.from_url(url(one.port, two.port))
        await store.open()
        await add(store, job(0))
        await one.refuse()
        assert await stored(store, (await add(store, job(0))).id)
        await store.close()


async def test_kernel_notices_a_peer_that_is_gone(
    postgres_server: PostgresServer, postgres_database: str
) -> None:
    """Also while the connection is idle."""
    connection = await connect(parse(url(postgres_server.port)), {}, cached_statements=0)
    assert isinstance(connection, asyncpg.Connection)
    tcp = connection._transport.get_extra_info("socket")
    assert tcp.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == KEEPALIVE_IDLE
    assert tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == UNACKNOWLEDGED_TIMEOUT
    await connection.close()


async def test_commit_that_waits_for_its_standby_is_not_acknowledged() -> None:
    """Synchronous replication. Neither the timeout of the statement nor a repetition may end the wait with
    success: the standby could take over without the job."""
    with PostgresServer(settings={"synchronous_commit": "on"}) as server:
        store = PostgresStore.from_url(server.create_database(NAME))
        await store.migrate()
        await store.open()
        await add(store, job(0))
        server.settings["synchronous_standby_names"] = "away"
        server.restart()
        draft = job(0)
        with pytest.raises(StoreUnavailable):
            await store.add_jobs([draft])
        with pytest.raises(StoreUnavailable):
            await store.add_jobs([draft], is_retry=True)
        assert await store.get_job(TENANT, draft.id) is None
        server.crash()
        server.settings["synchronous_standby_names"] = ""
        server.start()
        assert await store.add_jobs([draft], is_retry=True) == [draft.id]
        assert (await stored(store, draft.id)).state == "pending"
        await store.close()


async def test_pooler_that_remembers_the_role_before_a_failover_is_not_trusted() -> None:
    """PgBouncer repeats to new sessions what its server said first."""
    with PostgresServer() as primary:
        store = PostgresStore.from_url(primary.create_database(NAME))
        await store.migrate()
        with ReplicaServer(primary) as standby, PgBouncer(standby) as pool:
            pooled = url(pool.port, free_port(), options="sslmode=disable&pooler=transaction")
            with pytest.raises(StoreUnavailable, match="a server is not read-write"):
                await PostgresStore.from_url(pooled).open()
            primary.stop()
            standby.promote()
            store = PostgresStore.from_url(pooled)
            await store.open()
            assert await stored(store, (await add(store, job(0))).id)
            await store.close()
