"""Who calls: any program of this machine (`auth=none`, on a loopback address only), or the holder of an API
key, which the page keeps in a session cookie. Every router requires a caller, so no route can forget it."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request

from momentum.api.keys import ApiKey, find_key
from momentum.api.problems import Forbidden
from momentum.api.state import ServiceState, state_of
from momentum.errors import AccessDenied
from momentum.secret_box import SecretUnreadable

COOKIE = "momentum_session"
PAGE_HEADER = "x-momentum"
SESSION_SECONDS = 7 * 86_400
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
LOCAL_TENANT = "default"  # its keys belong to the operator of the service


@dataclass(frozen=True, slots=True)
class Caller:
    tenant: str
    name: str

    @property
    def is_operator(self) -> bool:
        """Whether the caller may change what all tenants share."""
        return self.tenant == LOCAL_TENANT


async def authenticate(request: Request) -> Caller:
    state = state_of(request)
    if state.settings.auth == "none":
        require_local_host(request, state)
        require_same_origin(request, state)
        return Caller(LOCAL_TENANT, "local")
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if text:
        key = await _key(state, text=text.strip()) if scheme.lower() == "bearer" else None
    else:
        key = await _session_key(request, state)
    if key is None:
        raise AccessDenied(
            "an API key is needed: send `Authorization: Bearer mo_...`, or sign in on the page"
        )
    return Caller(key.tenant, key.name)


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
    return await _key(state, key_id=key_id)


async def _key(state: ServiceState, *, text: str | None = None, key_id: str | None = None) -> ApiKey | None:
    async with state.momentum.database.reading() as connection:
        return await find_key(connection, text=text, key_id=key_id)


def session_cookie(state: ServiceState, key: ApiKey) -> str:
    """It names the key: a revoked key ends its sessions."""
    return state.momentum.secrets.seal(key.id).decode()


def require_local_host(request: Request, state: ServiceState) -> None:
    """Without keys, a page of another site could reach this service under a name that it resolves to this
    machine. Its requests carry that name in Host."""
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    public = urlsplit(state.settings.public_url or "").hostname
    if not _is_loopback(host) and host != public:
        raise Forbidden(f"host: {host!r} is not a name of this machine: use http://127.0.0.1:PORT")


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


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


KnownCaller = Annotated[Caller, Depends(authenticate)]
