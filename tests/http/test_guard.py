"""No call reaches an address the operator does not want called: literals, names, mixed answers, rebinding,
redirects, proxies (S21-S31)."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from duetime.invokers.http.guard import Guard, TargetRefused
from duetime.model.job import Ending, State
from duetime.model.settle import Settlement
from duetime.model.url import ALLOW_IT, Egress
from tests.http.scene import LOCAL, Names, Sink, attempt, calling, job, result, serving

STRICT = Egress.parse()
ONE = Egress.parse(("127.0.0.1/32",))
INTERNAL = [
    "127.0.0.1",
    "127.0.0.2",
    "10.0.0.1",
    "169.254.169.254",
    "fd00:ec2::254",
    "::1",
    "::ffff:127.0.0.1",
    "0.0.0.0",
    "fe80::1%1",
]


@pytest.fixture
async def canary() -> AsyncIterator[Sink]:
    """Listens where calls are forbidden: on every address of this machine."""
    async with serving(Sink(), host="0.0.0.0") as sink:
        yield sink
        assert sink.connections == 0


def is_refused(done: Settlement) -> bool:
    """Left to other nodes, with a text that tells nothing, and no body."""
    assert (done.state, done.ending, done.failures, done.error) == (
        State.PENDING,
        Ending.RELEASED,
        0,
        f"cannot run on this node: target not allowed (target_not_allowed): {ALLOW_IT}",
    )
    assert result(done) == {"code": "target_not_allowed"}
    return True


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.2", "0.0.0.0", "[::1]", "[::]", "10.0.0.1", "169.254.169.254", "[fd00:ec2::254]"],
)
async def test_literal_addresses(canary: Sink, host: str) -> None:
    async with calling(STRICT) as handler:
        assert is_refused(await attempt(handler, job({"url": canary.url(host)})))


async def test_localhost_by_the_real_resolver(canary: Sink) -> None:
    async with calling(STRICT) as handler:
        assert is_refused(await attempt(handler, job({"url": canary.url("localhost")})))


@pytest.mark.parametrize("address", INTERNAL)
async def test_names_of_internal_addresses(canary: Sink, address: str) -> None:
    names = Names(agent_example=[[address]])
    async with calling(STRICT, resolver=names) as handler:
        assert is_refused(await attempt(handler, job({"url": canary.url("agent.example")})))
    assert names.asked == ["agent.example"]


@pytest.mark.parametrize(
    "answers", [["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "::ffff:127.0.0.1"]]
)
async def test_forbidden_address_refuses_all_addresses_of_a_name(canary: Sink, answers: list[str]) -> None:
    """127.0.0.1 is allowed here, and would be the first to be dialled."""
    async with calling(ONE, resolver=Names(agent_example=[answers])) as handler:
        assert is_refused(await attempt(handler, job({"url": canary.url("agent.example")})))


async def test_rebound_name_is_checked_on_every_attempt() -> None:
    """The second answer leads elsewhere. What is dialled is what was checked, on every attempt."""
    names = Names(agent_example=[["127.0.0.1"], ["127.0.0.2"]])
    async with (
        serving(Sink()) as good,
        serving(Sink(), "127.0.0.2", good.port) as bad,
        calling(ONE, resolver=names) as handler,
    ):
        good.answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        first = await attempt(handler, job({"url": good.url("agent.example")}))
        assert handler._connections is not None
        handler._connections.session.connector.clear_dns_cache()  # type: ignore[union-attr]  # as after ten seconds
        second = await attempt(handler, job({"url": good.url("agent.example")}))
    assert first.state is State.SUCCEEDED
    assert is_refused(second)
    assert (good.connections, bad.connections, len(names.asked)) == (1, 0, 2)


async def test_name_is_resolved_once_per_connection() -> None:
    """Nothing asks again between the check and the call."""
    names = Names(agent_example=[["127.0.0.1"], ["127.0.0.2"]])
    async with (
        serving(Sink()) as good,
        serving(Sink(), "127.0.0.2", good.port) as bad,
        calling(ONE, resolver=names) as handler,
    ):
        done = await attempt(handler, job({"url": good.url("agent.example")}))
    assert (done.state, good.connections, bad.connections, names.asked) == (
        State.SUCCEEDED,
        1,
        0,
        ["agent.example"],
    )
    assert b"Host: agent.example:" in good.requests[0]


@pytest.mark.parametrize("names", [Names(), Names(agent_example=[[]])])
async def test_a_name_that_does_not_resolve_fails_closed(canary: Sink, names: Names) -> None:
    async with calling(LOCAL, resolver=names) as handler:
        done = await attempt(handler, job({"url": canary.url("agent.example")}))
    assert (done.state, done.error) == (
        State.PENDING,
        f"no response from POST {canary.url('agent.example')}: its name cannot be resolved",
    )


async def test_the_last_look_is_at_what_is_dialled() -> None:
    """Should anything ever get past the resolver."""
    guard = Guard(ONE, Names())
    for address in ("127.0.0.2", "10.0.0.1", "169.254.169.254"):
        with pytest.raises(TargetRefused):
            guard.open_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, 80)))
    guard.open_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 9_000))).close()


async def test_an_address_that_gets_past_the_resolver_is_not_dialled(
    canary: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def blind(self: Guard, host: str, port: int = 0, family: int = 0) -> object:
        return await self._resolver.resolve(host, port)

    monkeypatch.setattr(Guard, "resolve", blind)
    monkeypatch.setattr(Guard, "check", lambda self, url: None)
    async with calling(STRICT, resolver=Names(agent_example=[["127.0.0.1", "127.0.0.2"]])) as handler:
        assert (
            await attempt(handler, job({"url": canary.url("agent.example")}))
        ).state is not State.SUCCEEDED
        assert is_refused(await attempt(handler, job({"url": canary.url()})))


# -- what the operator allows
# -----------------------------------------------------------------------------------------
async def test_only_listed_networks_are_allowed(canary: Sink) -> None:
    async with (
        serving(Sink(), "127.0.0.3") as listed,
        calling(Egress.parse(("127.0.0.3",)), resolver=Names(a_example=[["127.0.0.3"]])) as handler,
    ):
        assert (await attempt(handler, job({"url": listed.url("127.0.0.3")}))).state is State.SUCCEEDED
        assert (await attempt(handler, job({"url": listed.url("a.example")}))).state is State.SUCCEEDED
        assert is_refused(await attempt(handler, job({"url": canary.url("127.0.0.4")})))


async def test_a_host_allowed_by_name_does_not_open_its_address() -> None:
    """The name is listed, and nothing else that leads to the same place."""
    names = Names(agent_internal=[["127.0.0.5"]], other_example=[["127.0.0.5"]])
    async with (
        serving(Sink(), "127.0.0.5") as sink,
        calling(Egress.parse(("agent.internal",)), resolver=names) as handler,
    ):
        assert (await attempt(handler, job({"url": sink.url("agent.internal")}))).state is State.SUCCEEDED
        assert is_refused(await attempt(handler, job({"url": sink.url("127.0.0.5")})))
        assert is_refused(await attempt(handler, job({"url": sink.url("other.example")})))
    assert sink.connections == 1


@pytest.mark.parametrize("url", ["http://8.8.8.8:22/", "https://8.8.8.8:6379/", "http://agent.example:25/"])
async def test_port_rules(url: str) -> None:
    async with calling(STRICT, resolver=Names(agent_example=[["8.8.8.8"]])) as handler:
        assert is_refused(await attempt(handler, job({"url": url})))


async def test_plain_http_can_be_forbidden() -> None:
    async with serving(Sink()) as sink, calling(Egress.parse(local=True, plain_http=False)) as handler:
        assert is_refused(await attempt(handler, job({"url": sink.url()})))
    assert sink.connections == 0


async def test_the_operator_finds_the_reason_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """The caller does not."""
    with caplog.at_level(logging.WARNING, "duetime.http"):
        async with calling(STRICT, resolver=Names(agent_example=[["10.1.2.3"]])) as handler:
            await attempt(handler, job({"url": "http://agent.example/"}))
    assert caplog.messages == ["target agent.example port 80 is not allowed: 10.1.2.3 is private"]


# -- around the guard
# -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(canary: Sink, status: int) -> None:
    moved = f"HTTP/1.1 {status} Moved\r\nLocation: {canary.url()}\r\nContent-Length: 0\r\n\r\n".encode()
    async with serving(Sink(moved), "127.0.0.9") as sink, calling(Egress.parse(("127.0.0.9",))) as handler:
        done = await attempt(handler, job({"url": sink.url("127.0.0.9")}))
    assert (done.state, result(done)["headers"]["Location"], len(sink.requests)) == (
        State.DEAD,
        canary.url(),
        1,
    )


async def test_proxies_and_netrc_of_the_environment_are_not_used(
    canary: Sink, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, canary.url(path=""))
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    (tmp_path / "netrc").write_text("machine 127.0.0.9\nlogin user\npassword canary\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with serving(Sink(), "127.0.0.9") as sink, calling(Egress.parse(("127.0.0.9",))) as handler:
        assert (await attempt(handler, job({"url": sink.url("127.0.0.9")}))).state is State.SUCCEEDED
    assert b"authorization" not in sink.requests[0].lower()


async def test_cookies_are_not_kept() -> None:
    answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: session=canary\r\nContent-Length: 0\r\n\r\n"
    async with (
        serving(Sink(answer)) as sink,
        calling(LOCAL, resolver=Names(a_example=[["127.0.0.1"]])) as handler,
    ):
        for _ in range(2):
            await attempt(handler, job({"url": sink.url("a.example")}))
    assert b"cookie" not in sink.requests[1].lower()
