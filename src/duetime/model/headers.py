"""Headers of a caller: the grammar of names and values, and the names that only Duetime or the connection may
set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from duetime.errors import InvalidInput

MAX_HEADERS = 64
MAX_NAME = 128
MAX_VALUE = 4_096
MAX_BYTES = 16 * 1024
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?|")
# These decide where a request ends, where it goes, or what a receiver believes about the sender.
RESERVED = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "idempotency-key",
        "keep-alive",
        "te",
        "traceparent",
        "tracestate",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
RESERVED_PREFIXES = ("webhook-", "duetime-", "proxy-", "sec-")
# Values of headers whose names contain one of these are secret, wherever a caller wrote them.
SECRET_PARTS = ("authorization", "cookie", "token", "secret", "password", "api-key", "apikey")
Headers = tuple[tuple[str, str], ...]


def is_secret(name: str) -> bool:
    return any(part in name.lower() for part in SECRET_PARTS)


def read(value: Any, field: str) -> Headers:
    """The headers in the given order. An error may show a name, but never a value."""
    if not isinstance(value, Mapping):
        raise InvalidInput(field, 'must be an object, like {"X-Team": "billing"}')
    if len(value) > MAX_HEADERS:
        raise InvalidInput(field, f"has {len(value)} headers: the maximum is {MAX_HEADERS}")
    headers = tuple((check_name(name, field), check_value(name, text, field)) for name, text in value.items())
    if len({name.lower() for name, _ in headers}) < len(headers):
        raise InvalidInput(field, "names a header twice: upper and lower case are the same")
    if sum(len(name) + len(text) for name, text in headers) > MAX_BYTES:
        raise InvalidInput(field, f"is over the limit of {MAX_BYTES:,} bytes in total")
    return headers


def check_name(name: Any, field: str) -> str:
    if not isinstance(name, str) or len(name) > MAX_NAME or not _TOKEN.fullmatch(name):
        raise InvalidInput(
            field, f"{str(name)[:MAX_NAME]!r} is not a header name: use letters, digits and hyphens"
        )
    if name.lower() in RESERVED or name.lower().startswith(RESERVED_PREFIXES):
        raise InvalidInput(f"{field}.{name}", "is set by Duetime or by the connection: leave it out")
    return name


def check_value(name: str, text: Any, field: str) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"{field}.{name}", "must be text")
    if len(text) > MAX_VALUE:
        raise InvalidInput(f"{field}.{name}", f"is over the limit of {MAX_VALUE:,} characters")
    if not _VALUE.fullmatch(text):
        raise InvalidInput(
            f"{field}.{name}", "must be one line of printable ASCII, without spaces at its ends"
        )
    return text
