"""A strict parser for the URLs of targets. It rejects everything that two programs may read in different
ways."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from duetime.errors import InvalidInput

MAX_URL = 2_048
MAX_HOST, MAX_LABEL = 253, 63
DEFAULT_PORTS = {"http": 80, "https": 443}
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_REST = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?\-]|%[0-9A-Fa-f]{2})*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")


@dataclass(frozen=True, slots=True)
class Url:
    """Scheme and host in lower case, addresses in their canonical form, the rest as written."""

    scheme: str
    host: str  # without brackets
    port: int
    rest: str  # path and query

    @property
    def origin_key(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (
            "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        )

    def __str__(self) -> str:
        return f"{self.origin}{self.rest}"

    @property
    def shown(self) -> str:
        """Without the query, which often contains secrets."""
        return f"{self.origin}{self.rest.partition('?')[0]}"


def parse(text: object, field: str) -> Url:
    if not isinstance(text, str):
        raise InvalidInput(field, "must be text, like https://agent.example/run")
    _check_characters(text, field)
    scheme, separator, remainder = text.partition("://")
    if not separator or scheme.lower() not in DEFAULT_PORTS:
        raise InvalidInput(field, "must begin with https:// or http://")
    cut = min((at for at in map(remainder.find, "/?") if at >= 0), default=len(remainder))
    authority, rest = remainder[:cut], remainder[cut:]
    if not _REST.fullmatch(rest):
        raise InvalidInput(field, "has a character in path or query that must be percent-encoded")
    host, port = _authority(authority, field)
    path, _, query = rest.partition("?")
    rest = rest if query else path  # an empty query counts as none, as in other clients
    return Url(
        scheme.lower(),
        host,
        port or DEFAULT_PORTS[scheme.lower()],
        rest if rest.startswith("/") else f"/{rest}",
    )


def _check_characters(text: str, field: str) -> None:
    if not 1 <= len(text) <= MAX_URL:
        raise InvalidInput(field, f"must be 1 to {MAX_URL:,} characters long")
    if not all("!" <= letter <= "~" for letter in text):
        raise InvalidInput(
            field,
            "must be printable ASCII without spaces: percent-encode the path, write other names as xn--...",
        )
    if "\\" in text:
        raise InvalidInput(field, "must not contain a backslash")
    if "#" in text:
        raise InvalidInput(field, "must not have a #fragment: it is never sent")


def _authority(text: str, field: str) -> tuple[str, int | None]:
    if "@" in text:
        raise InvalidInput(field, "must not hold a user name or password: use a secret header")
    if "%" in text:
        raise InvalidInput(
            field, "must not have a percent sign in its host: write the host plainly, without a zone id"
        )
    host, port = _split(text, field)
    if port is None:
        return host, None
    if not _PORT.fullmatch(port) or int(port) > 65_535:
        raise InvalidInput(field, "must have a port from 1 to 65535 after the colon, or no colon")
    return host, int(port)


def _split(text: str, field: str) -> tuple[str, str | None]:
    if text.startswith("["):
        inside, closed, after = text[1:].partition("]")
        if not closed or (after and not after.startswith(":")):
            raise InvalidInput(field, "must close the address in brackets: [2001:db8::1]")
        return _ipv6(inside, field), after[1:] if after else None
    host, colon, port = text.partition(":")
    return _host(host.lower(), field), port if colon else None


def _ipv6(text: str, field: str) -> str:
    try:
        address = IPv6Address(text)
    except AddressValueError:
        raise InvalidInput(field, "has something in brackets that is not an IPv6 address") from None
    if address.ipv4_mapped is not None:
        raise InvalidInput(field, "hides an IPv4 address in IPv6: write the IPv4 address itself")
    return str(address)


def _host(host: str, field: str) -> str:
    labels = host.split(".")
    if (
        not host
        or len(host) > MAX_HOST
        or any(len(label) > MAX_LABEL or not _LABEL.fullmatch(label) for label in labels)
    ):
        raise InvalidInput(
            field, "must have a host name: letters, digits and hyphens between single dots, no dot at the end"
        )
    if not _NUMBER.fullmatch(labels[-1]):
        return host
    try:
        return str(IPv4Address(host))
    except AddressValueError:
        raise InvalidInput(field, "must write an IPv4 address as four plain decimal numbers") from None
