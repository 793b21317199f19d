"""The URL of a broker: what the client library gets, what may be shown, and the names that we use there."""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from duetime.errors import ConfigError, QueueUnavailable

DEFAULT_PREFIX = "duetime"
_PREFIX = re.compile(r"[A-Za-z0-9-]{1,40}")
_PLAIN = frozenset(f"{string.ascii_letters}{string.digits}-".encode())
_DIGEST_LENGTH = 16


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    url: str = field(repr=False)  # has the password: never show it
    place: str  # may be shown
    prefix: str  # of every name in the broker, so that several installations can share one
    options: Mapping[str, str]  # of the driver; they are not in `url`
    secrets: tuple[str, ...] = field(repr=False)

    def unavailable(self, error: object) -> QueueUnavailable:
        text = str(error) or type(error).__name__
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return QueueUnavailable(f"{self.place}: {text}")


def parse(url: str, options: frozenset[str] = frozenset()) -> BrokerAddress:
    """Other options than `prefix` and those of the driver stay in the URL, for the client library."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        # The parser's own message may quote the part that holds the password.
        raise ConfigError(
            "queue: the URL cannot be read: percent-encode special characters in user name and password"
        ) from None
    query = parse_qsl(parts.query, keep_blank_values=True)
    ours = {name: value for name, value in query if name in options or name == "prefix"}
    prefix = ours.pop("prefix", DEFAULT_PREFIX)
    if not _PREFIX.fullmatch(prefix):
        raise ConfigError(f"queue: prefix={prefix} must be 1 to 40 letters, digits and hyphens")
    rest = urlencode([pair for pair in query if pair[0] not in ours and pair[0] != "prefix"])
    password = parts.password or ""
    return BrokerAddress(
        urlunsplit(parts._replace(query=rest)),
        f"{parts.scheme}://{parts.hostname or ''}{port}",
        prefix,
        ours,
        tuple(secret for secret in {password, unquote(password)} if secret),
    )


def trusted_certificates(address: BrokerAddress) -> str | None:
    """The file that the option `ca` names. Without TLS it would do nothing, although it was asked for."""
    ca, scheme = address.options.get("ca"), urlsplit(address.url).scheme
    if ca and scheme in {"redis", "amqp"}:
        raise ConfigError(f"queue: ca={ca} needs TLS: write {scheme}s:// instead of {scheme}://")
    return ca


def safe_name(name: str, max_length: int) -> str:
    """Letters, digits and hyphens only, different for every name: other characters become `_` and two digits
    for each byte. A name that is too long ends with its digest instead."""
    safe = "".join(chr(byte) if byte in _PLAIN else f"_{byte:02x}" for byte in name.encode())
    if len(safe) <= max_length:
        return safe
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{safe[: max_length - _DIGEST_LENGTH - 2]}__{digest}"
