"""Who asks: a tenant and what it may do. The router asks before any route does, so that a route cannot forget to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple, Protocol

from fastapi import Depends
from starlette.requests import Request

from duetime.api.edge import Edge, edge_of
from duetime.api.problems import Refused
from duetime.model.apikey import Scope
from duetime.model.instant import Micros
from duetime.model.job import DEFAULT_TENANT
from duetime.model.limit import Rate

__all__ = ["LOCAL", "Admin", "Asked", "Caller", "Gate", "Known", "Manager", "Operator", "Reader", "Scope", "Scraper", "Submitter"]


@dataclass(frozen=True, slots=True)
class Caller:
    tenant: str
    scopes: frozenset[Scope]
    key_prefix: str | None = None  # what may be shown of the key
    name: str | None = None
    expires_at: Micros | None = None
    rate: Rate | None = None  # the key's own; None: that of the service

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes

    @property
    def author(self) -> str | None:
        """As whom changes are signed; None in local mode, where nobody said who they are."""
        return None if self.key_prefix is None else f"{self.name or 'key'} ({self.key_prefix})"


LOCAL = Caller(DEFAULT_TENANT, frozenset(Scope))


class Asked(NamedTuple):
    """What a gate goes by."""

    method: str
    headers: Mapping[str, str]
    peer: str | None  # the address at the other end of the connection; None for a Unix socket


class Gate(Protocol):
    """Tells who asks; raises Refused(401) for whom it does not know."""

    local: bool  # nobody shows a key: whoever reaches the service may do everything

    async def admit(self, asked: Asked) -> Caller: ...


def asked_by(request: Request) -> Asked:
    return Asked(request.method, request.headers, None if request.client is None else request.client.host)


async def admit(edge: Edge, asked: Asked, scope: Scope) -> Caller:
    caller = await edge.gate.admit(asked)
    edge.rate_limit.spend(caller)
    return _allowed(caller, scope)


async def anyone_known(request: Request) -> Caller:
    """At the router: every route below it is closed to whom the gate does not know."""
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None:
        edge = edge_of(request)
        caller = request.state.caller = await edge.gate.admit(asked_by(request))
        edge.rate_limit.spend(caller)
    return caller


async def admitted(request: Request, scope: Scope) -> Caller:
    return _allowed(await anyone_known(request), scope)


def _allowed(caller: Caller, scope: Scope) -> Caller:
    if not caller.may(scope):
        raise Refused(403, "scope_missing", f"the key lacks the scope {scope.value!r}: use one that has it")
    return caller


def at_home(edge: Edge, caller: Caller) -> bool:
    """Whether the caller belongs to the tenant that runs the service: what all tenants share is its alone to change."""
    return caller.tenant == edge.app.tenant


async def _reader(request: Request) -> Caller:
    return await admitted(request, Scope.READ)


async def _submitter(request: Request) -> Caller:
    return await admitted(request, Scope.SUBMIT)


async def _manager(request: Request) -> Caller:
    return await admitted(request, Scope.MANAGE)


async def _admin(request: Request) -> Caller:
    return await admitted(request, Scope.ADMIN)


async def _operator(request: Request) -> Caller:
    caller = await admitted(request, Scope.MANAGE)
    edge = edge_of(request)
    if not at_home(edge, caller):
        raise Refused(403, "tenant_not_allowed", f"all tenants share this: only keys of the tenant {edge.app.tenant!r} may change it")
    return caller


async def _scraper(request: Request) -> None:
    """For /metrics: whoever may read, unless the operator lets everybody in."""
    if not edge_of(request).settings.open_metrics:
        await admitted(request, Scope.READ)


Known = Annotated[Caller, Depends(anyone_known)]
Reader = Annotated[Caller, Depends(_reader)]
Submitter = Annotated[Caller, Depends(_submitter)]
Manager = Annotated[Caller, Depends(_manager)]
Operator = Annotated[Caller, Depends(_operator)]
Admin = Annotated[Caller, Depends(_admin)]
Scraper = Annotated[None, Depends(_scraper)]
