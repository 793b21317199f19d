"""Leases in a real etcd: its end and restart, a cut network, lost replies, users, TLS, several endpoints."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from duetime.engine.node.loop import Loop
from duetime.engine.node.timer import NodeClock
from duetime.engine.plan.leases import LeaseKeeper
from duetime.errors import ConfigError, LeasesUnavailable
from duetime.leases import leases_for
from duetime.leases.etcd import EtcdLeases
from duetime.leases.etcd_address import EtcdAddress
from duetime.model.events import Event, LeasesBack, LeasesLost
from duetime.model.ids import SEGMENTS
from duetime.model.instant import SECOND
from duetime.model.lease import NodeId
from duetime.observer import Observers
from tests.queues.test_tls import Authority
from tests.servers.etcd import EtcdServer, encoded
from tests.servers.process import free_port
from tests.servers.proxy import Proxy

TTL = 2 * SECOND  # the shortest that etcd grants
DEADLINE = 60.0  # seconds
USER, PASSWORD = "planner", "s3cret-word"


class Planner:
    """What a node does about its leases, in the test's process."""

    def __init__(self, url: str, node: int) -> None:
        self.clock = NodeClock()
        self.table = EtcdLeases(url, self.clock)
        self.events: list[Event] = []
        self.holder = self.table.holder(NodeId(node), ("planner",), TTL)
        observers = Observers([self.events.append])
        self.keeper = LeaseKeeper(self.holder, NodeId(node), lambda: None, ("planner",), observers)
        self._loop = Loop(self.keeper, self.clock, observers)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Planner]:
        task = asyncio.create_task(self._loop.run())
        try:
            yield self
        finally:
            self._loop.stop()
            await task
            await self.keeper.close()
            await self.table.close()

    @property
    def outages(self) -> list[type[Event]]:
        return [type(event) for event in self.events if isinstance(event, LeasesLost | LeasesBack)]


class Overlap:
    """Watches that two planners never use the same lease. Both are in one process: one look sees the same
    instant of both."""

    def __init__(self, *planners: Planner) -> None:
        self._planners = planners
        self.looks = 0
        self.doubled: set[str] = set()

    async def run(self) -> None:
        while True:
            one, other = (planner.holder.held for planner in self._planners)
            self.doubled |= one & other
            self.looks += 1
            await asyncio.sleep(0.002)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not holds():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def watched(*planners: Planner) -> AsyncIterator[None]:
    overlap = Overlap(*planners)
    watching = asyncio.create_task(overlap.run())
    try:
        yield
    finally:
        watching.cancel()
    assert overlap.looks > 100
    assert not overlap.doubled, f"used by both: {overlap.doubled}"


@pytest.fixture
async def proxy(etcd_server: EtcdServer) -> AsyncIterator[Proxy]:
    async with Proxy(etcd_server.port) as made:
        yield made


@pytest.fixture
def proxied_url(etcd_url: str, proxy: Proxy) -> str:
    return f"etcd://127.0.0.1:{proxy.port}?{etcd_url.partition('?')[2]}"


@pytest.fixture
def own_server() -> Iterator[EtcdServer]:
    with EtcdServer() as server:
        yield server


@pytest.mark.parametrize("fault", ["blackhole", "refuse"])
async def test_planner_without_etcd_stops_before_another_takes_over(
    etcd_url: str, proxied_url: str, proxy: Proxy, fault: str
) -> None:
    async with (
        Planner(proxied_url, 1).running() as cut,
        Planner(etcd_url, 2).running() as other,
        watched(cut, other),
    ):
        await until(lambda: len(cut.keeper.segments) == len(other.keeper.segments) == SEGMENTS // 2)
        assert cut.keeper.leads != other.keeper.leads
        await getattr(proxy, fault)()
        await until(lambda: len(other.keeper.segments) == SEGMENTS and other.keeper.leads)
        assert (cut.keeper.segments, cut.keeper.leads) == ((), False)
        await until(lambda: not cut.keeper.up)
        await proxy.pass_through()
        await until(lambda: len(cut.keeper.segments) == len(other.keeper.segments) == SEGMENTS // 2)
        await until(lambda: cut.outages == [LeasesLost, LeasesBack])
        assert other.outages == []


async def test_leases_survive_the_end_of_etcd(own_server: EtcdServer) -> None:
    """Killed and started again: nodes keep their leases or take them again; none is used twice."""
    async with (
        Planner(own_server.url, 1).running() as one,
        Planner(own_server.url, 2).running() as other,
        watched(one, other),
    ):
        await until(lambda: len(one.keeper.segments) == len(other.keeper.segments) == SEGMENTS // 2)
        await asyncio.to_thread(own_server.stop, signal.SIGKILL)
        await until(lambda: not one.holder.held and not other.holder.held)
        await asyncio.to_thread(own_server.start)
        await until(lambda: one.outages == other.outages == [LeasesLost, LeasesBack])
        await until(lambda: len(one.keeper.segments) == len(other.keeper.segments) == SEGMENTS // 2)
        assert len(one.outages) == len(other.outages) == 2, "each is reported once"


@pytest.fixture
def cluster() -> Iterator[Sequence[EtcdServer]]:
    with ExitStack() as stack, ThreadPoolExecutor() as threads:
        members = [EtcdServer() for _ in range(3)]
        for member in members:
            member.members = members
            stack.callback(member.close)
        list(threads.map(EtcdServer.start, members))
        yield members


async def test_leases_survive_the_end_of_the_leader_of_etcd(cluster: Sequence[EtcdServer]) -> None:
    url = f"etcd://{','.join(member.endpoint for member in cluster)}"
    async with (
        Planner(url, 1).running() as one,
        Planner(url, 2).running() as other,
        watched(one, other),
    ):
        await until(lambda: len(one.keeper.segments) == len(other.keeper.segments) == SEGMENTS // 2)
        await asyncio.to_thread(leader_of(cluster).stop, signal.SIGKILL)
        began = time.monotonic()
        await until(lambda: time.monotonic() > began + 2 * TTL / SECOND)  # both had to renew
        await until(lambda: len(one.keeper.segments) == len(other.keeper.segments) == SEGMENTS // 2)


def leader_of(cluster: Sequence[EtcdServer]) -> EtcdServer:
    states = {member: member.call("maintenance/status", {}) for member in cluster}
    return next(member for member, state in states.items() if state["leader"] == state["header"]["member_id"])


async def test_lease_whose_reply_was_lost_is_found_or_dropped(proxied_url: str, proxy: Proxy) -> None:
    table = EtcdLeases(proxied_url, NodeClock())
    holder = table.holder(NodeId(1), ("planner",), TTL)
    await holder.renew()
    proxy.drop_after(b"/v3/kv/txn", b"response_txn")
    with pytest.raises(LeasesUnavailable):
        await holder.hold(["a", "b"])
    assert holder.held == frozenset()
    assert await held_in(table) == {"a", "b"}
    await holder.hold(["a"])
    assert holder.held == await held_in(table) == {"a"}
    await table.close()


async def held_in(table: EtcdLeases) -> set[str]:
    return {lease.name for lease in await table.leases(0) if lease.holder is not None}


async def test_node_whose_lease_has_ended_takes_another(table: EtcdLeases) -> None:
    """etcd may have forgotten it after an outage, and another node may have taken the keys."""
    one, other = (table.holder(NodeId(node), ("planner",), TTL) for node in (1, 2))
    await one.renew()
    await one.hold(["a", "b"])
    await table._client.call("lease/revoke", {"ID": one._lease})
    await other.renew()
    await other.hold(["a"])
    with pytest.raises(LeasesUnavailable, match="has ended the lease"):
        await one.hold(["a", "b", "c"])
    assert one.held == frozenset()
    await one.renew()
    assert one.held == frozenset(), "what it held before is not believed"
    await one.hold(["a", "b"])
    assert [set(one.held), set(other.held)] == [{"b"}, {"a"}]


async def test_listing_names_free_leases_and_when_others_end(table: EtcdLeases) -> None:
    holder = table.holder(NodeId(7), ("planner",), TTL)
    await holder.renew()
    await holder.hold(["leader", "segment/5"])
    listed = {lease.name: lease for lease in await table.leases(1_000 * SECOND)}
    assert len(listed) == SEGMENTS + 1
    assert {name for name, lease in listed.items() if lease.holder == 7} == {"leader", "segment/5"}
    ends = listed["leader"].expires_at
    assert ends is not None
    assert 1_000 * SECOND <= ends <= 1_000 * SECOND + TTL
    assert listed["segment/6"].expires_at is None


async def test_keys_of_other_programs_are_ignored(
    etcd_server: EtcdServer, table: EtcdLeases, etcd_url: str
) -> None:
    prefix = etcd_url.partition("prefix=")[2]
    for name in ("nodes/main", "leases/leader"):
        etcd_server.call("kv/put", {"key": encoded(f"{prefix}/{name}"), "value": encoded("hello")})
    holder = table.holder(NodeId(1), ("planner",), TTL)
    assert [member.node for member in await holder.renew()] == [1]
    await holder.hold(["leader", "segment/1"])
    assert holder.held == await held_in(table) == {"segment/1"}


async def test_endpoints_are_tried_in_turn(etcd_server: EtcdServer, etcd_url: str) -> None:
    options = etcd_url.partition("?")[2]
    table = EtcdLeases(f"etcd://127.0.0.1:{free_port()},{etcd_server.endpoint}?{options}", NodeClock())
    holder = table.holder(NodeId(1), ("planner",), TTL)
    await holder.renew()
    await holder.hold(["a"])
    assert holder.held == {"a"}
    await table.close()


async def test_outage_is_reported_without_the_password() -> None:
    port = free_port()
    table = EtcdLeases(f"etcd://{USER}:{PASSWORD}@127.0.0.1:{port}", NodeClock())
    with pytest.raises(LeasesUnavailable, match=f"etcd at http://127.0.0.1:{port}: ") as failed:
        await table.leases(0)
    assert PASSWORD not in str(failed.value)
    await table.close()


async def test_other_program_at_the_address() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        table = EtcdLeases(f"etcd://127.0.0.1:{server.sockets[0].getsockname()[1]}", NodeClock())
        with pytest.raises(LeasesUnavailable, match="not from etcd"):
            await table.leases(0)
        await table.close()


async def test_user_and_password(own_server: EtcdServer) -> None:
    """A role with nothing but the prefix is enough."""
    ours = {"key": encoded("duetime/"), "range_end": encoded("duetime0"), "permType": "READWRITE"}
    own_server.call("auth/role/add", {"name": USER})
    own_server.call("auth/role/grant", {"name": USER, "perm": ours})
    for name, password in (("root", "r00t"), (USER, PASSWORD)):
        own_server.call("auth/user/add", {"name": name, "password": password})
        own_server.call("auth/user/grant", {"user": name, "role": name})
    own_server.call("auth/enable", {})
    good = EtcdLeases(f"etcd://{USER}:{PASSWORD}@{own_server.endpoint}", NodeClock())
    holder = good.holder(NodeId(1), ("planner",), TTL)
    await holder.renew()
    await holder.hold(["a"])
    assert holder.held == await held_in(good) == {"a"}
    # A change of users makes the tokens of all invalid
    token = own_server.call("auth/authenticate", {"name": "root", "password": "r00t"})["token"]
    own_server.call("auth/user/add", {"name": "another", "password": "x"}, token)
    await holder.renew()
    await holder.hold(["a", "b"])
    assert holder.held == {"a", "b"}
    await asyncio.to_thread(own_server.restart)  # it forgets all tokens
    await holder.renew()
    await holder.close()
    assert await held_in(good) == set()
    for login in ("planner:wrong@", ""):
        bad = EtcdLeases(f"etcd://{login}{own_server.endpoint}", NodeClock())
        with pytest.raises(LeasesUnavailable, match=r"authentication failed|user name is empty"):
            await bad.leases(0)
        await bad.close()
    await good.close()


async def test_tls_verifies_the_server(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    with EtcdServer(ours.certificate_of("127.0.0.1")) as server:
        good = EtcdLeases(f"{server.url}?ca={ours.file}", NodeClock())
        assert len(await good.leases(0)) == SEGMENTS + 1
        await good.close()
        bad = EtcdLeases(f"{server.url}?ca={theirs.file}", NodeClock())
        with pytest.raises(LeasesUnavailable, match=r"certificate verify failed|CERTIFICATE_VERIFY_FAILED"):
            await bad.leases(0)
        await bad.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("zookeeper://host", "'zookeeper' cannot hold leases: use etcd://"),
        ("host:2379", "cannot hold leases"),
        ("etcd://", "'' is not a host"),
        ("etcd://one,,two", "'' is not a host"),
        ("etcd://host:port", "'host:port' is not a host"),
        ("etcd://user@host", "needs a user and a password"),
        ("etcd://host/fleet", "write [?]prefix=fleet"),
        ("etcd://host?prefix=a b", "prefix=a b must be"),
        ("etcd://host?timeout=3", "timeout is not an option"),
        ("etcd://host?ca=file.pem", "needs TLS: write etcds://"),
        ("etcds://host?ca=missing.pem", "ca=missing.pem cannot be used"),
    ],
)
def test_wrong_address_is_explained(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^leases: .*{message}"):
        leases_for(url, NodeClock())


def test_address() -> None:
    address = EtcdAddress.parse("etcd://me:p%40ss@one:1234,two,[::1]?prefix=/shop/blue/")
    assert address.endpoints == ("http://one:1234", "http://two:2379", "http://[::1]:2379")
    assert (address.user, address.password, address.prefix) == ("me", "p@ss", "shop/blue")
    assert "p@ss" not in repr(address)
