"""Authentication and scopes as dependencies of routes. Every router requires a known caller, so no route can
forget it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.caller import AuthRequest, Caller
from duetime.api.idempotency import fingerprint
from duetime.api.paging import Listing, PageQuery
from duetime.api.problems import ApiProblem
from duetime.api.state import ServiceState, state_of
from duetime.app.services import Services
from duetime.model.apikey import Scope


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request of a known caller."""

    state: ServiceState
    caller: Caller
    auth: AuthRequest
    path: str
    view: Services  # the app, limited to the caller's tenant

    @property
    def is_operator(self) -> bool:
        """The caller belongs to the tenant that runs the service. Only that tenant may change what all
        tenants share."""
        return self.caller.tenant == self.state.app.tenant

    def require_operator(self, reason: str) -> None:
        if not self.is_operator:
            raise ApiProblem(
                403, "tenant_not_allowed", f"{reason}: use a key of the tenant {self.state.app.tenant!r}"
            )

    def listing(self, name: str, query: PageQuery, filters: Mapping[str, object] | None = None) -> Listing:
        bound = (
            query.model_dump(mode="json", exclude={"limit", "cursor"}) if filters is None else dict(filters)
        )
        return Listing(self.state.cursors, self.caller.tenant, name, bound, query)

    async def once(
        self, work: Callable[[Services], Awaitable[Response]], body: BaseModel | None = None
    ) -> Response:
        """Do the work once for each Idempotency-Key; `work` gets the view to use."""
        key = self.auth.headers.get("idempotency-key")
        if key is None:
            return await work(self.view)
        request = fingerprint(self.auth.method, self.path, body)
        return await self.state.idempotency.once(self.view, key, request, work)


def auth_request_of(request: Request) -> AuthRequest:
    return AuthRequest(
        request.method, request.headers, None if request.client is None else request.client.host
    )


async def authenticate(state: ServiceState, request: AuthRequest, path: str) -> RequestContext:
    caller = await state.authenticator.authenticate(request)
    state.rate_limit.spend(caller)
    return RequestContext(state, caller, request, path, state.view(caller))


async def known_caller(request: Request) -> RequestContext:
    """The context of the request, made once for all dependencies of a route."""
    context: RequestContext | None = getattr(request.state, "context", None)
    if context is None:
        context = await authenticate(state_of(request), auth_request_of(request), request.url.path)
        request.state.context = context
    return context


def require_scope(context: RequestContext, scope: Scope) -> RequestContext:
    if not context.caller.may(scope):
        raise ApiProblem(
            403, "scope_missing", f"the key lacks the scope {scope.value!r}: use a key that has it"
        )
    return context


def _with(scope: Scope) -> Callable[[Request], Awaitable[RequestContext]]:
    async def dependency(request: Request) -> RequestContext:
        return require_scope(await known_caller(request), scope)

    return dependency


async def _operator(request: Request) -> RequestContext:
    context = require_scope(await known_caller(request), Scope.MANAGE)
    context.require_operator("all tenants share queues")
    return context


async def _scraper(request: Request) -> None:
    """For /metrics: a caller of the operator's tenant that may read, unless the settings open it for all."""
    if not state_of(request).settings.open_metrics:
        require_scope(await known_caller(request), Scope.READ).require_operator("metrics include all tenants")


Known = Annotated[RequestContext, Depends(known_caller)]
Reader = Annotated[RequestContext, Depends(_with(Scope.READ))]
Submitter = Annotated[RequestContext, Depends(_with(Scope.SUBMIT))]
Manager = Annotated[RequestContext, Depends(_with(Scope.MANAGE))]
Operator = Annotated[RequestContext, Depends(_operator)]
Admin = Annotated[RequestContext, Depends(_with(Scope.ADMIN))]
Scraper = Annotated[None, Depends(_scraper)]
