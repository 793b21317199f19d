"""What needs a person: posts in doubt, failed posts, posts whose account cannot publish them, and platforms
that stand still."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import tables
from momentum.database.posts import to_post
from momentum.database.usage import Hold
from momentum.model import PLANNED, AccountState, Post, PostState

posts, accounts, holds = tables.posts, tables.accounts, tables.holds
MAX_POSTS = 200


@dataclass(frozen=True, slots=True)
class Waiting:
    """A post that needs a decision. `kind` is unknown, failed or account."""

    kind: str
    post: Post
    reason: str


def _needs_reconnection() -> ColumnElement[bool]:
    ends_before = and_(accounts.c.refresh_token.is_(None), accounts.c.expires_at < posts.c.scheduled_at)
    return and_(
        posts.c.state.in_([state.value for state in PLANNED]),
        or_(accounts.c.state != AccountState.ACTIVE.value, ends_before),
    )


def _in_inbox(tenant: str) -> ColumnElement[bool]:
    needs_decision = posts.c.state.in_([PostState.UNKNOWN.value, PostState.FAILED.value])
    return and_(posts.c.tenant == tenant, or_(needs_decision, _needs_reconnection()))


async def waiting_posts(connection: AsyncConnection, tenant: str) -> Sequence[Waiting]:
    """Doubt first, then failures, then accounts; the next due first."""
    query = select(posts).join(accounts, accounts.c.id == posts.c.account_id).where(_in_inbox(tenant))
    query = query.order_by(posts.c.scheduled_at).limit(MAX_POSTS)
    found = [_waiting(to_post(row)) for row in await connection.execute(query)]
    return sorted(found, key=lambda one: ("unknown", "failed", "account").index(one.kind))


async def count(connection: AsyncConnection, tenant: str) -> int:
    query = select(func.count()).select_from(posts.join(accounts, accounts.c.id == posts.c.account_id))
    return (await connection.execute(query.where(_in_inbox(tenant)))).scalar() or 0


async def after_expiry(connection: AsyncConnection, tenant: str) -> dict[str, int]:
    """By account: how many planned posts it cannot publish."""
    joined = posts.join(accounts, accounts.c.id == posts.c.account_id)
    query = select(posts.c.account_id, func.count()).select_from(joined)
    query = query.where(posts.c.tenant == tenant, _needs_reconnection()).group_by(posts.c.account_id)
    return {row[0]: row[1] for row in await connection.execute(query)}


async def open_holds(connection: AsyncConnection, tenant: str, now: datetime) -> Sequence[Hold]:
    """Of whole platforms, and of the tenant's accounts."""
    own = select(accounts.c.id).where(accounts.c.tenant == tenant)
    query = select(holds).where(
        or_(holds.c.until.is_(None), holds.c.until > now),
        or_(holds.c.account_id == "", holds.c.account_id.in_(own)),
    )
    return [Hold(*row) for row in await connection.execute(query)]


def _waiting(post: Post) -> Waiting:
    if post.state is PostState.UNKNOWN:
        reason = post.error or "it is not known whether the platform has accepted this post"
        return Waiting("unknown", post, reason)
    if post.state is PostState.FAILED:
        return Waiting("failed", post, post.error or "it was not published")
    return Waiting("account", post, "its account must be connected again before the post is due")
