"""The address guard: a name is resolved once, every answer is checked, and only what was checked is dialled.

Three places see to it: literal addresses before the call, names in the resolver, and whatever is dialled in the socket factory.
"""

from __future__ import annotations

import logging
import socket
from ipaddress import ip_address
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import AddrInfoType

from duetime.model.addresses import Egress, literal
from duetime.model.url import Url

_logger = logging.getLogger("duetime.http")
MOST_KEPT = 10_000


class Refused(Exception):
    """This target may not be called. Its caller is told no more than that; the operator finds the reason in the log."""


class Guard(AbstractResolver):
    """Answers with checked addresses only. One answer that may not be called refuses them all: who mixes them is up to something."""

    def __init__(self, egress: Egress, resolver: AbstractResolver) -> None:
        self._egress = egress
        self._resolver = resolver
        self._granted: set[str] = set()  # addresses of hosts the operator allows by name
        self._passed: set[tuple[str, str, int]] = set()

    def check(self, url: Url) -> None:
        """What can be said before anything is resolved. For a literal address that is all, and it stays true."""
        if url.origin_key not in self._passed:
            self._look_at(url)
            if len(self._passed) > MOST_KEPT:
                self._passed.clear()
            self._passed.add(url.origin_key)

    def _look_at(self, url: Url) -> None:
        if url.scheme == "http" and not self._egress.plain_http:
            self._refuse(url.host, url.port, "plain http")
        address = literal(url.host)
        if address is not None and (reason := self._egress.refusal(url.host, url.port, address)) is not None:
            self._refuse(url.host, url.port, reason)

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
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
        """The last look, at the very address that is dialled."""
        family, kind, protocol, _, where = found
        text: Any = where[0]
        if text not in self._granted and (reason := self._egress.refusal("", int(where[1]), ip_address(text))) is not None:
            self._refuse(str(text), int(where[1]), reason)
        return socket.socket(family, kind, protocol)

    async def close(self) -> None:
        await self._resolver.close()

    def _grant(self, answers: list[ResolveResult]) -> None:
        if len(self._granted) > MOST_KEPT:
            self._granted.clear()
        self._granted.update(answer["host"] for answer in answers)

    def _refuse(self, host: str, port: int, reason: str) -> None:
        _logger.warning("target %s port %d is not allowed: %s", host, port, reason)
        raise Refused
