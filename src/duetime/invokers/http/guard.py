"""The address guard: a name is resolved once, every address is checked, and only checked addresses are
dialled.

Three places check: literal addresses before the call, names in the resolver, and the dialled address in the
socket factory.
"""

from __future__ import annotations

import logging
import socket
import ssl
from ipaddress import ip_address
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import AddrInfoType

from duetime.model.url import Egress, Url

_logger = logging.getLogger("duetime.http")
MAX_CACHED = 10_000


class TargetRefused(Exception):
    """This target is not allowed. The caller learns no more than that; the operator finds the reason in the
    log."""


class Guard(AbstractResolver):
    """Returns checked addresses only. One forbidden address refuses them all: a name that mixes them may be
    an attack."""

    def __init__(self, egress: Egress, resolver: AbstractResolver) -> None:
        self._egress = egress
        self._resolver = resolver
        self._granted: set[str] = set()  # addresses of hosts that the operator allows by name
        self._passed: set[tuple[str, str, int]] = set()

    def check(self, url: Url) -> None:
        """The checks before a name is resolved. A literal address needs no other."""
        if url.origin_key not in self._passed:
            if (reason := self._egress.refusal_before_resolving(url)) is not None:
                self._refuse(url.host, url.port, reason)
            if len(self._passed) > MAX_CACHED:
                self._passed.clear()
            self._passed.add(url.origin_key)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        answers = await self._resolver.resolve(host, port, family)
        if not answers:
            raise OSError(None, "no address")
        for answer in answers:
            if (reason := self._egress.refusal(host, port, ip_address(answer["host"]))) is not None:
                self._refuse(host, port, f"{answer['host']} is {reason}")
        if host in self._egress.hosts:
            self._grant(answers)
        return answers

    def open_socket(self, found: AddrInfoType) -> socket.socket:
        """The last check, of the very address that is dialled."""
        family, kind, protocol, _, where = found
        text: Any = where[0]
        if (
            text not in self._granted
            and (reason := self._egress.refusal("", int(where[1]), ip_address(text))) is not None
        ):
            self._refuse(str(text), int(where[1]), reason)
        return socket.socket(family, kind, protocol)

    async def close(self) -> None:
        await self._resolver.close()

    def _grant(self, answers: list[ResolveResult]) -> None:
        if len(self._granted) > MAX_CACHED:
            self._granted.clear()
        self._granted.update(answer["host"] for answer in answers)

    def _refuse(self, host: str, port: int, reason: str) -> None:
        _logger.warning("target %s port %d is not allowed: %s", host, port, reason)
        raise TargetRefused


# One session for all calls of a node: connections are reused, certificates verified; redirects, cookies and
# proxies are off.


# Many servers close an idle connection after 5 s, and a request sent at that moment gets no response: close
# it first.
IDLE_TIMEOUT = 4.0
DNS_CACHE_SECONDS = 10


def trusted_roots() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class HttpConnections:
    """Create it on the event loop that uses it."""

    def __init__(
        self, egress: Egress, resolver: AbstractResolver | None, roots: ssl.SSLContext | None, per_host: int
    ) -> None:
        self.guard = Guard(egress, resolver or aiohttp.ThreadedResolver())
        connector = aiohttp.TCPConnector(
            resolver=self.guard,
            socket_factory=self.guard.open_socket,
            ttl_dns_cache=DNS_CACHE_SECONDS,
            keepalive_timeout=IDLE_TIMEOUT,
            limit=0,
            limit_per_host=per_host,
            ssl=roots or trusted_roots(),
        )
        self.session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=30),
        )

    async def close(self) -> None:
        await self.session.close()
        await self.guard.close()
