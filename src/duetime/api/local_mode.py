"""Local mode: without keys, a service accepts requests of programs on this machine only. Refuses requests
that a page of another site makes a browser send: `Host`, `Origin` or `Sec-Fetch-Site` reveal them. Refuses
proxied requests, so that a proxy does not open the service by mistake."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from duetime.api.problems import ApiProblem
from duetime.errors import ConfigError

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
# Each is a sign of a proxy, a load balancer or a content network.
FORWARDED = frozenset(
    {
        "forwarded",
        "via",
        *(
            f"x-forwarded-{name}"
            for name in ("by", "for", "host", "port", "prefix", "proto", "scheme", "server")
        ),
        *("x-original-forwarded-for", "x-original-host", "x-envoy-external-address", "x-proxyuser-ip"),
        *("x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-remote-ip", "x-originating-ip"),
        *("true-client-ip", "client-ip", "proxy-client-ip", "wl-proxy-client-ip"),
        *("cf-connecting-ip", "cf-connecting-ipv6", "cf-pseudo-ipv4", "cf-ray", "cdn-loop"),
        *("fly-client-ip", "fly-forwarded-port", "fastly-client-ip", "do-connecting-ip"),
        *("x-azure-clientip", "x-azure-socketip", "x-appengine-user-ip", "x-nf-client-connection-ip"),
        *("x-amz-cf-id", "x-vercel-forwarded-for", "tailscale-user-login"),
    }
)
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_SITES = frozenset({"same-origin", "none"})  # "none": typed into the address bar


def require_local_request(method: str, headers: Mapping[str, str]) -> None:
    """Raises ApiProblem(403). The names of the headers are in small letters, as ASGI has them."""
    host = headers.get("host", "").lower()
    if not _is_loopback(host):
        remedy = "use localhost or 127.0.0.1, or start it with --auth keys"
        raise ApiProblem(
            403, "host_not_allowed", f"Host: local mode does not accept this name: {remedy}", "Host"
        )
    if not FORWARDED.isdisjoint(headers):
        remedy = "start it with --auth keys"
        raise ApiProblem(403, "proxy_not_allowed", f"local mode does not accept proxied requests: {remedy}")
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != host:
        raise ApiProblem(
            403, "origin_not_allowed", "Origin: pages of other sites may not use this service", "Origin"
        )
    if method not in SAFE_METHODS and headers.get("sec-fetch-site", "none") not in OWN_SITES:
        raise ApiProblem(
            403,
            "origin_not_allowed",
            "Sec-Fetch-Site: pages of other sites may not use this service",
            "Sec-Fetch-Site",
        )


def require_local_url(public_url: str | None) -> None:
    """Without keys every caller may do everything, so there must be no address for others."""
    if public_url is not None and not _is_loopback(urlsplit(public_url).netloc.lower()):
        remedy = (
            "create a key with `duetime key create NAME --scopes admin` and start with --auth keys, "
            "or leave public_url out"
        )
        raise ConfigError(
            f"public_url: {public_url} is for other machines, and there is no authentication: {remedy}"
        )


def _is_loopback(host: str) -> bool:
    name, colon, port = host.rpartition(":")
    bare = name if colon and port.isdigit() else host
    if bare in LOOPBACK_NAMES:
        return True
    try:
        # DNS can point a name at this machine, but not a number.
        return ip_address(bare.strip("[]")).is_loopback
    except ValueError:
        return False
