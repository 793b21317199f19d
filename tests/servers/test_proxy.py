"""The fault-injecting proxy, tested with an echo server and with PostgreSQL's COMMIT."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.servers.proxy import ANYTHING, Proxy, Toward

SOON = 60.0


class EchoServer:
    """Sends every chunk back and keeps it."""

    def __init__(self) -> None:
        self.port = 0
        self.received = b""
        self._received_more = asyncio.Event()

    async def wait_for(self, text: bytes) -> None:
        async with asyncio.timeout(SOON):
            while not self.received.endswith(text):
                self._received_more.clear()
                await self._received_more.wait()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while chunk := await reader.read(1024):
                self.received += chunk
                self._received_more.set()
                writer.write(chunk)
                await writer.drain()
        writer.close()


@pytest.fixture
async def echo() -> AsyncIterator[EchoServer]:
    server = EchoServer()
    listener = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    yield server
    listener.close()


@pytest.fixture
async def proxy(echo: EchoServer) -> AsyncIterator[Proxy]:
    async with Proxy(echo.port) as proxy:
        yield proxy


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, text: bytes) -> None:
        self._writer.write(text)
        await self._writer.drain()

    async def receive(self, count: int) -> bytes:
        async with asyncio.timeout(SOON):
            return await self._reader.readexactly(count)

    async def receive_until_reset(self) -> bytes:
        received = b""
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(SOON):
                while True:
                    received += await self._reader.readexactly(1)
        return received


@contextlib.asynccontextmanager
async def connected(proxy: Proxy) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    yield Client(reader, writer)
    writer.transport.abort()


async def is_reset(client: Client) -> bool:
    try:
        await client.send(b"anyone?")
        await client.receive(1)
    except ConnectionResetError:
        return True
    return False


class TestModes:
    async def test_pass_through_forwards_bytes(self, proxy: Proxy) -> None:
        async with connected(proxy) as client:
            await client.send(b"hello")
            assert await client.receive(5) == b"hello"
            assert proxy.connections == 1

    async def test_refuse_ends_connections_until_pass_through(self, proxy: Proxy) -> None:
        port = proxy.port
        async with connected(proxy) as client:
            await client.send(b"hello")
            await client.receive(5)
            await proxy.refuse()
            assert await is_reset(client)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        await proxy.pass_through()
        assert proxy.port == port
        await self.test_pass_through_forwards_bytes(proxy)

    async def test_reset_applies_to_old_and_new_connections(self, proxy: Proxy) -> None:
        async with connected(proxy) as old:
            await old.send(b"hello")
            await old.receive(5)
            await proxy.reset()
            assert await is_reset(old)
        async with connected(proxy) as new:
            assert await is_reset(new)

    async def test_blackhole_holds_bytes_until_pass_through(self, proxy: Proxy, echo: EchoServer) -> None:
        """The client gets neither a reply nor an error, and no byte is lost."""
        await proxy.blackhole()
        async with connected(proxy) as client:
            await client.send(b"hello")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await client.receive(1)
            assert echo.received == b""
            await proxy.pass_through()
            assert await client.receive(5) == b"hello"

    async def test_blackhole_can_block_replies_only(self, proxy: Proxy, echo: EchoServer) -> None:
        await proxy.blackhole(toward=frozenset({Toward.CLIENT}))
        async with connected(proxy) as client:
            await client.send(b"hello")
            await echo.wait_for(b"hello")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await client.receive(1)

    async def test_delay_applies_both_ways(self, proxy: Proxy) -> None:
        await proxy.delay(0.05)
        async with connected(proxy) as client:
            clock = asyncio.get_running_loop().time
            began = clock()
            await client.send(b"hello")
            assert await client.receive(5) == b"hello"
            assert clock() - began >= 0.1

    async def test_connection_to_a_stopped_server_is_reset(self) -> None:
        async with Proxy(server_port=1) as proxy, connected(proxy) as client:
            assert await is_reset(client)


class TestDrops:
    async def test_marker_in_two_chunks_is_found(self, proxy: Proxy, echo: EchoServer) -> None:
        proxy.drop_before(b"COMMIT")
        async with connected(proxy) as client:
            await client.send(b"COM")
            assert await client.receive(3) == b"COM"
            await client.send(b"MIT")
            with pytest.raises(ConnectionResetError):
                await client.receive(1)
        assert proxy.dropped.is_set()
        assert echo.received == b"COM"

    async def test_drop_ignores_other_bytes_and_happens_once(self, proxy: Proxy) -> None:
        proxy.drop_before(b"COMMIT")
        async with connected(proxy) as bystander, connected(proxy) as victim:
            await bystander.send(b"BEGIN")
            assert await bystander.receive(5) == b"BEGIN"
            await victim.send(b"COMMIT")
            with pytest.raises(ConnectionResetError):
                await victim.receive(1)
            await bystander.send(b"COMMIT")
            assert await bystander.receive(6) == b"COMMIT"

    async def test_drop_after_hides_the_whole_reply(self, proxy: Proxy, echo: EchoServer) -> None:
        proxy.drop_after(b"one", reply=b"three")
        async with connected(proxy) as client:
            received = asyncio.create_task(client.receive_until_reset())
            for word in (b"zero", b"one", b"two", b"three"):
                await client.send(word)
                await echo.wait_for(word)
            assert await received == b"zero"
        assert echo.received == b"zeroonetwothree"

    async def test_empty_marker_matches_any_bytes(self, proxy: Proxy, echo: EchoServer) -> None:
        proxy.drop_before(ANYTHING)
        async with connected(proxy) as client:
            assert await is_reset(client)
        assert echo.received == b""


async def insert_in_transaction(url: str) -> None:
    connection = await asyncpg.connect(url, timeout=SOON)
    try:
        async with connection.transaction():
            await connection.execute("INSERT INTO kept VALUES (42)")
    finally:
        connection.terminate()


@pytest.mark.parametrize(("when", "expected"), [("before", 0), ("after", 1)])
async def test_lost_commit_reply_is_ambiguous(postgres_url: str, when: str, expected: int) -> None:
    """The client sees the same error in both cases, but only one of them has committed."""
    observer = await asyncpg.connect(postgres_url)
    await observer.execute("CREATE TABLE kept (number int)")
    address, database = postgres_url.rsplit("/", 1)
    async with Proxy(int(address.rsplit(":", 1)[1])) as proxy:
        proxy.drop_before() if when == "before" else proxy.drop_after()
        with pytest.raises((ConnectionError, asyncpg.ConnectionDoesNotExistError)):
            await insert_in_transaction(f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}")
        assert proxy.dropped.is_set()
    assert await observer.fetchval("SELECT count(*) FROM kept") == expected
    await observer.close()
