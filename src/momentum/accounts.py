"""Accounts: a person grants access at the platform (OAuth 2 with code, state and PKCE), and Momentum keeps
the tokens, encrypted. One grant can have several authors, the member and organizations: they
share its tokens.

Tokens leave this module only as `Access`, for the platform. They are never shown, logged or returned."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from logging import getLogger
from typing import Any

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import Database, events, tables
from momentum.database import accounts as rows
from momentum.errors import InvalidPost, MomentumError, PlatformFailed, Problem
from momentum.ids import new_id
from momentum.model import PLANNED, Account, AccountState, Author
from momentum.platform import Access, Grant, Platform, PlatformError, ReconnectNeeded, TryLater
from momentum.secret_box import SecretBox, SecretUnreadable

AUTHORIZATION_LIFETIME = timedelta(minutes=30)
REFRESH_AHEAD = timedelta(minutes=10)
RENEWAL_TIMEOUT = 40.0  # seconds that the platform has to renew a token
STORE_DELAYS = (0.2, 1.0, 5.0)  # seconds; a new token is worth waiting for the database
RENEWAL_LEASE = timedelta(seconds=60)  # of a process: longer than both. Then another process tries.
RENEWAL_CHECK_INTERVAL = 0.2  # seconds between two looks at the renewal of another process
RENEWAL_CHECKS = 400  # over the whole lease
log = getLogger("momentum.accounts")


def utc_now() -> datetime:
    return datetime.now(UTC)


class StateInvalid(MomentumError, code="state_invalid", status=400):
    """The answer of the platform belongs to no authorization that this browser has begun."""


@dataclass(frozen=True, slots=True)
class Started:
    """`browser` must come back with the answer, so that no other person can be made to finish it."""

    url: str
    browser: str


@dataclass(frozen=True, slots=True)
class _Tokens:
    access: str
    refresh: str | None
    stored: bytes = field(compare=False)  # the access token as the row has it: every renewal changes it


class Accounts:
    def __init__(
        self,
        database: Database,
        secret_box: SecretBox,
        platforms: Mapping[str, Platform],
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._database, self._box, self._platforms, self._now = database, secret_box, platforms, now
        self._renewing: set[asyncio.Task[Access]] = set()

    async def begin(self, tenant: str, platform: str, server: str, redirect_uri: str) -> Started:
        """Where the person grants access. The state works once, for this tenant and browser."""
        found = self._platform(platform)
        state, browser, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        try:
            url = await found.authorize_url(state, verifier, redirect_uri, server)
        except PlatformError as problem:
            raise PlatformFailed(f"server: {found.title} cannot be asked: {problem.message}") from None
        row = {
            "state": _digest(state, browser),
            "tenant": tenant,
            "platform": platform,
            "server": server,
            "verifier": self._box.seal(verifier),
            "expires_at": self._now() + AUTHORIZATION_LIFETIME,
        }
        async with self._database.transaction() as connection:
            await rows.prune_authorizations(connection, self._now())
            await connection.execute(insert(tables.authorizations).values(row))
        return Started(url, browser)

    async def finish(self, state: str, browser: str, code: str, redirect_uri: str) -> Sequence[Account]:
        """Turn the code into accounts: one for each author, new ones and those connected before."""
        begun = await self._take(state, browser)
        platform = self._platform(begun.platform)
        try:
            grant = await platform.exchange(code, self._box.open(begun.verifier), redirect_uri, begun.server)
            authors = await platform.authors(grant, begun.server)
        except PlatformError as problem:
            raise PlatformFailed(problem.message) from None
        async with self._database.transaction() as connection:
            return [
                await self._store(connection, begun.tenant, platform.name, begun.server, author, grant)
                for author in authors
            ]

    async def access(self, account_id: str) -> Access:
        """The account as its platform needs it. A token that ends soon is renewed first."""
        async with self._database.reading() as connection:
            account = await rows.get(connection, None, account_id)
            tokens = await self._tokens(connection, account)
        remaining = None if account.expires_at is None else account.expires_at - self._now()
        if remaining is None or remaining > REFRESH_AHEAD:
            return _access(account, tokens.access)
        if tokens.refresh is None:
            if remaining > timedelta(0):
                return _access(account, tokens.access)
            raise ReconnectNeeded(
                f"the access of {account.author.name} has expired: connect the account again",
                code="token_expired",
            )
        try:
            return await self._renewed(account_id, tokens.stored)
        except TryLater:
            if remaining > timedelta(0):
                return _access(account, tokens.access)
            raise

    async def refresh(self, account_id: str, rejected: Access | None = None) -> Access:
        """A new token, now: for this account and all others of the same grant. With one that the platform has
        `rejected`: any other, which may be there already."""
        async with self._database.reading() as connection:
            account = await rows.get(connection, None, account_id)
            tokens = await self._tokens(connection, account)
        if rejected is not None and tokens.access != rejected.token:
            return _access(account, tokens.access)
        return await self._renewed(account_id, tokens.stored)

    async def _renewed(self, account_id: str, seen: bytes | None) -> Access:
        """With another token than the one seen. Of several processes one renews, and the others wait for its
        token: a second renewal would end the first token, or use a refresh token that works once."""
        for _ in range(RENEWAL_CHECKS):
            found = await self._begin_renewal(account_id, seen)
            if isinstance(found, Access):
                return found
            if found is not None:
                # A task of its own: a job that is cancelled meanwhile must not lose the new token.
                renewal = asyncio.create_task(self._renew(found))
                self._renewing.add(renewal)
                renewal.add_done_callback(self._renewing.discard)
                return await asyncio.shield(renewal)
            await asyncio.sleep(RENEWAL_CHECK_INTERVAL)
        raise TryLater("another process renews the token of this account", code="renewal_busy")

    async def _begin_renewal(self, account_id: str, seen: bytes | None) -> Access | _Renewal | None:
        """What this process may renew; the account itself if it has a new token; None if another process
        renews it."""
        async with self._database.transaction() as connection:
            account = await rows.get(connection, None, account_id)
            tokens = await self._tokens(connection, account)
            if tokens.stored != seen:
                return _access(account, tokens.access)
            if tokens.refresh is None:
                raise ReconnectNeeded(
                    f"{account.author.name} cannot be renewed without a person: connect the account again",
                    code="no_refresh_token",
                )
            renewal = _Renewal(account, tokens, _digest(tokens.refresh, ""), new_id("ren"))
            now = self._now()
            if not await rows.take_renewal(
                connection, renewal.grant, renewal.holder, now, now + RENEWAL_LEASE
            ):
                return None
            # Another process may have stored its token after the first look.
            if (await rows.sealed_tokens(connection, account_id)).token == seen:
                return renewal
            await rows.end_renewal(connection, renewal.grant, renewal.holder)
        return None

    async def expire(self, account_id: str, reason: str, rejected: Access | None = None) -> bool:
        """The platform no longer accepts the token. False: there is another than the `rejected` one."""
        async with self._database.transaction() as connection:
            if rejected is not None and await self._has_another(connection, account_id, rejected):
                return False
            if await rows.set_state(connection, account_id, AccountState.EXPIRED):
                await self._mark_posts(connection, account_id, "account_expired", reason)
        return True

    async def _has_another(self, connection: AsyncConnection, account_id: str, rejected: Access) -> bool:
        try:
            tokens = await self._tokens(connection, await rows.get(connection, None, account_id))
        except (ReconnectNeeded, SecretUnreadable):
            return False
        return tokens.access != rejected.token

    async def disconnect(self, tenant: str, account_id: str) -> Account:
        """Forget the tokens, and revoke them at the platform unless another author still needs them. Planned
        posts stay, marked: they are published if the account is connected again in time."""
        async with self._database.reading() as connection:
            account = await rows.get(connection, tenant, account_id)
            try:
                tokens = await self._tokens(connection, account)
                shared = len(await self._of_grant(connection, account, tokens)) > 1
            except (ReconnectNeeded, SecretUnreadable):
                tokens, shared = None, False
        changes = {
            "state": AccountState.DISCONNECTED.value,
            "token": None,
            "refresh_token": None,
            "refresh_expires_at": None,
        }
        async with self._database.transaction() as connection:
            await rows.change(connection, account_id, **changes)
            await self._mark_posts(
                connection, account_id, "account_disconnected", "connect the account again to publish it"
            )
            gone = await rows.get(connection, tenant, account_id)
        if tokens is not None and not shared:
            await self._revoke(account, tokens)
        return gone

    # The inside.

    def _platform(self, name: str) -> Platform:
        found = self._platforms.get(name)
        if found is None:
            known = ", ".join(sorted(self._platforms)) or "none"
            raise InvalidPost(
                [Problem("platform", f"{name!r} is unknown: use one of {known}", "platform_unknown")]
            )
        return found

    async def _take(self, state: str, browser: str) -> _Begun:
        table = tables.authorizations
        rule = delete(table).where(table.c.state == _digest(state, browser)).returning(*table.c)
        async with self._database.transaction() as connection:
            row = (await connection.execute(rule)).first()
        if row is None or row.expires_at <= self._now():
            raise StateInvalid(
                "state: this connection was not begun here, was finished before, or took over 30 minutes: "
                "begin again, in the same browser"
            )
        return _Begun(row.tenant, row.platform, row.server, row.verifier)

    async def _store(
        self,
        connection: AsyncConnection,
        tenant: str,
        platform: str,
        server: str,
        author: Author,
        grant: Grant,
    ) -> Account:
        table = tables.accounts
        query = select(table.c.id).where(
            table.c.tenant == tenant,
            table.c.platform == platform,
            table.c.server == server,
            table.c.urn == author.urn,
        )
        known = (await connection.execute(query)).scalar()
        sealed = self._sealed(grant)
        if known is not None:
            await rows.change(
                connection,
                known,
                name=author.name,
                picture=author.picture,
                handle=author.handle,
                scopes=list(grant.scopes),
                state=AccountState.ACTIVE.value,
                warned_at=None,
                **sealed,
            )
            await self._mark_posts(connection, known, "account_connected", "")
            return await rows.get(connection, tenant, known)
        account = Account(
            id=new_id("acc"),
            tenant=tenant,
            platform=platform,
            author=author,
            server=server,
            scopes=grant.scopes,
            state=AccountState.ACTIVE,
            expires_at=grant.expires_at,
            can_refresh=grant.refresh_token is not None,
            probe=False,
            created_at=self._now(),
        )
        tokens = rows.SealedTokens(sealed["token"], sealed["refresh_token"], grant.refresh_expires_at)
        await rows.insert(connection, account, tokens)
        return account

    def _sealed(self, grant: Grant) -> dict[str, Any]:
        refresh = grant.refresh_token
        return {
            "token": self._box.seal(grant.access_token),
            "refresh_token": None if refresh is None else self._box.seal(refresh),
            "expires_at": grant.expires_at,
            "refresh_expires_at": grant.refresh_expires_at,
        }

    async def _tokens(self, connection: AsyncConnection, account: Account) -> _Tokens:
        sealed = await rows.sealed_tokens(connection, account.id)
        if sealed.token is None or account.state is not AccountState.ACTIVE:
            raise ReconnectNeeded(
                f"{account.author.name} is {account.state.value}: connect the account again",
                code=f"account_{account.state.value}",
            )
        refresh = sealed.refresh_token
        opened = None if refresh is None else self._box.open(refresh)
        return _Tokens(self._box.open(sealed.token), opened, sealed.token)

    async def _of_grant(
        self, connection: AsyncConnection, account: Account, tokens: _Tokens
    ) -> Sequence[str]:
        """The active accounts with these tokens: all authors of one grant."""
        found = []
        for other in await rows.listing(connection, account.tenant):
            if (other.platform, other.server) == (account.platform, account.server):
                try:
                    theirs = await self._tokens(connection, other)
                except (ReconnectNeeded, SecretUnreadable):
                    continue
                if theirs == tokens:
                    found.append(other.id)
        return found

    async def _renew(self, renewal: _Renewal) -> Access:
        account, tokens = renewal.account, renewal.tokens
        assert tokens.refresh is not None
        try:
            async with asyncio.timeout(RENEWAL_TIMEOUT):
                grant = await self._platforms[account.platform].refresh(tokens.refresh, account.server)
        except (PlatformError, TimeoutError) as problem:
            async with self._database.transaction() as connection:
                await rows.end_renewal(connection, renewal.grant, renewal.holder)
            async with self._database.reading() as connection:
                now_stored = await self._tokens(connection, await rows.get(connection, None, account.id))
            if now_stored != tokens:  # a person has connected the account again in the meantime
                return _access(account, now_stored.access)
            if isinstance(problem, TimeoutError):
                raise TryLater("the platform did not renew the token in time", code="timeout") from None
            raise
        kept = Grant(
            grant.access_token,
            grant.expires_at,
            grant.scopes,
            grant.refresh_token or tokens.refresh,
            grant.refresh_expires_at,
        )
        for delay in (*STORE_DELAYS, None):
            try:
                return await self._store_renewal(renewal, kept)
            except (SQLAlchemyError, OSError) as problem:
                if delay is None:
                    raise
                log.warning("the new token of %s is stored again: %s", account.id, type(problem).__name__)
                await asyncio.sleep(delay)
        raise AssertionError("unreachable")

    async def _store_renewal(self, renewal: _Renewal, grant: Grant) -> Access:
        """For all accounts that still have the old tokens: a person may have changed one meanwhile."""
        account = renewal.account
        async with self._database.transaction() as connection:
            for account_id in await self._of_grant(connection, account, renewal.tokens):
                await rows.change(connection, account_id, warned_at=None, **self._sealed(grant))
            await rows.end_renewal(connection, renewal.grant, renewal.holder)
        async with self._database.reading() as connection:
            account = await rows.get(connection, None, account.id)
            return _access(account, (await self._tokens(connection, account)).access)

    async def _revoke(self, account: Account, tokens: _Tokens) -> None:
        """A platform that does not answer must not keep the account: its token ends by itself."""
        try:
            await self._platforms[account.platform].revoke(_access(account, tokens.access))
        except (PlatformError, KeyError) as problem:
            log.warning("the token of %s could not be revoked: %s", account.id, type(problem).__name__)

    async def _mark_posts(self, connection: AsyncConnection, account_id: str, kind: str, detail: str) -> None:
        """A line in the timeline of each planned post."""
        posts = tables.posts
        query = select(posts.c.id, posts.c.tenant).where(
            posts.c.account_id == account_id, posts.c.state.in_([state.value for state in PLANNED])
        )
        common = {"at": self._now(), "kind": kind, "detail": detail, "actor": events.PUBLISHER}
        lines = [
            {"id": new_id("evt"), "post_id": post_id, "tenant": tenant, **common}
            for post_id, tenant in await connection.execute(query)
        ]
        if lines:
            await connection.execute(insert(tables.events), lines)


@dataclass(frozen=True, slots=True)
class _Renewal:
    account: Account
    tokens: _Tokens
    grant: str  # digest of the refresh token
    holder: str


@dataclass(frozen=True, slots=True)
class _Begun:
    tenant: str
    platform: str
    server: str
    verifier: bytes


def _access(account: Account, token: str) -> Access:
    return Access(account.author, token, account.scopes, account.server)


def _digest(state: str, browser: str) -> str:
    return sha256(f"{state}.{browser}".encode()).hexdigest()
