"""Our own table of special-purpose networks, and what an operator allows besides."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from duetime.errors import ConfigError
from duetime.model.url import SPECIAL, Egress, embedded, literal, special

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "169.253.255.255",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "64:ff9b::808:808",  # NAT64 of a public address: how an IPv6-only host reaches it
]
# S23, row by row: all of these pass for global in some Python version or other.
FORBIDDEN = [
    "224.0.0.1",
    "192.0.0.192",
    "::169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::1",
    "64:ff9b:1:ffff::a9fe:a9fe",
    "2002:a9fe:a9fe::",
    "2002:7f00:1::1",
    "2002:808:808::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "0.0.0.0",
    "0.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:0",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:10::1",
    "2001:db8::1",
    "3fff::1",
    "3fff:fff:ffff::1",
    "5f00::1",
    "127.0.0.1",
    "127.255.255.254",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "169.254.170.2",
    "168.63.129.16",
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "fd00:ec2::254",
    "fc00::1",
    "fe80::1",
    "fe80::1%eth0",
    "febf::1",
    "::",
    "::1",
    "::8.8.8.8",
    "100::1",
    "4000::1",
    "2606:4700::5efe:a9fe:a9fe",
    "2606:4700::200:5efe:10.0.0.1",
]


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_may_be_called(text: str) -> None:
    assert special(ip_address(text)) is None


@pytest.mark.parametrize("text", FORBIDDEN)
def test_special_addresses_may_not(text: str) -> None:
    assert special(ip_address(text)) is not None


@pytest.mark.parametrize("text", SPECIAL)
def test_both_ends_of_every_network_are_special(text: str) -> None:
    network = ip_network(text)
    assert special(network[0]) is not None
    assert special(network[-1]) is not None


def test_embedded_ipv4_address_is_found() -> None:
    assert embedded(ip_address("64:ff9b::a9fe:a9fe")) == ip_address("169.254.169.254")  # type: ignore[arg-type]  # always IPv6
    assert embedded(ip_address("2606:4700::1")) is None  # type: ignore[arg-type]  # always IPv6


def test_only_what_is_listed_is_reachable() -> None:
    egress = Egress.parse(("10.1.0.0/16", "192.168.7.7", "agent.internal", "fd12::/16"))
    reachable = [("10.1.255.255", 9000), ("192.168.7.7", 1), ("fd12::5", 443)]
    assert [egress.refusal("x", port, ip_address(text)) for text, port in reachable] == [None] * 3
    for text in ("10.2.0.0", "192.168.7.8", "fd13::5", "127.0.0.1", "169.254.169.254", "::ffff:10.1.0.1"):
        assert egress.refusal("x", 443, ip_address(text)) is not None
    assert egress.refusal("agent.internal", 9000, ip_address("10.9.9.9")) is None
    assert egress.refusal("agent.internal.evil.example", 443, ip_address("10.9.9.9")) is not None


def test_loopback_in_local_mode_only() -> None:
    for text in ("127.0.0.1", "127.8.8.8", "::1"):
        assert Egress.parse(local=True).refusal("localhost", 5000, ip_address(text)) is None
        assert Egress.parse().refusal("localhost", 80, ip_address(text)) == "loopback"
    assert Egress.parse(local=True).refusal("x", 80, ip_address("10.0.0.1")) == "private"


@pytest.mark.parametrize(
    ("port", "reason"),
    [(80, None), (443, None), (8443, None), (22, "port 22"), (6379, "port 6379"), (9000, None)],
)
def test_port_rules(port: int, reason: str | None) -> None:
    assert Egress.parse(ports=(9000,)).refusal("x", port, ip_address("8.8.8.8")) == reason


@pytest.mark.parametrize(
    "entry",
    ["10.1.0.0/33", "10.1.0.1/16", "10.1", "300.1.1.1", "a b", "", "*", "fd00::/", "host:80", "http://x"],
)
def test_unreadable_entry_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match="is n"):
        Egress.parse((entry,))


def test_literal_address_is_found() -> None:
    assert literal("10.0.0.1") == ip_address("10.0.0.1")
    assert literal("::1") == ip_address("::1")
    assert literal("agent.example") is None
    assert literal("agent1") is None
