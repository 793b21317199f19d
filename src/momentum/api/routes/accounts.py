"""Accounts: connect, list, refresh, disconnect. Tokens are never part of a response."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.api.auth import KnownCaller
from momentum.api.models.accounts import AccountList, AccountOut, AccountPatchIn, ConnectIn, ConnectOut
from momentum.api.state import CALLBACK_PATH, ServiceState, State
from momentum.api.views import show_account
from momentum.database import accounts, usage
from momentum.errors import MomentumError, PlatformFailed
from momentum.model import Account, AccountState
from momentum.platform import PlatformError, ReconnectNeeded, Rules
from momentum.posts.inbox import after_expiry

router = APIRouter(tags=["accounts"])
callback_router = APIRouter(tags=["accounts"])  # a browser returns from the platform: no key, but the state
BROWSER_COOKIE = "momentum_connect"
BROWSER_SECONDS = 1_800
ACCOUNTS_PAGE = "/accounts"


async def _shown(
    state: ServiceState, connection: AsyncConnection, tenant: str, *only: str
) -> list[AccountOut]:
    waiting = await after_expiry(connection, tenant)
    day = state.now().strftime("%Y-%m-%d")
    found = [one for one in await accounts.listing(connection, tenant) if not only or one.id in only]
    return [
        show_account(
            account,
            expires_soon=_expires_soon(account, state.now(), state),
            after_expiry=waiting.get(account.id, 0),
            used=await usage.used(connection, account.platform, account.id, day),
            rules=_rules(state, account),
        )
        for account in found
    ]


def _rules(state: ServiceState, account: Account) -> Rules | None:
    platform = state.momentum.platforms.get(account.platform)
    return platform.rules_at(account.server) if platform else None


def _expires_soon(account: Account, now: datetime, state: ServiceState) -> bool:
    if account.state is not AccountState.ACTIVE or account.expires_at is None or account.can_refresh:
        return False
    return account.expires_at - now < state.settings.publishing.warn_before_expiry


async def _one(state: ServiceState, tenant: str, account_id: str) -> AccountOut:
    async with state.momentum.database.reading() as connection:
        return (await _shown(state, connection, tenant, account_id))[0]


@router.get("/accounts", response_model=AccountList)
async def list_accounts(caller: KnownCaller, state: State) -> AccountList:
    await state.posts.learn_rules(caller.tenant)
    async with state.momentum.database.reading() as connection:
        return AccountList(items=await _shown(state, connection, caller.tenant))


@router.post("/accounts/connect", response_model=ConnectOut)
async def connect_account(
    body: ConnectIn, request: Request, response: Response, caller: KnownCaller, state: State
) -> ConnectOut:
    """Begin: open the returned address in this browser. The cookie binds the connection to it."""
    redirect_uri = state.redirect_uri(request)
    started = await state.momentum.accounts.begin(
        caller.tenant, body.platform, body.server or "", redirect_uri
    )
    response.set_cookie(
        BROWSER_COOKIE,
        started.browser,
        max_age=BROWSER_SECONDS,
        path=CALLBACK_PATH,
        httponly=True,
        samesite="lax",  # the platform's page leads back here
        secure=redirect_uri.startswith("https://"),
    )
    return ConnectOut(url=started.url)


@callback_router.get("/oauth/callback", response_class=RedirectResponse, status_code=303)
async def finish_connection(
    request: Request,
    state: State,
    state_parameter: Annotated[str, Query(alias="state", max_length=200)] = "",
    code: Annotated[str, Query(max_length=4_000)] = "",
    error: Annotated[str, Query(max_length=200)] = "",
) -> RedirectResponse:
    """The platform sends the browser here. It goes on to the page of accounts, with the outcome."""
    browser = request.cookies.get(BROWSER_COOKIE, "")
    outcome: dict[str, str]
    if error:
        outcome = {"problem": "not_granted"}
    else:
        try:
            connected = await state.momentum.accounts.finish(
                state_parameter, browser, code, state.redirect_uri(request)
            )
            outcome = {"connected": ",".join(account.id for account in connected)}
        except MomentumError as problem:
            outcome = {"problem": problem.code, "detail": problem.message}
    answer = RedirectResponse(f"{ACCOUNTS_PAGE}?{urlencode(outcome)}", 303)
    answer.delete_cookie(BROWSER_COOKIE, path=CALLBACK_PATH)
    return answer


@router.patch("/accounts/{account_id}", response_model=AccountOut)
async def edit_account(
    account_id: str, body: AccountPatchIn, caller: KnownCaller, state: State
) -> AccountOut:
    async with state.momentum.database.transaction() as connection:
        account = await accounts.get(connection, caller.tenant, account_id)
        await accounts.change(connection, account.id, probe=body.probe)
    return await _one(state, caller.tenant, account_id)


@router.post("/accounts/{account_id}/refresh", response_model=AccountOut)
async def refresh_account(account_id: str, caller: KnownCaller, state: State) -> AccountOut:
    """Renew the token now, where the platform allows it."""
    async with state.momentum.database.reading() as connection:
        account = await accounts.get(connection, caller.tenant, account_id)
    try:
        await state.momentum.accounts.refresh(account.id)
    except ReconnectNeeded as problem:
        if account.can_refresh:  # the platform refuses for good
            await state.momentum.accounts.expire(account.id, problem.message)
        raise NeedsReconnection(problem.message) from None
    except PlatformError as problem:
        raise PlatformFailed(problem.message) from None
    return await _one(state, caller.tenant, account_id)


@router.delete("/accounts/{account_id}", response_model=AccountOut)
async def disconnect_account(account_id: str, caller: KnownCaller, state: State) -> AccountOut:
    """Forget and revoke the tokens. Planned posts stay, and need the account to be connected again."""
    await state.momentum.accounts.disconnect(caller.tenant, account_id)
    return await _one(state, caller.tenant, account_id)


class NeedsReconnection(MomentumError, code="needs_reconnection", status=409):
    """A person must connect the account again."""
