"""Authentication and scopes as dependencies of routes. Every router requires a known caller, so no route can
forget it."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from fastapi import Depends
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.caller import HAS_KEY, LOCAL, AuthRequest, Caller
from duetime.api.idempotency import fingerprint
from duetime.api.local_mode import require_local_request
from duetime.api.paging import Listing, PageQuery
from duetime.api.problems import ApiProblem
from duetime.api.rate_limit import LOOKUP_RATE, RateBuckets, WrongKeys, keep, too_many
from duetime.api.state import ServiceState, state_of
from duetime.app.listing import JobQuery
from duetime.app.services import Services
from duetime.clock import monotonic_micros
from duetime.errors import DuetimeError
from duetime.model.api_key import NO_DIGEST, ApiKey, Scope, digest_of, prefix_of
from duetime.model.instant import SECOND, Micros
from duetime.model.url import Network


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

    async def listing(
        self, name: str, query: PageQuery, filters: Mapping[str, object] | None = None
    ) -> Listing:
        bound = (
            query.model_dump(mode="json", exclude={"limit", "cursor"}) if filters is None else dict(filters)
        )
        await self.state.cursors.open(self.state.app.store)
        return Listing(self.state.cursors, self.caller.tenant, name, bound, query)

    def searching(self, query: JobQuery) -> AbstractContextManager[None]:
        """While the query is answered. A search takes one of the places of its tenant."""
        identity = self.caller.tenant, None
        return self.state.searches.held(identity) if query.is_search else nullcontext()

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
    await state.rate_limit.spend(caller)
    return RequestContext(state, caller, request, path, state.view(caller))


async def known_caller(request: Request) -> RequestContext:
    """The context of the request, made once for all dependencies of a route."""
    context: RequestContext | None = getattr(request.state, "context", None)
    if context is None:
        context = await authenticate(state_of(request), auth_request_of(request), request.url.path)
        request.state.context = context
        request.scope["state"][HAS_KEY] = context.caller.key_prefix is not None
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
RemoteWorker = Annotated[RequestContext, Depends(_with(Scope.WORK))]
Scraper = Annotated[None, Depends(_scraper)]


# Two authenticators: local mode accepts every request from this machine, except from pages of other sites;
# the other needs keys.


CACHE_TIME = 2 * SECOND  # of a key, before the store is read again
MAX_KNOWN, MAX_UNKNOWN = 10_000, 1_000
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="duetime"'}
BEARER = "bearer "
USE_INTERVAL = 60 * SECOND  # between two updates of last_used_at


class LocalAuthenticator:
    """Accepts requests from this machine only, and allows everything."""

    local = True

    async def authenticate(self, request: AuthRequest) -> Caller:
        require_local_request(request.method, request.headers)
        return LOCAL


class CachedKey(NamedTuple):
    key: ApiKey
    version: int  # of its record
    caller: Caller
    read_at: Micros  # on this machine's own clock
    refusal: str | None  # the problem code of a revoked or expired key
    use_due: bool  # last_used_at needs an update


class KeyAuthenticator:
    """Accepts requests with a valid key. Caches keys for two seconds, and limits the rate of wrong ones."""

    local = False

    def __init__(
        self, app: Services, proxies: tuple[Network, ...] = (), failures: RateBuckets | None = None
    ) -> None:
        self._app = app
        self._known: dict[str, CachedKey] = {}
        self._unknown: dict[str, Micros] = {}  # unknown prefixes, and until when they are cached
        self._reading: dict[str, asyncio.Task[CachedKey | None]] = {}
        self._wrong_keys = WrongKeys(proxies, failures)
        self._lookups = RateBuckets(limit=1)

    async def authenticate(self, request: AuthRequest) -> Caller:
        text = _bearer(request.headers)
        prefix = prefix_of(text)
        if prefix is None:
            raise self._failed(request, "is not an API key: keys look like dt_<prefix>_<secret>")
        known = self._known.get(prefix)
        digest = digest_of(text)
        if known is None or monotonic_micros() - known.read_at > CACHE_TIME:
            # A cached valid key is not blocked by wrong keys from the same address.
            if known is None or not hmac.compare_digest(known.key.digest, digest):
                self._wrong_keys.refuse_blocked(request.peer, request.headers)
            known = await self._ask_store(prefix)
        if not hmac.compare_digest(NO_DIGEST if known is None else known.key.digest, digest) or known is None:
            raise self._failed(request, "is not a key of this service: check it, or create a new one")
        if known.refusal is not None:
            raise self._refusal(known)
        if known.use_due and self._known.get(prefix) is known:
            await self._note_use(known)
        return known.caller

    async def _ask_store(self, prefix: str) -> CachedKey | None:
        """One read for all requests that wait for this prefix."""
        if self._unknown.get(prefix, 0) > monotonic_micros():
            return None
        reading = self._reading.get(prefix)
        if reading is None:
            if prefix not in self._known and (wait := self._lookups.spend("", LOOKUP_RATE)):
                raise too_many("too many unknown keys: repeat the request", wait)
            reading = self._reading[prefix] = asyncio.ensure_future(self._look_up(prefix))
            reading.add_done_callback(lambda done: self._ended(prefix, done))
        return await asyncio.shield(reading)

    def _ended(self, prefix: str, done: asyncio.Task[CachedKey | None]) -> None:
        del self._reading[prefix]
        if not done.cancelled():
            done.exception()  # marks it as retrieved: no request may wait any more

    async def _look_up(self, prefix: str) -> CachedKey | None:
        began = monotonic_micros()  # before the read: a revocation may be written during it
        found = await self._app.keys.find(prefix)
        if found is None:
            self._known.pop(prefix, None)
            keep(self._unknown, prefix, began + CACHE_TIME, MAX_UNKNOWN)
            return None
        key, version = found
        now = await self._app.now()
        state = key.state(now)
        caller = Caller(key.tenant, key.scopes, key.prefix, key.name, key.expires_at, key.rate, key.queues)
        use_due = state == "active" and now - (key.last_used_at or 0) >= USE_INTERVAL
        known = CachedKey(key, version, caller, began, None if state == "active" else f"key_{state}", use_due)
        keep(self._known, prefix, known, MAX_KNOWN)
        return known

    async def _note_use(self, known: CachedKey) -> None:
        """At most once a minute for each key, in all processes together."""
        self._known[known.key.prefix] = known._replace(
            use_due=False
        )  # before the write: other requests run meanwhile
        with suppress(DuetimeError):  # a failed update does not fail the request
            await self._app.keys.record_use(known.key, known.version, await self._app.now())

    def _failed(self, request: AuthRequest, why: str) -> ApiProblem:
        self._wrong_keys.count(request.peer, request.headers)
        return ApiProblem(401, "key_invalid", f"Authorization: {why}", "Authorization", CHALLENGE)

    @staticmethod
    def _refusal(known: CachedKey) -> ApiProblem:
        if known.refusal == "key_revoked":
            return ApiProblem(
                401,
                "key_revoked",
                "Authorization: this key was revoked: use another one",
                "Authorization",
                CHALLENGE,
            )
        return ApiProblem(
            401,
            "key_expired",
            "Authorization: this key has expired: use another one",
            "Authorization",
            CHALLENGE,
        )


def _bearer(headers: Mapping[str, str]) -> str:
    given = headers.get("authorization")
    if given is None:
        remedy = "send Authorization: Bearer dt_..., as `duetime key create` printed it"
        raise ApiProblem(401, "key_missing", f"an API key is required: {remedy}", "Authorization", CHALLENGE)
    return given[len(BEARER) :].strip() if given[: len(BEARER)].lower() == BEARER else ""
