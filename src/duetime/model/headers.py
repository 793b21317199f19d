"""Headers a caller wants sent: the grammar of names and values, and those that are ours or the connection's to write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from duetime.errors import InvalidInput

MOST_HEADERS = 64
LONGEST_NAME = 128
LONGEST_VALUE = 4_096
MOST_BYTES = 16 * 1024
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?|")
# Whoever can write these decides where a request ends, where it goes, or what a receiver believes of us.
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
Headers = tuple[tuple[str, str], ...]


def read(value: Any, field: str) -> Headers:
    """The headers in the order given. An error may show a name; a value it never shows."""
    if not isinstance(value, Mapping):
        raise InvalidInput(field, 'must be an object, like {"X-Team": "billing"}')
    if len(value) > MOST_HEADERS:
        raise InvalidInput(field, f"has {len(value)} headers, and {MOST_HEADERS} are the most")
    headers = tuple((check_name(name, field), check_value(name, text, field)) for name, text in value.items())
    if len({name.lower() for name, _ in headers}) < len(headers):
        raise InvalidInput(field, "names a header twice: upper and lower case are the same")
    if sum(len(name) + len(text) for name, text in headers) > MOST_BYTES:
        raise InvalidInput(field, f"is over the limit of {MOST_BYTES:,} bytes in all")
    return headers


def check_name(name: Any, field: str) -> str:
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not _TOKEN.fullmatch(name):
        raise InvalidInput(field, f"{str(name)[:LONGEST_NAME]!r} is no header name: use letters, digits and hyphens")
    if name.lower() in RESERVED or name.lower().startswith(RESERVED_PREFIXES):
        raise InvalidInput(f"{field}.{name}", "is written by Duetime or by the connection itself: leave it out")
    return name


def check_value(name: str, text: Any, field: str) -> str:
    if not isinstance(text, str):
        raise InvalidInput(f"{field}.{name}", "must be text")
    if len(text) > LONGEST_VALUE:
        raise InvalidInput(f"{field}.{name}", f"is over the limit of {LONGEST_VALUE:,} characters")
    if not _VALUE.fullmatch(text):
        raise InvalidInput(f"{field}.{name}", "must be printable ASCII in one line, without blanks at its ends")
    return text
