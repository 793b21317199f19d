"""Hints for good times, from the tenant's own published posts and nothing else. Momentum knows no likes or
views, so it says only when this person has published, and says nothing when there is too little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import tables
from momentum.model import PostState

MIN_POSTS = 10
MAX_POSTS = 1_000  # the newest ones
MAX_HINTS = 5
MIN_REPEATS = 2  # one post at a time of the week is chance


@dataclass(frozen=True, slots=True)
class Hint:
    weekday: int  # 0 is Monday
    hour: int
    posts: int


@dataclass(frozen=True, slots=True)
class Hints:
    hints: Sequence[Hint]
    posts: int
    reason: str | None = None


async def read_hints(connection: AsyncConnection, tenant: str, account: str | None, zone: ZoneInfo) -> Hints:
    posts = tables.posts
    query = select(posts.c.published_at).where(
        posts.c.tenant == tenant,
        posts.c.state == PostState.PUBLISHED.value,
        posts.c.published_at.is_not(None),
    )
    if account is not None:
        query = query.where(posts.c.account_id == account)
    found = (await connection.execute(query.order_by(posts.c.published_at.desc()).limit(MAX_POSTS))).scalars()
    local = [instant.astimezone(zone) for instant in found if instant is not None]
    if len(local) < MIN_POSTS:
        return Hints([], len(local), f"there are {len(local)} published posts; hints need {MIN_POSTS}")
    slots = Counter((moment.weekday(), moment.hour) for moment in local)
    ranked = sorted(slots.items(), key=lambda slot: (-slot[1], slot[0]))
    hints = [Hint(weekday, hour, count) for (weekday, hour), count in ranked if count >= MIN_REPEATS]
    reason = None if hints else "the published posts share no time of the week"
    return Hints(hints[:MAX_HINTS], len(local), reason)
