"""Who asks: a tenant and what it may do. The router asks before any route does, so that a route cannot forget to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Protocol

from fastapi import Depends
from starlette.requests import Request

from duetime.api.edge import Edge, edge_of
from duetime.api.problems import Refused
from duetime.model.job import DEFAULT_TENANT


class Scope(StrEnum):
    READ = "read"
    SUBMIT = "submit"
    MANAGE = "manage"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Caller:
    tenant: str
    scopes: frozenset[Scope]
    key_prefix: str | None = None  # what may be shown of the key

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes


LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
LOCAL = Caller(DEFAULT_TENANT, frozenset(Scope))


class Gate(Protocol):
    """Tells who asks by what a request's headers say; raises Refused(401) for whom it does not know."""

    async def admit(self, headers: Mapping[str, str]) -> Caller: ...


class LocalGate:
    """Local mode: only this machine can ask, and it may do everything. A browser on it may not be made to ask by pages from elsewhere:
    their name in `Host` or `Origin` gives them away (S42)."""

    async def admit(self, headers: Mapping[str, str]) -> Caller:
        host = headers.get("host", "")
        if _without_port(host) not in LOOPBACK_NAMES:
            raise Refused(403, "host_not_allowed", "Host: in local mode the service answers to localhost and 127.0.0.1 only", "Host")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise Refused(403, "origin_not_allowed", "Origin: pages of other sites may not use this service", "Origin")
        return LOCAL


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


async def admit(edge: Edge, headers: Mapping[str, str], scope: Scope) -> Caller:
    caller = await edge.gate.admit(headers)
    edge.rate_limit.spend(caller.key_prefix, caller.tenant)
    return _allowed(caller, scope)


async def anyone_known(request: Request) -> Caller:
    """At the router: every route below it is closed to whom the gate does not know."""
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None:
        edge = edge_of(request)
        caller = request.state.caller = await edge.gate.admit(request.headers)
        edge.rate_limit.spend(caller.key_prefix, caller.tenant)
    return caller


async def admitted(request: Request, scope: Scope) -> Caller:
    return _allowed(await anyone_known(request), scope)


def _allowed(caller: Caller, scope: Scope) -> Caller:
    if not caller.may(scope):
        raise Refused(403, "scope_missing", f"the key lacks the scope {scope.value!r}: use one that has it")
    return caller


async def _reader(request: Request) -> Caller:
    return await admitted(request, Scope.READ)


async def _submitter(request: Request) -> Caller:
    return await admitted(request, Scope.SUBMIT)


async def _manager(request: Request) -> Caller:
    return await admitted(request, Scope.MANAGE)


Reader = Annotated[Caller, Depends(_reader)]
Submitter = Annotated[Caller, Depends(_submitter)]
Manager = Annotated[Caller, Depends(_manager)]
