"""Who calls the API: the types that authentication, rate limits and routes share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from duetime.model.api_key import Scope
from duetime.model.instant import Micros
from duetime.model.job import DEFAULT_TENANT
from duetime.model.limit import Rate

Identity = tuple[str, str | None]  # tenant and key
HAS_KEY = "has_key"  # in the state of a request: its caller has a valid key


@dataclass(frozen=True, slots=True)
class Caller:
    tenant: str
    scopes: frozenset[Scope]
    key_prefix: str | None = None  # the public part of the key
    name: str | None = None
    expires_at: Micros | None = None
    rate: Rate | None = None  # of this key; None: the rate of the service
    queues: tuple[str, ...] = ()  # that it may work on; empty: all

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes

    @property
    def author(self) -> str | None:
        """The author of changes; None in local mode, where callers are anonymous."""
        return None if self.key_prefix is None else f"{self.name or 'key'} ({self.key_prefix})"

    @property
    def identity(self) -> Identity:
        """What limits on open requests count by."""
        return self.tenant, self.key_prefix


LOCAL = Caller(DEFAULT_TENANT, frozenset(Scope))


class AuthRequest(NamedTuple):
    """The parts of a request that an authenticator needs."""

    method: str
    headers: Mapping[str, str]
    peer: str | None  # the address at the other end of the connection; None for a Unix socket


class Authenticator(Protocol):
    """Identifies the caller. Raises ApiProblem(401) for unknown callers."""

    local: bool  # no key is needed, and every caller may do everything

    async def authenticate(self, request: AuthRequest) -> Caller: ...


class RateLimit(Protocol):
    """Limits the requests of a key. Raises ApiProblem(429) with Retry-After."""

    async def spend(self, caller: Caller) -> None: ...
