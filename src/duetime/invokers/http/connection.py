"""One session for all calls of a node: connections reused, redirects, cookies and proxies off, certificates verified."""

from __future__ import annotations

import ssl

import aiohttp
from aiohttp.abc import AbstractResolver

from duetime.invokers.http.guard import Guard
from duetime.model.addresses import Egress

# Many servers close a connection that idles for 5 s. Whoever sends on it in that moment gets no answer: let go first.
IDLE_SECONDS = 4.0
NAMES_KEPT_SECONDS = 10


def trusted_roots() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class Connection:
    """Must be made on the event loop that uses it."""

    def __init__(self, egress: Egress, resolver: AbstractResolver | None, roots: ssl.SSLContext | None, per_host: int) -> None:
        self.guard = Guard(egress, resolver or aiohttp.ThreadedResolver())
        connector = aiohttp.TCPConnector(
            resolver=self.guard,
            socket_factory=self.guard.open_socket,
            ttl_dns_cache=NAMES_KEPT_SECONDS,
            keepalive_timeout=IDLE_SECONDS,
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
