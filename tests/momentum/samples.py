"""Sample accounts, posts and media for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import accounts, posts
from momentum.database.accounts import SealedTokens
from momentum.ids import new_id
from momentum.model import Account, AccountState, Author, AuthorKind, Content, Post, PostState

NO_TOKENS = SealedTokens(None, None, None)


def utc_now() -> datetime:
    return datetime.now(UTC)


def sample_account(**changes: Any) -> Account:
    account_id = new_id("acc")
    values: dict[str, Any] = {
        "id": account_id,
        "tenant": "default",
        "platform": "linkedin",
        "author": Author(f"urn:li:person:{account_id}", "Ann", AuthorKind.MEMBER),
        "server": "",
        "scopes": ("openid", "profile", "w_member_social"),
        "state": AccountState.ACTIVE,
        "expires_at": utc_now() + timedelta(days=60),
        "can_refresh": False,
        "probe": False,
        "created_at": utc_now(),
    }
    return Account(**{**values, **changes})


def sample_post(account: Account, **changes: Any) -> Post:
    values: dict[str, Any] = {
        "id": new_id("post"),
        "tenant": account.tenant,
        "account_id": account.id,
        "state": PostState.SCHEDULED,
        "version": 1,
        "content": Content(text=new_id("text")),
        "scheduled_at": utc_now(),
        "zone": "UTC",
        "created_at": utc_now(),
        "updated_at": utc_now(),
    }
    return Post(**{**values, **changes})


async def stored_account(
    connection: AsyncConnection, tokens: SealedTokens = NO_TOKENS, **changes: Any
) -> Account:
    account = sample_account(**changes)
    await accounts.insert(connection, account, tokens)
    return account


async def stored_post(connection: AsyncConnection, account: Account, **changes: Any) -> Post:
    post = sample_post(account, **changes)
    await posts.insert(connection, post)
    return post
