"""Which addresses the service may call: our own table of special-purpose networks, and what the operator
allows.

`ipaddress.is_global` is not sufficient: several Python versions accept multicast, NAT64, 6to4 and site-local
addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from duetime.errors import ConfigError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
LOOPBACK = ("127.0.0.0/8", "::1/128")
USUAL_PORTS = frozenset({80, 443, 8443})

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
                hosts.add(_host(entry))
        return cls(tuple(networks), frozenset(hosts), USUAL_PORTS | frozenset(ports), plain_http)

    def refusal(self, host: str, port: int, address: Address) -> str | None:
        """Why this address of this host may not be called; None if it may."""
        if host in self.hosts or any(address in network for network in self.networks):
            return None
        if (meaning := special(address)) is not None:
            return meaning
        return None if port in self.ports else f"port {port}"


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


def _host(entry: str) -> str:
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
