"""One session for all calls of a node: connections are reused, certificates verified; redirects, cookies and
proxies are off."""

from __future__ import annotations

import ssl

import aiohttp
from aiohttp.abc import AbstractResolver

from duetime.invokers.http.guard import Guard
from duetime.model.addresses import Egress

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
