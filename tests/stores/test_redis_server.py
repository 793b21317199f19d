"""The address of a Redis server, which servers are refused, and the connection to it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis import Redis

from duetime.errors import ConfigError, NotOpen, SchemaMissing, SchemaTooNew, StoreUnavailable
from duetime.model.hint import JobHint
from duetime.model.lease import NodeId
from duetime.stores import from_url
from duetime.stores.redis import RedisStore, connection
from duetime.stores.redis.address import Host, RedisAddress, parse
from duetime.testing.conformance.drafts import HOUR, add, claim, job, joined, request
from tests.servers.brokers import PASSWORD, USER, RedisServer
from tests.servers.proxy import Proxy

ACCESS = (
    (Path(__file__).parents[2] / "docs/stores/redis.md")
    .read_text()
    .partition("## Access\n")[2]
    .partition("The functions")[0]
)


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """Not the one that all tests share: its settings change."""
    with RedisServer() as server:
        yield server


@pytest.fixture
def client(server: RedisServer) -> Iterator[Redis]:
    with Redis.from_url(server.url) as client:
        before = {name: client.config_get(name)[name] for name in ("appendonly", "appendfsync")}
        yield client
        client.config_set("maxmemory-policy", "noeviction")
        for name, value in before.items():
            client.config_set(name, value)
        client.acl_setuser("default", enabled=True, reset=True, passwords=[f"+{PASSWORD}"], keys=["*"])


class TestSignsOfLife:
    """A node whose process is gone is known long before its lease ends."""

    async def subscribed(self, client: Redis, store: RedisStore, count: int) -> None:
        async with asyncio.timeout(30):
            while len(client.pubsub_channels(f"{store._address.keys}alive/*")) < count:
                await asyncio.sleep(0.02)

    async def test_process_that_is_gone_is_noticed(self, server: RedisServer, client: Redis) -> None:
        store = RedisStore.from_url(f"{server.url}?prefix=gone")
        await store.migrate()
        other = store.clone()
        for one in (store, other):
            await one.open()
        me, gone = await joined(store), await joined(other)
        await self.subscribed(client, store, 2)
        await self.sees(store, me, gone)
        await other.close()
        async with asyncio.timeout(30):
            while (expired := await store.expire_nodes(me)) == []:
                await asyncio.sleep(0.02)
        assert expired == [gone]
        await store.close()

    async def test_connection_that_is_lost_is_replaced_before_others_believe_the_node_dead(
        self, server: RedisServer, client: Redis
    ) -> None:
        store = RedisStore.from_url(f"{server.url}?prefix=lost")
        await store.migrate()
        other = store.clone()
        for one in (store, other):
            await one.open()
        me, alive = await joined(store), await joined(other)
        await self.subscribed(client, store, 2)
        await self.sees(store, me, alive)
        newest = max(int(one["id"]) for one in client.client_list(_type="pubsub"))
        client.client_kill_filter(_id=str(newest))
        await self.finds_none_dead(store, me, 3)
        await self.subscribed(client, store, 2)
        assert (await other.beat(alive, HOUR)).alive
        for one in (store, other):
            await one.close()

    async def sees(self, store: RedisStore, me: NodeId, other: NodeId) -> None:
        """Only a sign that was seen can be missed."""
        async with asyncio.timeout(30):
            while other not in store._nodes._signs_of_life._witness._seen:
                assert await store.expire_nodes(me) == []
                await asyncio.sleep(0.02)

    async def finds_none_dead(self, store: RedisStore, me: NodeId, seconds: float) -> None:
        """It looks several times, and finds no node dead."""
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            assert await store.expire_nodes(me) == []
            await asyncio.sleep(0.02)


class TestAddress:
    @pytest.mark.parametrize(
        ("url", "hosts"),
        [
            ("redis://", [Host("localhost", 6379)]),
            ("redis://one", [Host("one", 6379)]),
            ("redis://one:7000/2", [Host("one", 7000)]),
            ("rediss://user:word@one:7000,two", [Host("one", 7000), Host("two", 6379)]),
            ("redis://[::1]:7000", [Host("::1", 7000)]),
        ],
    )
    def test_url_names_hosts(self, url: str, hosts: list[Host]) -> None:
        assert list(parse(url).hosts) == hosts

    def test_user_and_password_are_decoded_and_never_shown(self) -> None:
        address = parse("redis://a%40b:p%2Fw@one/3?prefix=my-jobs")
        assert (address.user, address.password, address.database) == ("a@b", "p/w", 3)
        assert address.keys == "{my-jobs}:"
        assert "p/w" not in repr(address)
        assert "p/w" not in repr(from_url("redis://a%40b:p%2Fw@one"))

    @pytest.mark.parametrize(
        ("url", "says"),
        [
            ("redis://one/jobs", "percent-encode"),
            ("redis://one:99999", "host:port"),
            ("redis://one?prefix=a{b}", "letters, digits and hyphens"),
            ("redis://one?durability=some", "durability=none"),
            ("redis://one?timeout=5", "unknown option 'timeout'"),
            ("redis://one?ca=file.pem", "rediss://"),
        ],
    )
    def test_unusable_url_is_refused(self, url: str, says: str) -> None:
        with pytest.raises(ConfigError, match=says):
            from_url(url)


async def opens(url: str) -> None:
    store = RedisStore.from_url(url)
    await store.migrate()
    try:
        await store.open()
    finally:
        await store.close()


@pytest.mark.server
class TestDurability:
    @pytest.mark.parametrize(
        ("setting", "value", "fix"),
        [
            ("appendonly", "no", "appendonly yes"),
            ("appendfsync", "no", "appendfsync everysec"),
            ("maxmemory-policy", "allkeys-lru", "maxmemory-policy noeviction"),
        ],
    )
    async def test_server_that_can_lose_jobs_is_refused(
        self, server: RedisServer, client: Redis, setting: str, value: str, fix: str
    ) -> None:
        await opens(server.url)
        client.config_set(setting, value)
        with pytest.raises(ConfigError, match=f"{setting} {value}.*`{fix}`.*durability=none"):
            await opens(server.url)
        await opens(f"{server.url}?durability=none")

    async def test_disabled_default_user_is_refused(self, server: RedisServer, client: Redis) -> None:
        client.acl_setuser("default", enabled=False)
        with pytest.raises(ConfigError, match=r"`user default off`.*requirepass"):
            await opens(server.url)

    async def test_user_that_may_not_read_the_settings_is_refused(
        self, server: RedisServer, client: Redis
    ) -> None:
        client.acl_setuser(
            "plain",
            enabled=True,
            passwords=[f"+{PASSWORD}"],
            keys=["*"],
            channels=["*"],
            categories=["+@all"],
            commands=["-config"],
        )
        with pytest.raises(ConfigError, match=r"\+config\|get"):
            await opens(server.url_for("plain", PASSWORD))

    async def test_documented_rights_are_enough(self, server: RedisServer, client: Redis) -> None:
        rights = [right for line in re.findall("`([^`]*)`", ACCESS) for right in line.split(" ")]
        client.acl_setuser(
            "least",
            enabled=True,
            passwords=[f"+{PASSWORD}"],
            keys=[right[1:] for right in rights if right.startswith("~")],
            channels=[right[1:] for right in rights if right.startswith("&")],
            categories=[right for right in rights if right.startswith("+@")],
            commands=[right for right in rights if right.startswith("+") and "@" not in right],
        )
        client.function_flush("SYNC")
        store = RedisStore.from_url(server.url_for("least", PASSWORD))
        await store.migrate()
        await store.open()
        hints: asyncio.Queue[object] = asyncio.Queue()
        store.subscribe(hints.put_nowait)
        try:
            async with asyncio.timeout(60):
                await _heard(hints, "*")
            node, draft = await joined(store), await add(store, job(await store.time()))
            [claimed] = await claim(store, request(node))
            assert claimed.id == draft.id
        finally:
            await store.close()

    async def test_user_that_may_not_publish_stores_jobs(self, server: RedisServer, client: Redis) -> None:
        """A script that fails would leave the job stored by half."""
        client.acl_setuser(
            "mute",
            enabled=True,
            passwords=[f"+{PASSWORD}"],
            keys=["*"],
            categories=["+@all"],
            commands=["-ping"],
            reset_channels=True,
        )
        store = RedisStore.from_url(server.url_for("mute", PASSWORD))
        await store.migrate()
        await store.open()
        try:
            node, now = await joined(store), await store.time()
            drafts = [job(now - 1) for _ in range(3)]
            calls = [store.add_jobs([draft]) for draft in drafts]
            assert await asyncio.gather(*calls, store.time()) == [
                *([draft.id] for draft in drafts), pytest.approx(now, abs=60_000_000),
            ]  # fmt: skip
            found = await claim(store, request(node))
            assert {row.id for row in found} >= {draft.id for draft in drafts}
        finally:
            await store.close()

    async def test_wrong_password_is_refused(self, server: RedisServer) -> None:
        with pytest.raises(ConfigError, match="user and password") as caught:
            await opens(server.url_for(USER, "wrong-word"))
        assert "wrong-word" not in str(caught.value)


class TestVersion:
    async def test_store_that_does_not_exist_is_not_opened(self, redis_url: str) -> None:
        with pytest.raises(SchemaMissing, match="duetime migrate"):
            await RedisStore.from_url(redis_url).open()

    async def test_store_of_a_newer_version_is_not_opened(
        self, redis_url: str, redis_server: RedisServer
    ) -> None:
        with Redis.from_url(redis_server.url) as client:
            client.set(f"{parse(redis_url).keys}version", 99)
        store = RedisStore.from_url(redis_url)
        assert (await store.migrate()).after == 99
        with pytest.raises(SchemaTooNew, match="schema 99"):
            await store.open()
        await store.close()


class TestConnection:
    @pytest.fixture
    async def store(self, redis_url: str) -> AsyncIterator[RedisStore]:
        store = RedisStore.from_url(redis_url)
        await store.migrate()
        await store.open()
        yield store
        await store.close()

    @pytest.fixture
    async def proxy(self, redis_server: RedisServer) -> AsyncIterator[Proxy]:
        async with Proxy(redis_server.port) as proxy:
            yield proxy

    @pytest.fixture
    async def far(self, store: RedisStore, proxy: Proxy, redis_url: str) -> AsyncIterator[RedisStore]:
        """The same store behind the proxy."""
        far = RedisStore.from_url(_with_port(redis_url, proxy.port))
        await far.open()
        yield far
        await far.close()

    async def test_closed_store_refuses_calls(self, store: RedisStore) -> None:
        await store.close()
        with pytest.raises(NotOpen):
            await store.queues()

    async def test_library_is_loaded_again_when_the_server_forgot_it(
        self, store: RedisStore, redis_server: RedisServer
    ) -> None:
        with Redis.from_url(redis_server.url) as client:
            client.function_flush("SYNC")
        draft = await add(store, job(await store.time()))
        assert await store.get_job(draft.tenant, draft.id) is not None

    async def test_lost_connection_is_replaced(self, far: RedisStore, proxy: Proxy) -> None:
        await far.time()
        proxy.cut()
        assert await far.time() > 0

    async def test_server_that_answers_nothing_is_noticed(
        self, far: RedisStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connection, "CALL_TIMEOUT", 0.2)
        monkeypatch.setattr(connection, "CONNECT_TIMEOUT", 0.2)
        await far.time()
        await proxy.blackhole()
        with pytest.raises(StoreUnavailable, match="safe to repeat"):
            await far.time()
        await proxy.pass_through()
        assert await far.time() > 0

    async def test_cancelled_call_does_not_disturb_the_next(self, store: RedisStore) -> None:
        node = await joined(store)
        first = asyncio.ensure_future(store.nodes())
        await asyncio.sleep(0)
        first.cancel()
        assert [each.id for each in await store.nodes()] == [node]

    async def test_listener_hears_of_jobs_after_a_lost_connection(
        self, store: RedisStore, far: RedisStore, proxy: Proxy
    ) -> None:
        hints: asyncio.Queue[object] = asyncio.Queue()
        far.subscribe(hints.put_nowait)
        async with asyncio.timeout(60):
            proxy.cut()
            await _heard(hints, "*")  # it listens again
            draft = await add(store, job(await store.time()))
            await _heard(hints, draft.queue)

    async def test_unreachable_server_is_named_without_the_password(self) -> None:
        store = RedisStore.from_url("redis://me:secret-word@127.0.0.1:1")
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1:1") as caught:
            await store.open()
        assert "secret-word" not in str(caught.value)


async def _heard(hints: asyncio.Queue[object], queue: str) -> None:
    while not (isinstance(hint := await hints.get(), JobHint) and hint.queue == queue):
        pass


def _with_port(url: str, port: int) -> str:
    address: RedisAddress = parse(url)
    return url.replace(str(address.hosts[0]), f"127.0.0.1:{port}")
