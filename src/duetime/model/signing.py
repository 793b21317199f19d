"""Signatures: Standard Webhooks for what we send, and the tokens with which a target reports later."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from duetime.errors import InvalidInput
from duetime.model.keyring import KeyRing

PREFIX = "whsec_"
SHORTEST_SECRET, LONGEST_SECRET = 24, 64
MOST_DIGITS = 18


class Signer:
    """Signs with each of its secrets, so that a receiver may hold the old or the new one while they are changed."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        # Taking the key in is most of the work: done once, then copied.
        self._begun = [hmac.new(key, digestmod=sha256) for key in keys]

    def sign(self, message_id: str, timestamp: int, body: bytes) -> str:
        content = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
        return " ".join([_signature(begun.copy(), content) for begun in self._begun])


def _signature(mac: hmac.HMAC, content: bytes) -> str:
    mac.update(content)
    return f"v1,{b64encode(mac.digest()).decode()}"


def read_secret(text: object, field: str) -> bytes:
    """The bytes of whsec_...; the text itself is never repeated in an error."""
    try:
        secret = b64decode(text[len(PREFIX) :], validate=True) if isinstance(text, str) and text.startswith(PREFIX) else b""
    except (NotBase64, ValueError):
        secret = b""
    if not SHORTEST_SECRET <= len(secret) <= LONGEST_SECRET:
        raise InvalidInput(field, f"must be {PREFIX} and {SHORTEST_SECRET} to {LONGEST_SECRET} random bytes in base64")
    return secret


def write_secret(secret: bytes) -> str:
    return PREFIX + b64encode(secret).decode()


def endpoint_secrets(ring: KeyRing, tenant: str, origin: str) -> list[bytes]:
    """The secrets of an endpoint that was given none: its own, and different for each tenant. The first is the current one."""
    return [hmac.digest(key.derive("webhook"), f"{tenant}\0{origin}".encode(), sha256) for key in ring.keys]


class Spoken(NamedTuple):
    """What a token speaks for."""

    tenant: str
    attempt: int


def report_token(ring: KeyRing, tenant: str, job_id: UUID, attempt: int) -> str | None:
    """Lets its holder report on this attempt of this job, and do nothing else. Nothing is stored; None without a key."""
    if ring.current is None:
        return None
    name = urlsafe_b64encode(tenant.encode()).decode().rstrip("=")
    return f"{attempt}.{name}.{_report_mark(ring.current.derive('report'), tenant, job_id, attempt)}"


def spoken_for(ring: KeyRing, job_id: UUID, token: str) -> Spoken | None:
    """None when the token is not ours or of another job."""
    digits, _, rest = token.partition(".")
    name, _, mark = rest.partition(".")
    if not (token.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
        return None
    try:
        tenant = urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()
    except ValueError:
        return None
    attempt = int(digits)
    good = [hmac.compare_digest(_report_mark(key.derive("report"), tenant, job_id, attempt), mark) for key in ring.keys]
    return Spoken(tenant, attempt) if any(good) else None


def _report_mark(key: bytes, tenant: str, job_id: UUID, attempt: int) -> str:
    return hmac.digest(key, b"%s.%d.%s" % (job_id.bytes, attempt, tenant.encode()), sha256).hex()
