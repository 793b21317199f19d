"""The server as strangers meet it: TLS, slow and endless requests, too many connections; and `duetime serve`
with keys."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import ssl
import stat
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from duetime.api import protocol
from duetime.api import server as api_server
from duetime.api.server import address_of, listen, require_safety, serving, tls_of
from duetime.api.service import build
from duetime.cli.files import key_ring
from duetime.config import Settings
from duetime.errors import ConfigError
from tests.cli.conftest import Duetime, duetime, folder
from tests.cli.node import Node
from tests.http.test_tls import certificate as make_certificate

__all__ = ["duetime", "folder"]

NAME = "duetime.example"
PATIENCE = 60.0
REPORT = "/api/v1/jobs/01935c2e-7b3a-7000-8000-000000000000/complete"
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One file with the key and the certificate, which is its own authority."""
    return str(make_certificate(tmp_path_factory.mktemp("tls"), NAME))


def trusting(certificate: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificate)


@asynccontextmanager
async def server(tls: ssl.SSLContext | None = None, most: int = 100) -> AsyncIterator[int]:
    app = dt.App("memory://")
    await app.open()
    listener = listen("127.0.0.1", 0)
    port: int = listener.getsockname()[1]
    async with serving(build(app, Settings()), listener, tls, most):
        yield port
    await app.close()


async def exchange(port: int, data: bytes) -> bytes:
    """All that is answered until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def get(path: str = "/healthz", *headers: str, close: bool = True) -> bytes:
    lines = [
        f"GET {path} HTTP/1.1",
        "host: 127.0.0.1",
        *headers,
        *(["connection: close"] if close else []),
        "",
        "",
    ]
    return "\r\n".join(lines).encode()


# -- TLS ---------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
async def test_tls_with_a_real_handshake(certificate: str) -> None:
    settings = Settings(tls_cert=certificate, tls_key=certificate)
    require_safety(settings)
    async with server(tls_of(settings)) as port:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trusting(certificate), server_hostname=NAME
        )
        assert writer.get_extra_info("ssl_object").version() in ("TLSv1.2", "TLSv1.3")
        writer.write(get())
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"\r\nserver:" not in answer.lower()
        old = trusting(certificate)
        old.minimum_version, old.maximum_version = ssl.TLSVersion.MINIMUM_SUPPORTED, ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            await asyncio.open_connection("127.0.0.1", port, ssl=old, server_hostname=NAME)
        assert b"200" not in (await exchange(port, get()))[:20], "what is not TLS is not answered"


def test_unusable_certificate_is_an_error_at_start(certificate: str, tmp_path: Path) -> None:
    empty, other = tmp_path / "empty.pem", make_certificate(tmp_path, "other.example")
    empty.write_text("nothing")
    for settings, told in (
        (Settings(tls_cert="missing.pem", tls_key=certificate), "tls_cert: missing.pem cannot be read"),
        (Settings(tls_cert=certificate, tls_key="missing.pem"), "tls_key: missing.pem cannot be read"),
        (Settings(tls_cert=str(empty), tls_key=certificate), "not a usable pair"),
        (Settings(tls_cert=certificate, tls_key=str(other)), "not a usable pair"),
    ):
        with pytest.raises(ConfigError, match=told):
            tls_of(settings)
    for half in (Settings(tls_cert=certificate), Settings(tls_key=certificate)):
        with pytest.raises(ConfigError, match="TLS needs both"):
            require_safety(half)


# -- strangers ---------------------------------------------------------------------------------------------
async def test_large_request_header_is_refused_without_being_stored() -> None:
    async with server() as port:
        for head in (
            get("/healthz", "x: " + "a" * 40_000),
            get("/" + "a" * 40_000),
            get("/healthz", *(f"x-{number}: 1" for number in range(150))),
            b"GET / HTTP/1.1\r\nx: " + b"a" * 200_000,
        ):
            answer = await exchange(port, head)
            assert answer.startswith(b"HTTP/1.1 431"), answer[:80]
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "head_too_large"
        assert (await exchange(port, get("/healthz", "x: " + "a" * 20_000))).startswith(b"HTTP/1.1 200")


async def test_malformed_http_gets_a_problem() -> None:
    async with server() as port:
        answer = await exchange(port, b"\x16\x03\x01 hello\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "http_malformed"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n",
        b"POST /api/v1/jobs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        b"content-length: 50\r\n\r\n{",
    ],
    ids=["silent", "half a head", "half a body"],
)
async def test_client_that_stops_sending_is_disconnected(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow loris: long before the time an idle connection has."""
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT", 100_000)
    monkeypatch.setattr(protocol, "BODY_TIMEOUT", 100_000)
    monkeypatch.setattr(api_server, "IDLE_TIMEOUT", 3_600)
    async with server() as port:
        await exchange(port, data)


async def test_an_empty_line_does_not_keep_a_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_TIMEOUT", 100_000)
    monkeypatch.setattr(api_server, "IDLE_TIMEOUT", 3_600)
    async with server() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(get(close=False))
        await reader.readuntil(b"}")
        writer.write(b"\r\n")
        async with asyncio.timeout(PATIENCE):
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()


async def test_full_server_closes_an_idle_connection_or_refuses_the_new_one() -> None:
    async with server(most=3) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        answer = await exchange(port, get())
        assert answer.startswith(b"HTTP/1.1 503")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "connections_exhausted"
        reader, writer = silent[0]
        writer.write(get(close=False))
        await reader.readuntil(b"}")
        assert (await exchange(port, get())).startswith(b"HTTP/1.1 200")
        assert await reader.read() == b"", "it was idle"
        for _, each in silent:
            each.close()


async def unfinished(port: int, address: str, *headers: str, path: str = REPORT) -> Connection:
    """A connection from this address that never completes its body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    lines = [
        f"POST {path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json", "content-length: 200000",
        *headers, "", "{",
    ]  # fmt: skip
    writer.write("\r\n".join(lines).encode())
    await writer.drain()
    return reader, writer


async def test_one_address_does_not_take_all_connections() -> None:
    async with server(most=8) as port:
        stuck = [await unfinished(port, "127.0.0.2") for _ in range(6)]
        await asyncio.wait_for(exchange(port, get()), PATIENCE)  # the server has accepted all of them
        reader, writer = await unfinished(port, "127.0.0.2")
        assert (await reader.read()).startswith(b"HTTP/1.1 503")
        assert (await exchange(port, get())).startswith(b"HTTP/1.1 200")
        for _, each in [*stuck, (reader, writer)]:
            each.close()


async def test_unfinished_bodies_of_strangers_give_way_to_new_connections() -> None:
    """As many as there may be, from two addresses; a caller with a key keeps its own."""
    app = dt.App("memory://")
    await app.open()
    key = (await app.keys.create("slow", ["submit"])).text
    listener = listen("127.0.0.1", 0)
    port: int = listener.getsockname()[1]
    async with serving(build(app, Settings(auth="keys")), listener, None, 8):
        reader, writer = await unfinished(
            port, "127.0.0.4", f"authorization: Bearer {key}", path="/api/v1/jobs"
        )
        stuck = [await unfinished(port, f"127.0.0.{2 + number % 2}") for number in range(7)]
        for _ in range(12):
            assert (await exchange(port, get(close=False) + get())).startswith(b"HTTP/1.1 200")
        writer.write(b" " * 199_999)
        async with asyncio.timeout(PATIENCE):
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 400"), "all of it was read"
        for _, each in [*stuck, (reader, writer)]:
            each.close()
    await app.close()


async def test_client_that_reads_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sends one request after the other, and leaves the responses to the server."""
    monkeypatch.setattr(protocol, "WRITE_TIMEOUT", 100_000)

    async def flood(client: socket.socket) -> None:
        while True:
            await asyncio.get_running_loop().sock_sendall(client, get("/openapi.json", close=False) * 100)

    async with server() as port, asyncio.timeout(PATIENCE):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.setblocking(False)
            with pytest.raises(ConnectionError):
                await flood(client)


# -- duetime serve -----------------------------------------------------------------------------------------
@pytest.fixture
def serve(folder: Path) -> Iterator[Callable[..., Node]]:
    nodes: list[Node] = []

    def start(*options: str, **environment: str) -> Node:
        nodes.append(Node(folder, "serve", "--port", "0", *options, **environment))
        return nodes[-1]

    yield start
    for node in nodes:
        node.kill()


def address_in(said: str) -> str:
    found = re.search(r"API     (https?://\S+)/api/v1", said)
    assert found is not None, said
    return found[1]


def ask(
    address: str, path: str, key: str | None = None, body: Any = None, context: ssl.SSLContext | None = None
) -> int:
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"{address}{path}", data, headers), context=context
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as problem:
        return problem.code


@pytest.mark.slow
def test_serve_on_all_addresses_with_keys_and_tls(
    serve: Callable[..., Node], duetime: Duetime, certificate: str
) -> None:
    """A key revoked on the command line is refused within 5 seconds; loopback targets are forbidden in this
    mode."""
    node = serve(
        "--host",
        "0.0.0.0",
        "--auth",
        "keys",
        "--tls-cert",
        certificate,
        "--tls-key",
        certificate,
        "--allow",
        "10.1.0.0/16",
    )
    said = node.until("stop")
    assert "there is none yet: duetime key create" in said
    assert "HTTP targets may be on the public Internet, 10.1.0.0/16\n" in said
    assert "keys are sent unencrypted" not in said
    address = address_in(said).replace("0.0.0.0", "127.0.0.1")
    assert address.startswith("https://")
    context = trusting(certificate)
    context.check_hostname = False  # it is asked by its number
    assert ask(address, "/api/v1/me", context=context) == 401
    made = duetime("key", "create", "ops", "--scopes", "admin", "--json").json
    assert ask(address, "/api/v1/me", made["key"], context=context) == 200
    secret = {"target": {"type": "http", "url": "https://a.example/", "secret_headers": {"X-Key": "v"}}}
    assert ask(address, "/api/v1/jobs", made["key"], secret, context) == 422, "no key to encrypt it with"
    assert duetime("key", "revoke", made["prefix"]).status == 0
    began = time.monotonic()
    while ask(address, "/api/v1/me", made["key"], context=context) == 200:
        assert time.monotonic() - began < PATIENCE, "two seconds by rule; this machine may be busy"
    status, err = node.end(signal.SIGTERM)
    assert (status, "Traceback" in err) == (0, False), err
    assert not Path("duetime.db.key").exists()


@pytest.mark.slow
def test_keys_can_be_required_on_loopback(serve: Callable[..., Node], duetime: Duetime) -> None:
    """For a reverse proxy on the same machine."""
    made = duetime("key", "create", "ops", "--scopes", "admin", "--json").json
    said = serve("--auth", "keys").until("stop")
    assert "access  by API key\n" in said
    assert "keys are sent unencrypted" in said
    assert "this machine" not in said
    assert (ask(address_in(said), "/api/v1/jobs"), ask(address_in(said), "/api/v1/jobs", made["key"])) == (
        401,
        200,
    )


@pytest.mark.slow
def test_local_mode_creates_its_own_secret_key(serve: Callable[..., Node], folder: Path) -> None:
    """So that secret headers work without setup; the next start uses the same key."""
    node = serve()
    said = node.until("stop")
    assert "this machine only, no key needed" in said
    assert "HTTP targets may be on the public Internet, this machine\n" in said
    secret = {
        "target": {"type": "http", "url": "https://a.example/", "secret_headers": {"X-Key": "canary-77"}},
        "delay": "1h",
    }
    assert ask(address_in(said), "/api/v1/jobs", body=secret) == 201
    kept = folder / "duetime.db.key"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    content = kept.read_text()
    node.end(signal.SIGTERM)
    serve().until("stop")
    assert kept.read_text() == content
    assert not any(b"canary-77" in path.read_bytes() for path in folder.iterdir() if path.is_file())


@pytest.mark.slow
def test_unix_socket_is_private_and_removed_afterwards(serve: Callable[..., Node], folder: Path) -> None:
    path = folder / "api.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))  # left behind by one that died
    node = serve("--host", f"unix:{path}")
    assert f"curl --unix-socket {path}" in node.until("stop")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(get("/api/v1/me").replace(b"127.0.0.1", b"localhost"))
        assert client.recv(4_096).startswith(b"HTTP/1.1 200")
    with pytest.raises(ConfigError, match="cannot listen at"):
        listen(f"unix:{path}", 0)
    status, err = node.end(signal.SIGTERM)
    assert (status, path.exists()) == (0, False), err


@pytest.mark.slow
def test_commands_and_logs_show_no_secret(serve: Callable[..., Node], duetime: Duetime) -> None:
    """Neither in plain text nor encrypted, also with full logging."""
    node = serve("--log-level", "debug", "--log-format", "json")
    address = address_in(node.until("stop"))
    target = {
        "type": "http",
        "url": "http://127.0.0.1:1/",
        "secret_headers": {"X-Key": "canary-91"},
        "timeout": "1s",
    }
    assert (
        ask(address, "/api/v1/schedules", body={"name": "s", "when": {"every": "1h"}, "target": target})
        == 201
    )
    assert ask(address, "/api/v1/jobs", body={"target": target, "retry": {"max_attempts": 1}}) == 201
    assert (
        ask(address, "/api/v1/jobs", body={"target": {**target, "secret_headers": {"X\n": "canary-91"}}})
        == 422
    )
    told = ""
    while '"dead"' not in told:
        told = duetime("job", "list", "--json").out
    job_id = json.loads(told)[0]["id"]
    commands = (
        ["schedule", "list"],
        ["schedule", "show", "s"],
        ["job", "show", job_id],
        ["dead", "list"],
        ["why", job_id],
    )
    for command in (*commands, ["schedule", "versions", "s"]):
        for form in ([], ["--json"]):
            done = duetime(*command, *form)
            assert done.status == 0, (command, done.err)
            told += done.out + done.err
    _, err = node.end(signal.SIGTERM)
    assert "POST /api/v1/jobs 422" in err
    for text in (told, err):
        assert "canary-91" not in text
        assert "sealed" not in text


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--host", "0.0.0.0"], "--auth keys"),
        (["--host", "0.0.0.0"], "duetime key create"),
        (["--host", "::", "--auth", "none"], "no authentication"),
        (["--tls-cert", "a.pem"], "TLS needs both"),
        (["--auth", "maybe"], "'maybe' is not one of none, keys"),
        (["--rate-limit", "fast"], "is not a rate"),
        (["--proxies", "10.0.0.0/99"], "is not a network"),
        (["--public-url", "duetime.example"], "must be written like https://"),
        (["--allow-ports", "0x50"], "must be a port"),
        (["--plain-http", "perhaps"], "must be yes or no"),
    ],
)
def test_an_unsafe_or_wrong_start_is_refused(duetime: Duetime, options: list[str], told: str) -> None:
    done = duetime("serve", "--port", "0", *options)
    assert (done.status, told in done.err) == (2, True), done.err


def test_secret_key_file_is_next_to_the_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sqlite, worker = dt.App("sqlite:///a.db").store, Settings(roles=("worker",))
    first = key_ring(Settings(), sqlite)
    assert key_ring(Settings(), sqlite) == key_ring(worker, sqlite) == first
    assert key_ring(Settings(auth="keys"), sqlite) == first, "what is there is used"
    assert not key_ring(Settings(auth="keys"), dt.App("sqlite:///b.db").store).keys
    assert not (folder / "b.db.key").exists()
    os.chmod(folder / "a.db.key", 0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        key_ring(Settings(), sqlite)
    memory = dt.App("memory://").store
    assert key_ring(Settings(), memory).current is not None
    assert len(list(folder.iterdir())) == 1, "no draft is left behind"
    given = Settings(secret_keys=("k1:" + "QUFB" * 11,))
    assert key_ring(given, sqlite).current.id == "k1"  # type: ignore[union-attr]  # it has one
    assert key_ring(Settings(), dt.App("sqlite:///no/such/folder/x.db").store).current is None


def test_node_makes_no_secret_key_for_a_shared_database(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other nodes could not decrypt what it encrypts."""
    pytest.importorskip("asyncpg")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    store = dt.App("postgresql://user@db.example/x").store
    assert key_ring(Settings(), store).keys == ()
    assert key_ring(Settings(roles=("worker",)), store).keys == ()
    assert list(folder.iterdir()) == []
    assert key_ring(Settings(secret_keys=("k1:" + "QUFB" * 11,)), store).current is not None


def test_address_contains_the_scheme() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        assert address_of(listener, "https") == f"https://127.0.0.1:{listener.getsockname()[1]}"
