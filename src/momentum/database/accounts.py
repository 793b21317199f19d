"""Accounts in the database. Tokens are read and written encrypted; only `momentum.accounts` opens them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import tables
from momentum.errors import NotFound
from momentum.model import Account, AccountState, Author, AuthorKind

accounts = tables.accounts


@dataclass(frozen=True, slots=True)
class SealedTokens:
    """The encrypted tokens of an account."""

    token: bytes | None
    refresh_token: bytes | None
    refresh_expires_at: datetime | None


def to_account(row: Row[Any]) -> Account:
    return Account(
        id=row.id,
        tenant=row.tenant,
        platform=row.platform,
        author=Author(row.urn, row.name, AuthorKind(row.kind), row.picture, row.handle),
        server=row.server,
        scopes=tuple(row.scopes),
        state=AccountState(row.state),
        expires_at=row.expires_at,
        can_refresh=row.refresh_token is not None,
        probe=bool(row.probe),
        created_at=row.created_at,
    )


async def get(connection: AsyncConnection, tenant: str | None, account_id: str) -> Account:
    """Raises NotFound, also for an account of another tenant. `tenant` None: of any tenant."""
    return to_account(await _row(connection, tenant, account_id))


async def sealed_tokens(connection: AsyncConnection, account_id: str) -> SealedTokens:
    row = await _row(connection, None, account_id)
    return SealedTokens(row.token, row.refresh_token, row.refresh_expires_at)


async def listing(connection: AsyncConnection, tenant: str) -> Sequence[Account]:
    """All accounts of a tenant, in the order in which they were connected."""
    query = select(accounts).where(accounts.c.tenant == tenant).order_by(accounts.c.created_at, accounts.c.id)
    return [to_account(row) for row in await connection.execute(query)]


async def insert(connection: AsyncConnection, account: Account, tokens: SealedTokens) -> None:
    row = {
        "id": account.id,
        "tenant": account.tenant,
        "platform": account.platform,
        "urn": account.author.urn,
        "name": account.author.name,
        "kind": account.author.kind.value,
        "picture": account.author.picture,
        "handle": account.author.handle,
        "server": account.server,
        "scopes": list(account.scopes),
        "state": account.state.value,
        "token": tokens.token,
        "refresh_token": tokens.refresh_token,
        "expires_at": account.expires_at,
        "refresh_expires_at": tokens.refresh_expires_at,
        "probe": account.probe,
        "created_at": account.created_at,
    }
    await connection.execute(accounts.insert().values(row))


async def change(connection: AsyncConnection, account_id: str, **changes: Any) -> None:
    """Set columns of an account."""
    await connection.execute(update(accounts).where(accounts.c.id == account_id).values(changes))


async def set_state(connection: AsyncConnection, account_id: str, state: AccountState) -> bool:
    """False if it was in this state already."""
    rule = update(accounts).where(accounts.c.id == account_id, accounts.c.state != state.value)
    return (await connection.execute(rule.values(state=state.value))).rowcount == 1


async def expiring(connection: AsyncConnection, before: datetime) -> Sequence[Account]:
    """Active accounts whose token ends before this time."""
    query = select(accounts).where(
        accounts.c.state == AccountState.ACTIVE.value, accounts.c.expires_at <= before
    )
    return [to_account(row) for row in await connection.execute(query)]


async def take_warning(connection: AsyncConnection, account_id: str, now: datetime, since: datetime) -> bool:
    """Whether the owner has not been warned since then. The answer is true once."""
    rule = update(accounts).where(
        accounts.c.id == account_id,
        accounts.c.warned_at.is_(None) | (accounts.c.warned_at < since),
    )
    return (await connection.execute(rule.values(warned_at=now))).rowcount == 1


async def take_renewal(
    connection: AsyncConnection, grant: str, holder: str, now: datetime, until: datetime
) -> bool:
    """Whether the holder may renew the tokens of this grant now. False: another process does it."""
    table = tables.renewals
    add = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    rule = add(table).values(grant_digest=grant, holder=holder, until=until)
    rule = rule.on_conflict_do_update(
        index_elements=["grant_digest"], set_={"holder": holder, "until": until}, where=table.c.until <= now
    )
    return (await connection.execute(rule.returning(table.c.holder))).first() is not None


async def end_renewal(connection: AsyncConnection, grant: str, holder: str) -> None:
    table = tables.renewals
    await connection.execute(delete(table).where(table.c.grant_digest == grant, table.c.holder == holder))


async def prune_authorizations(connection: AsyncConnection, before: datetime) -> int:
    """Forget authorizations that were begun and never finished."""
    table = tables.authorizations
    return (await connection.execute(delete(table).where(table.c.expires_at < before))).rowcount


async def _row(connection: AsyncConnection, tenant: str | None, account_id: str) -> Row[Any]:
    query = select(accounts).where(accounts.c.id == account_id)
    if tenant is not None:
        query = query.where(accounts.c.tenant == tenant)
    row = (await connection.execute(query)).first()
    if row is None:
        raise NotFound(f"account: there is no account {account_id!r}")
    return row
