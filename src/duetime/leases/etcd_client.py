"""Requests to etcd through its JSON gateway (version 3.4 or later), to one endpoint after the other."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import aiohttp

from duetime.errors import LeasesUnavailable
from duetime.leases.etcd_address import EtcdAddress

CALL_TIMEOUT = 2.0  # seconds, of one endpoint: a node must not wait for one that is away
# Codes of gRPC
INVALID_ARGUMENT, NOT_FOUND, UNAUTHENTICATED = 3, 5, 16


class EtcdLeaseEnded(Exception):
    """The request names a lease that no longer exists."""


class EtcdRefused(Exception):
    """etcd answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def token_expired(self) -> bool:
        """Also when users or roles have changed after the token was made."""
        return self.code == UNAUTHENTICATED or (self.code == INVALID_ARGUMENT and "auth" in str(self))


class EtcdClient:
    """Every request may be repeated: the callers see to it. It connects when it is first used, and again
    after `close`."""

    def __init__(self, address: EtcdAddress) -> None:
        self._address = address
        self._preferred = address.endpoints[0]  # the one that answered last
        self._session: aiohttp.ClientSession | None = None
        self._token = ""

    async def call(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raises LeasesUnavailable if no endpoint carries it out."""
        problems: list[str] = []
        for endpoint in sorted(self._address.endpoints, key=lambda one: one != self._preferred):
            try:
                reply = await self._authorised(endpoint, path, body)
            except EtcdRefused as refused:
                if refused.code == NOT_FOUND:
                    raise EtcdLeaseEnded from None
                problems.append(f"etcd at {endpoint}: {refused}")
            except TimeoutError:
                problems.append(f"etcd at {endpoint}: no reply in {CALL_TIMEOUT:g} s")
            except (aiohttp.ClientError, OSError) as failure:
                problems.append(f"etcd at {endpoint}: {failure or type(failure).__name__}")
            else:
                self._preferred = endpoint
                return reply
        raise LeasesUnavailable("; ".join(problems))

    async def close(self) -> None:
        session, self._session, self._token = self._session, None, ""
        if session is not None:
            await session.close()

    async def _authorised(self, endpoint: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._address.user and not self._token:
            await self._authenticate(endpoint)
        try:
            return await self._send(endpoint, path, body)
        except EtcdRefused as refused:
            if not (self._address.user and refused.token_expired):
                raise
        await self._authenticate(endpoint)
        return await self._send(endpoint, path, body)

    async def _authenticate(self, endpoint: str) -> None:
        self._token = ""
        login = {"name": self._address.user, "password": self._address.password}
        self._token = (await self._send(endpoint, "auth/authenticate", login)).get("token", "")

    async def _send(self, endpoint: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout(total=CALL_TIMEOUT)
            )
        headers = {"Authorization": self._token} if self._token else {}
        async with self._session.post(
            f"{endpoint}/v3/{path}",
            data=json.dumps(body),
            headers=headers,
            ssl=self._address.tls or True,
            allow_redirects=False,
        ) as reply:
            value = _decoded(await reply.read())
        if reply.status != 200:
            raise EtcdRefused(value.get("code", 0), str(value.get("message", reply.reason)))
        return value


def _decoded(body: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        value = json.loads(body)
        if isinstance(value, dict):
            return value
    raise EtcdRefused(0, "the reply is not from etcd: check the address")


def to_text(data: str) -> str:
    return base64.b64decode(data).decode()


def from_text(text: str) -> str:
    """As etcd writes keys and values in JSON."""
    return base64.b64encode(text.encode()).decode()
