"""New connections get a renewed certificate without a restart: with real certificates over real
connections."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

import duetime as dt
from duetime.api import tls
from duetime.api.server import listen, serving, tls_of
from duetime.api.service import build
from duetime.api.tls import RenewableContext
from duetime.config import Settings
from duetime.model.instant import SECOND
from tests.cli.conftest import folder
from tests.cli.node import Node

__all__ = ["folder"]

NAME = "duetime.example"
PATIENCE = 50.0  # less than LOOK_EVERY
FAR = 1 << 50  # after every instant at which the server itself would look
REQUEST = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


class Pair:
    """server.pem and server.key in a folder; each `make` is another certificate."""

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key = folder / "server.pem", folder / "server.key"

    def make(self, kind: str = "ec") -> bytes:
        """What a peer is to see from now on."""
        key = (
            rsa.generate_private_key(65_537, 2_048)
            if kind == "rsa"
            else ec.generate_private_key(ec.SECP256R1())
        )
        subject, begin = (
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)]),
            datetime.now(UTC) - timedelta(days=1),
        )
        ending = begin + timedelta(days=10)
        made = x509.CertificateBuilder(
            subject, subject, key.public_key(), x509.random_serial_number(), begin, ending
        ).sign(key, hashes.SHA256())
        plain = serialization.NoEncryption()
        self.key.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        )
        self.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        return made.public_bytes(serialization.Encoding.DER)

    @property
    def context(self) -> RenewableContext:
        made = tls_of(Settings(tls_cert=str(self.certificate), tls_key=str(self.key)))
        assert isinstance(made, RenewableContext)
        return made


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


@asynccontextmanager
async def server(context: ssl.SSLContext) -> AsyncIterator[int]:
    app = dt.App("memory://")
    await app.open()
    listener = listen("127.0.0.1", 0)
    port: int = listener.getsockname()[1]
    async with serving(build(app, Settings()), listener, context):
        yield port
    await app.close()


def asking(version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    """Takes any certificate: the tests compare it."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.minimum_version = made.maximum_version = version
    return made


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.peer: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)

    async def ask(self) -> bytes:
        self._writer.write(REQUEST)
        async with asyncio.timeout(PATIENCE):
            return await self._reader.readuntil(b"}")

    def close(self) -> None:
        self._writer.close()


async def connect(
    port: int, name: str = NAME, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
) -> Connection:
    return Connection(
        *await asyncio.open_connection("127.0.0.1", port, ssl=asking(version), server_hostname=name)
    )


async def shown(port: int, name: str = NAME, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    """The certificate a newcomer gets, and with it an answer."""
    connection = await connect(port, name, version)
    try:
        assert (await connection.ask()).startswith(b"HTTP/1.1 200")
        return connection.peer
    finally:
        connection.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize("kinds", [("ec", "ec"), ("ec", "rsa"), ("rsa", "ec")], ids="-".join)
async def test_new_connections_get_the_new_certificate_and_old_ones_stay(
    pair: Pair, kinds: tuple[str, str], version: ssl.TLSVersion
) -> None:
    """Also when the key is of another kind, and when no server is named."""
    old = pair.make(kinds[0])
    context = pair.context
    async with server(context) as port:
        early = await connect(port, NAME, version)
        assert (await early.ask()).startswith(b"HTTP/1.1 200")
        new = pair.make(kinds[1])
        assert (early.peer, await shown(port, NAME, version)) == (old, old), "not read yet"
        context.renew()
        assert await shown(port, NAME, version) == new
        assert await shown(port, "", version) == new
        assert (await early.ask()).startswith(b"HTTP/1.1 200")
        early.close()
        newest = pair.make(kinds[0])
        context.renew()
        assert await shown(port, NAME, version) == newest


async def test_renewed_certificate_has_the_same_tls_settings(pair: Pair) -> None:
    pair.make()
    context = pair.context
    async with server(context) as port:
        pair.make()
        context.renew()
        client = asking()
        client.set_alpn_protocols(["h2", "http/1.1"])
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=NAME)
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
        writer.close()
    assert context._newest.minimum_version == ssl.TLSVersion.TLSv1_2


def mix(pair: Pair) -> None:
    """The new certificate is there, its key is not yet."""
    key = pair.key.read_bytes()
    pair.make()
    pair.key.write_bytes(key)


def without_key(pair: Pair) -> None:
    pair.make()
    pair.key.unlink()


def garbage(pair: Pair) -> None:
    pair.certificate.write_text("nothing")


def half_a_key(pair: Pair) -> None:
    pair.make()
    pair.key.write_bytes(pair.key.read_bytes()[:80])


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (mix, "not a usable pair"),
        (without_key, "cannot be read"),
        (garbage, "not a usable pair"),
        (half_a_key, "not a usable pair"),
    ],
)
async def test_broken_certificate_is_logged_and_the_old_one_stays(
    pair: Pair, spoil: Callable[[Pair], None], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    old = pair.make()
    context = pair.context
    async with server(context) as port:
        spoil(pair)
        context.renew()
        assert await shown(port) == old
        (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert told in record.getMessage()
        assert "the previous certificate stays in use" in record.getMessage()
        new = pair.make()
        context.renew()
        assert await shown(port) == new


async def test_certificate_is_checked_once_a_minute(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    old = pair.make()
    context = pair.context
    async with server(context) as port:
        context.check(FAR)
        new = pair.make()
        context.check(FAR + 59 * SECOND)
        assert await shown(port) == old
        context.check(FAR + 60 * SECOND)
        assert await shown(port) == new
        garbage(pair)
        for later in range(2, 6):
            context.check(FAR + later * 60 * SECOND)
        assert await shown(port) == new
    assert [record.levelno for record in caplog.records].count(logging.ERROR) == 1, (
        "what has not changed is not told again"
    )


async def test_unchanged_certificate_is_not_read(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    pair.make()
    context = pair.context
    with caplog.at_level(logging.INFO, "duetime"):
        for later in range(5):
            context.check((later + 1) * 60 * SECOND)
    assert caplog.records == []


async def test_server_checks_the_certificate(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "CHECK_INTERVAL", 0)
    pair.make()
    async with server(pair.context) as port:
        new = pair.make()
        async with asyncio.timeout(PATIENCE):
            while await shown(port) != new:
                pass


# -- SIGHUP ------------------------------------------------------------------------------------------------
@pytest.fixture
def serve(folder: Path) -> Iterator[Callable[..., Node]]:
    nodes: list[Node] = []

    def start(*options: str) -> Node:
        nodes.append(Node(folder, "serve", "--port", "0", "--log-level", "info", *options))
        return nodes[-1]

    yield start
    for node in nodes:
        node.kill()


def port_in(said: str) -> int:
    return int(said.partition("API     ")[2].partition("/api/v1")[0].rpartition(":")[2])


def peer_of(port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as plain, asking().wrap_socket(plain) as wrapped:
        wrapped.sendall(REQUEST)
        assert wrapped.recv(4_096).startswith(b"HTTP/1.1 200")
        found = wrapped.getpeercert(binary_form=True)
        assert found is not None
        return found


@pytest.mark.slow
def test_serve_reads_the_certificate_again_on_sighup(serve: Callable[..., Node], folder: Path) -> None:
    pair = Pair(folder)
    old = pair.make()
    node = serve("--tls-cert", str(pair.certificate), "--tls-key", str(pair.key))
    port = port_in(node.until("stop"))
    assert peer_of(port) == old
    new = pair.make()
    node.process.send_signal(signal.SIGHUP)
    began = time.monotonic()
    while peer_of(port) != new:
        assert time.monotonic() - began < PATIENCE, "long before it looks by itself"
    garbage(pair)
    node.process.send_signal(signal.SIGHUP)
    assert peer_of(port) == new
    status, err = node.end(signal.SIGTERM)
    assert (status, "Traceback" in err) == (0, False), err
    assert "new connections use the certificate" in err
    assert "not a usable pair" in err
