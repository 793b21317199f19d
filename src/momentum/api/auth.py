"""Who calls: any program of this machine (`auth=none`, on a loopback address only), or the holder of an API
key, which the page keeps in a session cookie. Every router requires a caller, so no route can forget it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request

from duetime.serving import HAS_KEY, require_local_request
from momentum.api.keys import ApiKey, digest_of, find_key
from momentum.api.problems import Forbidden
from momentum.api.state import ServiceState, state_of
from momentum.errors import AccessDenied
from momentum.secret_box import SecretUnreadable

COOKIE = "momentum_session"
PAGE_HEADER = "x-momentum"
SESSION_SECONDS = 7 * 86_400
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
MAX_VALID_KEYS = 10_000  # that are remembered
LOCAL_TENANT = "default"  # its keys belong to the operator of the service


@dataclass(frozen=True, slots=True)
class Caller:
    tenant: str
    name: str
    key_id: str | None = None  # None: no key is needed

    @property
    def is_operator(self) -> bool:
        """Whether the caller may change what all tenants share."""
        return self.tenant == LOCAL_TENANT


async def authenticate(request: Request) -> Caller:
    state = state_of(request)
    if state.settings.auth == "none":
        require_local_request(request.method, request.headers)
        return Caller(LOCAL_TENANT, "local")
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if text:
        key = await key_of(request, state, text.strip()) if scheme.lower() == "bearer" else None
    else:
        key = await _session_key(request, state)
    if key is None:
        raise AccessDenied(
            "an API key is needed: send `Authorization: Bearer mo_...`, or sign in on the page"
        )
    request.scope["state"][HAS_KEY] = True
    return Caller(key.tenant, key.name, key.id)


async def key_of(request: Request, state: ServiceState, text: str) -> ApiKey | None:
    """The valid key with this text. Limits the rate of wrong ones from one address; a key that was valid
    before is looked up all the same."""
    peer, digest = None if request.client is None else request.client.host, digest_of(text)
    if digest not in state.valid_keys:
        state.wrong_keys.refuse_blocked(peer, request.headers)
    async with state.momentum.database.reading() as connection:
        key = await find_key(connection, text=text)
    if key is None:
        state.valid_keys.discard(digest)
        state.wrong_keys.count(peer, request.headers)
        return None
    if len(state.valid_keys) >= MAX_VALID_KEYS:
        state.valid_keys.clear()
    state.valid_keys.add(digest)
    return key


async def _session_key(request: Request, state: ServiceState) -> ApiKey | None:
    cookie = request.cookies.get(COOKIE)
    if not cookie:
        return None
    require_same_origin(request, state)
    if request.method not in SAFE_METHODS and request.headers.get(PAGE_HEADER) != "1":
        raise Forbidden("requests with the session cookie need the header `X-Momentum: 1`")
    try:
        key_id = state.momentum.secrets.open(cookie.encode(), SESSION_SECONDS)
    except SecretUnreadable:
        return None
    async with state.momentum.database.reading() as connection:
        return await find_key(connection, key_id=key_id)


def session_cookie(state: ServiceState, key: ApiKey) -> str:
    """It names the key: a revoked key ends its sessions."""
    return state.momentum.secrets.seal(key.id).decode()


def require_same_origin(request: Request, state: ServiceState) -> None:
    """A request that changes something must not come from a page of another site."""
    if request.method in SAFE_METHODS:
        return
    origin = request.headers.get("origin")
    allowed = {request.headers.get("host"), urlsplit(state.settings.public_url or "").netloc}
    if origin is not None and urlsplit(origin).netloc not in allowed:
        raise Forbidden(f"origin: {origin} is another site")
    if request.headers.get("sec-fetch-site") == "cross-site":
        raise Forbidden("origin: the request comes from another site")


KnownCaller = Annotated[Caller, Depends(authenticate)]
