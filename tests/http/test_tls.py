"""Certificates are always verified; a job cannot switch that off."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from duetime.errors import InvalidInput
from duetime.invokers.http.guard import trusted_roots
from duetime.model.job import State
from duetime.model.target import FIELDS, HttpTarget
from tests.http.scene import LOCAL, Names, Sink, attempt, calling, job, serving

UNTRUSTED = "its certificate is not trusted"


def certificate(folder: Path, name: str, days: int = 10) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime.now(UTC) - timedelta(days=20)
    made = (
        x509.CertificateBuilder(
            subject,
            subject,
            key.public_key(),
            x509.random_serial_number(),
            begin,
            begin + timedelta(days=20 + days),
        )
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    path = folder / f"{name}.pem"
    path.write_bytes(text + made.public_bytes(serialization.Encoding.PEM))
    return path


def server_side(path: Path, newest: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    if newest is not None:
        context.minimum_version = context.maximum_version = newest
    return context


def trusting(path: Path) -> ssl.SSLContext:
    roots = trusted_roots()
    roots.load_verify_locations(cadata=path.read_text().partition("-----END PRIVATE KEY-----\n")[2])
    return roots


NAMES = {"agent_example": [["127.0.0.1"]], "other_example": [["127.0.0.1"]]}


async def test_a_certificate_of_its_own_making_is_not_trusted(tmp_path: Path) -> None:
    path = certificate(tmp_path, "agent.example")
    async with (
        serving(Sink(), ssl=server_side(path)) as sink,
        calling(LOCAL, resolver=Names(**NAMES)) as handler,
    ):
        done = await attempt(
            handler,
            job({"url": sink.url("agent.example", scheme="https"), "secret_headers": {"A": "canary"}}),
        )
    assert (done.state, sink.requests) == (State.PENDING, [])
    assert (done.error or "").endswith(UNTRUSTED)


@pytest.mark.parametrize(
    ("host", "days", "trusted"),
    [
        ("agent.example", 10, True),
        ("other.example", 10, False),
        ("agent.example", -5, False),
        ("127.0.0.1", 10, False),
    ],
)
async def test_name_and_time_are_looked_at(tmp_path: Path, host: str, days: int, trusted: bool) -> None:
    """Though an address is dialled, the certificate must be of the name."""
    path = certificate(tmp_path, "agent.example", days)
    async with (
        serving(Sink(), ssl=server_side(path)) as sink,
        calling(LOCAL, resolver=Names(**NAMES), roots=trusting(path)) as handler,
    ):
        done = await attempt(handler, job({"url": sink.url(host, scheme="https")}))
    assert (done.state is State.SUCCEEDED) is trusted
    assert len(sink.requests) == trusted
    assert trusted or (done.error or "").endswith(UNTRUSTED)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_old_versions_are_refused(tmp_path: Path) -> None:
    assert trusted_roots().minimum_version is ssl.TLSVersion.TLSv1_2
    assert trusted_roots().verify_mode is ssl.CERT_REQUIRED
    assert trusted_roots().check_hostname
    path = certificate(tmp_path, "agent.example")
    old = server_side(path, ssl.TLSVersion.TLSv1_1)
    old.set_ciphers("ALL:@SECLEVEL=0")
    async with (
        serving(Sink(), ssl=old) as sink,
        calling(LOCAL, resolver=Names(**NAMES), roots=trusting(path)) as handler,
    ):
        assert (
            await attempt(handler, job({"url": sink.url("agent.example", scheme="https")}))
        ).state is State.PENDING
    assert sink.requests == []


@pytest.mark.parametrize("field", ["insecure", "verify", "verify_ssl", "ssl"])
def test_job_cannot_switch_off_verification(field: str) -> None:
    assert field not in FIELDS
    with pytest.raises(InvalidInput, match="is unknown"):
        HttpTarget.from_json({"url": "https://agent.example/", field: False})
