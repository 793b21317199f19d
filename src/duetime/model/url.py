"""A strict parser for the URLs of targets. It rejects everything that two programs may read in different
ways."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import (
    AddressValueError,
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from duetime.errors import ConfigError, InvalidInput, TargetNotAllowed

# Which addresses the service may call: our own table of special-purpose networks, and what the operator
# allows.
#
# `ipaddress.is_global` is not sufficient: several Python versions accept multicast, NAT64, 6to4 and site-
# local addresses.


Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
LOOPBACK = ("127.0.0.0/8", "::1/128")
USUAL_PORTS = frozenset({80, 443, 8443})
ALLOW_IT = "the operator allows hosts and networks with DUETIME_ALLOW, ports with DUETIME_ALLOW_PORTS"

SPECIAL = {
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "shared by carriers",
    "127.0.0.0/8": "loopback",
    "168.63.129.16/32": "a cloud's own services",
    "169.254.0.0/16": "link-local",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "protocol assignments",
    "192.0.2.0/24": "documentation",
    "192.31.196.0/24": "AS112",
    "192.52.193.0/24": "AMT",
    "192.88.99.0/24": "6to4 relay",
    "192.168.0.0/16": "private",
    "192.175.48.0/24": "AS112",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
    "::/128": "unspecified",
    "::1/128": "loopback",
    "::ffff:0:0/96": "IPv4-mapped",
    "::/96": "IPv4-compatible",
    "64:ff9b:1::/48": "local NAT64",
    "100::/64": "discard-only",
    "100:0:0:1::/64": "dummy prefix",
    "2001::/32": "Teredo",
    "2001::/23": "protocol assignments",
    "2001:db8::/32": "documentation",
    "2002::/16": "6to4",
    "2620:4f:8000::/48": "AS112",
    "3fff::/20": "documentation",
    "5f00::/16": "segment routing",
    "fc00::/7": "unique local",
    "fe80::/10": "link-local",
    "fec0::/10": "site-local",
    "ff00::/8": "multicast",
}
_TABLE: dict[int, list[tuple[Network, str]]] = {4: [], 6: []}
for _text, _meaning in SPECIAL.items():
    _TABLE[ip_network(_text).version].append((ip_network(_text), _meaning))
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)  # the upper half of an interface id that ends in an IPv4 address


def special(address: Address) -> str | None:
    """Why this address is not on the public Internet; None if it is."""
    for network, meaning in _TABLE[address.version]:
        if address in network:
            return meaning
    return None if isinstance(address, IPv4Address) else _special_by_its_inside(address)


def _special_by_its_inside(address: IPv6Address) -> str | None:
    inside = embedded(address)
    if inside is not None and (meaning := special(inside)) is not None:
        return f"{meaning} inside IPv6"
    return None if address in _GLOBAL_UNICAST or address in _NAT64 else "not global unicast"


def embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a translator or tunnel makes of it."""
    number = int(address)
    if address in _NAT64 or number >> 32 & 0xFFFF_FFFF in _ISATAP:
        return IPv4Address(number & 0xFFFF_FFFF)
    return None


@dataclass(frozen=True, slots=True)
class Egress:
    """What may be called: the public Internet on the usual ports, and what the operator lists on any port."""

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()
    ports: frozenset[int] = USUAL_PORTS
    plain_http: bool = True

    @classmethod
    def parse(
        cls,
        allowed: tuple[str, ...] = (),
        ports: tuple[int, ...] = (),
        plain_http: bool = True,
        local: bool = False,
    ) -> Egress:
        """From settings. `allowed` are networks, addresses and host names; `local` allows loopback, too."""
        networks: list[Network] = []
        hosts: set[str] = set()
        for entry in (*allowed, *(LOOPBACK if local else ())):
            network = _network(entry)
            if network is not None:
                networks.append(network)
            else:
                hosts.add(_numeric_host(entry))
        return cls(tuple(networks), frozenset(hosts), USUAL_PORTS | frozenset(ports), plain_http)

    @property
    def lists_any(self) -> bool:
        """Whether the operator lists anything in addition to the public Internet."""
        return bool(self.networks or self.hosts or self.ports > USUAL_PORTS)

    def check(self, url: Url, field: str) -> None:
        """Refuses a URL that no node with these settings can call, whatever its name resolves to."""
        reason = self.refusal_as_written(url)
        if reason is not None:
            raise TargetNotAllowed(field, f"is not allowed ({url.host}: {reason}); {ALLOW_IT}")

    def refusal_as_written(self, url: Url) -> str | None:
        """Why this URL may not be called, whatever its name resolves to; None if that decides."""
        return self.refusal_before_resolving(url) or self._refusal_of_name(url)

    def refusal_before_resolving(self, url: Url) -> str | None:
        if url.scheme == "http" and not self.plain_http:
            return "plain http"
        address = literal(url.host)
        return None if address is None else self.refusal(url.host, url.port, address)

    def _refusal_of_name(self, url: Url) -> str | None:
        if literal(url.host) is not None or url.host in self.hosts or self.networks:
            return None  # a name may resolve to an address in an allowed network
        if "." not in url.host:
            return "a name of a private network"
        return None if url.port in self.ports else f"port {url.port}"

    def refusal(self, host: str, port: int, address: Address) -> str | None:
        """Why this address of this host may not be called; None if it may."""
        if host in self.hosts or any(address in network for network in self.networks):
            return None
        if (meaning := special(address)) is not None:
            return meaning
        return None if port in self.ports else f"port {port}"


PUBLIC_INTERNET = Egress()  # what every node may call
# For programs that choose their receivers themselves
ANY_ADDRESS = Egress((ip_network("0.0.0.0/0"), ip_network("::/0")))


def literal(host: str) -> Address | None:
    """The address, if the host is written as one; None for a name. The URL parser rejects names that look
    like numbers."""
    if ":" not in host and not host[-1:].isdigit():
        return None
    try:
        return ip_address(host)
    except ValueError:
        return None


def _network(entry: str) -> Network | None:
    try:
        return ip_network(entry)
    except ValueError:
        if "/" in entry or ":" in entry or entry[-1:].isdigit():
            raise ConfigError(
                f"{entry!r} is not a network: write 10.1.0.0/16, an address or a host name"
            ) from None
        return None


def _numeric_host(entry: str) -> str:
    name = entry.lower()
    if (
        not name
        or not name.isascii()
        or not all(label and label.replace("-", "").replace("_", "").isalnum() for label in name.split("."))
    ):
        raise ConfigError(
            f"{entry!r} is neither a network nor a host name: write 10.1.0.0/16 or agent.internal"
        )
    return name


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
