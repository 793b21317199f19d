"""The status of the service and its platforms, and the page's session."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response
from sqlalchemy import select

from momentum import __version__
from momentum.api.auth import COOKIE, LOCAL_TENANT, SESSION_SECONDS, KnownCaller, key_of, session_cookie
from momentum.api.models.accounts import (
    CountsOut,
    HoldOut,
    PlatformOut,
    SessionIn,
    SessionOut,
    StatusOut,
    UsageOut,
)
from momentum.api.problems import OperatorOnly
from momentum.api.state import ServiceState, State
from momentum.database import tables, usage
from momentum.errors import AccessDenied, NotFound
from momentum.model import PLANNED, PostState
from momentum.platform import Platform
from momentum.posts import inbox, queries

router = APIRouter(tags=["service"])
session_router = APIRouter(tags=["service"])  # without a caller: here the page becomes one


@router.get("/status", response_model=StatusOut)
async def get_status(caller: KnownCaller, state: State) -> StatusOut:
    platforms = [await _platform(state, one) for one in state.momentum.platforms.values()]
    async with state.momentum.database.reading() as connection:
        counts = await queries.counts(connection, caller.tenant)
        waiting = await inbox.count(connection, caller.tenant)
    return StatusOut(
        version=__version__,
        now=state.now(),
        demo=state.settings.demo,
        auth=state.settings.auth,
        operator=caller.is_operator,
        platforms=platforms,
        counts=CountsOut(
            drafts=counts.get(PostState.DRAFT, 0),
            scheduled=sum(counts.get(planned, 0) for planned in PLANNED),
            inbox=waiting,
            failed=counts.get(PostState.FAILED, 0),
        ),
    )


async def _platform(state: ServiceState, platform: Platform) -> PlatformOut:
    now = state.now()
    async with state.momentum.database.reading() as connection:
        hold = await usage.hold_on(connection, platform.name, usage.WHOLE, now)
        used = await usage.used(connection, platform.name, usage.WHOLE, now.strftime("%Y-%m-%d"))
    rules: dict[str, Any] = asdict(platform.rules)
    return PlatformOut(
        name=platform.name,
        title=platform.title,
        rules=rules,
        notices=list(platform.notices(now)),
        hold=HoldOut(until=hold.until, code=hold.code, reason=hold.reason) if hold else None,
        usage=UsageOut(today=used, limit=platform.rules.requests_per_app_per_day),
    )


@router.post("/platforms/{name}/resume", response_model=PlatformOut)
async def resume_platform(name: str, caller: KnownCaller, state: State) -> PlatformOut:
    """End the holds of the caller's accounts at a platform, and the hold of the whole platform: held posts go
    on. All tenants share a platform, so only an operator may resume the whole one."""
    platform = state.momentum.platforms.get(name)
    if platform is None:
        raise NotFound(f"platform: there is no platform {name!r}")
    accounts = tables.accounts
    own = select(accounts.c.id).where(accounts.c.tenant == caller.tenant, accounts.c.platform == name)
    async with state.momentum.database.transaction() as connection:
        held = await usage.hold_on(connection, name, usage.WHOLE, state.now())
        if held is not None and not caller.is_operator:
            raise OperatorOnly(
                f"platform: {platform.title} is on hold for all tenants, and only an operator may resume it: "
                f"use a key of the tenant {LOCAL_TENANT!r}"
            )
        shared = [usage.WHOLE] if caller.is_operator else []
        for account_id in [*shared, *(await connection.execute(own)).scalars()]:
            await state.momentum.publisher.resume(connection, name, account_id)
    return await _platform(state, platform)


@session_router.post("/session", response_model=SessionOut)
async def sign_in(body: SessionIn, request: Request, response: Response, state: State) -> SessionOut:
    """The page exchanges a key for a cookie that scripts cannot read."""
    key = await key_of(request, state, body.key)
    if key is None:
        raise AccessDenied("key: is not a valid API key: create one with `momentum key create NAME`")
    response.set_cookie(
        COOKIE,
        session_cookie(state, key),
        max_age=SESSION_SECONDS,
        path="/api/v1",
        httponly=True,
        samesite="strict",
        secure=(state.settings.public_url or "").startswith("https://"),
    )
    return SessionOut(tenant=key.tenant, name=key.name)


@session_router.delete("/session", status_code=204)
async def sign_out(response: Response) -> None:
    response.delete_cookie(COOKIE, path="/api/v1")
