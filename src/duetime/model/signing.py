"""Signatures: Standard Webhooks for requests to targets, and the tokens with which a target reports later."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from duetime.errors import Conflict, InvalidInput
from duetime.model.keyring import KeyRing

PREFIX = "whsec_"
MIN_SECRET, MAX_SECRET = 24, 64
MAX_DIGITS = 18


class Signer:
    """Signs with each of its secrets, so that a receiver may have the old or the new one while they are
    rotated."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        # Loading the key is most of the work: it is done once and then copied.
        self._begun = [hmac.new(key, digestmod=sha256) for key in keys]

    def sign(self, message_id: str, timestamp: int, body: bytes) -> str:
        content = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
        return " ".join([_signature(begun.copy(), content) for begun in self._begun])


def _signature(mac: hmac.HMAC, content: bytes) -> str:
    mac.update(content)
    return f"v1,{b64encode(mac.digest()).decode()}"


def read_secret(text: object, field: str) -> bytes:
    """The bytes of whsec_... An error never repeats the text."""
    try:
        secret = (
            b64decode(text[len(PREFIX) :], validate=True)
            if isinstance(text, str) and text.startswith(PREFIX)
            else b""
        )
    except (NotBase64, ValueError):
        secret = b""
    if not MIN_SECRET <= len(secret) <= MAX_SECRET:
        raise InvalidInput(
            field, f"must be {PREFIX} followed by {MIN_SECRET} to {MAX_SECRET} random bytes in base64"
        )
    return secret


def write_secret(secret: bytes) -> str:
    return PREFIX + b64encode(secret).decode()


def endpoint_secrets(ring: KeyRing, tenant: str, origin: str) -> list[bytes]:
    """The secrets of an endpoint without its own secret, different for each tenant. The first is the current
    one."""
    return [hmac.digest(key.derive("webhook"), f"{tenant}\0{origin}".encode(), sha256) for key in ring.keys]


def shown_secrets(ring: KeyRing, tenant: str, origin: str) -> list[str]:
    """The same, for the receiver of the calls."""
    if ring.current is None:
        raise Conflict("calls are not signed, because the service has no secret key: set DUETIME_SECRET_KEYS")
    return [write_secret(secret) for secret in endpoint_secrets(ring, tenant, origin)]


class ReportClaim(NamedTuple):
    """The attempt that a valid report token belongs to."""

    tenant: str
    attempt: int


def report_token(ring: KeyRing, tenant: str, job_id: UUID, attempt: int) -> str | None:
    """Allows its holder to report on this attempt, and nothing else. It is not stored. None without a service
    key."""
    if ring.current is None:
        return None
    name = urlsafe_b64encode(tenant.encode()).decode().rstrip("=")
    return f"{attempt}.{name}.{_report_mac(ring.current.derive('report'), tenant, job_id, attempt)}"


def verify_report_token(ring: KeyRing, job_id: UUID, token: str) -> ReportClaim | None:
    """None if the token is invalid or belongs to another job."""
    digits, _, rest = token.partition(".")
    name, _, mac = rest.partition(".")
    if not (token.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS):
        return None
    try:
        tenant = urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()
    except ValueError:
        return None
    attempt = int(digits)
    good = [
        hmac.compare_digest(_report_mac(key.derive("report"), tenant, job_id, attempt), mac)
        for key in ring.keys
    ]
    return ReportClaim(tenant, attempt) if any(good) else None


def _report_mac(key: bytes, tenant: str, job_id: UUID, attempt: int) -> str:
    return hmac.digest(key, b"%s.%d.%s" % (job_id.bytes, attempt, tenant.encode()), sha256).hex()
