"""TLS to brokers: the certificate is verified. A broker that another authority vouches for is refused."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from duetime.errors import ConfigError, QueueUnavailable
from duetime.model.instant import SECOND
from duetime.queues import queue_for
from duetime.testing.queue_conformance import message, numbers, opened
from tests.servers.brokers import PASSWORD, USER, BrokerServer, NatsServer

HOST = "127.0.0.1"
PATIENCE = 60.0  # seconds
SCHEMES = {"redis": "rediss", "rabbit": "amqps", "nats": "tls"}


class Authority:
    """Signs the certificates of servers."""

    def __init__(self, folder: Path, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        own = self._builder(self._name, self._key.public_key())
        own = own.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        own = own.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
        )
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(_pem(own.sign(self._key, hashes.SHA256())))

    def certificate_of(self, host: str) -> str:
        """With its private key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = self._builder(x509.Name([]), key.public_key())
        made = made.add_extension(names, critical=True).add_extension(issuer, critical=False)
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return (secret + _pem(made.sign(self._key, hashes.SHA256()))).decode()

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        begin = datetime.now(UTC) - timedelta(days=1)
        return x509.CertificateBuilder(
            self._name, subject, key, x509.random_serial_number(), begin, begin + timedelta(days=10)
        )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "ours")


@pytest.fixture(params=SCHEMES)
async def url(request: pytest.FixtureRequest, authority: Authority, tmp_path: Path) -> AsyncIterator[str]:
    """Of a broker with TLS. NATS begins it after its greeting; the others have a TLS listener before them."""
    certificate = authority.certificate_of(HOST)
    async with AsyncExitStack() as stack:
        if request.param == "nats":
            port = stack.enter_context(NatsServer(certificate)).port
        else:
            server: BrokerServer = request.getfixturevalue(f"{request.param}_server")
            path = tmp_path / "server.pem"
            path.write_text(certificate)
            port = await stack.enter_async_context(encrypted(server.port, path))
        yield f"{SCHEMES[request.param]}://{USER}:{PASSWORD}@{HOST}:{port}"


@asynccontextmanager
async def encrypted(server_port: int, certificate: Path) -> AsyncIterator[int]:
    """The port of a listener that speaks TLS and forwards to a server that does not."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(65_536):
                writer.write(chunk)
                await writer.drain()
        writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, server = await asyncio.open_connection(HOST, server_port)
        await asyncio.gather(forward(reader, server), forward(from_server, writer))

    listener = await asyncio.start_server(accept, HOST, 0, ssl=context)
    async with listener:
        yield listener.sockets[0].getsockname()[1]


async def test_certificate_of_a_trusted_authority_is_accepted(
    url: str, authority: Authority, prefix: str
) -> None:
    async with opened(queue_for(f"{url}?prefix={prefix}&ca={quote(str(authority.file))}")) as queue:
        await queue.push([message(1)])
        assert numbers(await queue.receive(["default"], 1, 5 * SECOND)) == [1]


@pytest.mark.parametrize("ca", ["another", ""], ids=["another authority", "those of the system"])
async def test_certificate_of_another_authority_is_refused(
    url: str, prefix: str, tmp_path: Path, ca: str
) -> None:
    option = f"&ca={quote(str(Authority(tmp_path, ca).file))}" if ca else ""
    queue = queue_for(f"{url}?prefix={prefix}{option}")
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(QueueUnavailable, match=r"(?i)certificate.verify.failed") as caught:
            await queue.open()
    await queue.close()
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_authority_without_tls_is_an_error(scheme: str) -> None:
    with pytest.raises(ConfigError, match=f"queue: ca=ca.pem needs TLS: write {scheme}s://"):
        queue_for(f"{scheme}://127.0.0.1?ca=ca.pem")
