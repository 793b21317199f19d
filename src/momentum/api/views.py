"""From the values of the model to what the API shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.api.models.accounts import AccountOut, AuthorOut, MediaOut, UsageOut
from momentum.api.models.posts import (
    ArticleIn,
    LogItem,
    MediaUseIn,
    PostOut,
    SlimPost,
    TimelineItem,
)
from momentum.database import accounts
from momentum.model import PLANNED, Account, AccountState, Attempt, Media, Post, PostEvent
from momentum.platform import Rules
from momentum.posts.local_time import local_of
from momentum.posts.log import LogLine
from momentum.posts.queries import CalendarPost, attempt_counts


async def show_posts(
    connection: AsyncConnection, tenant: str, posts: Sequence[Post], notes: Mapping[str, str] | None = None
) -> list[PostOut]:
    """Posts with what belongs to them in other tables: two queries for all."""
    if not posts:
        return []
    owners = {account.id: account for account in await accounts.listing(connection, tenant)}
    attempts = await attempt_counts(connection, [post.id for post in posts])
    return [
        show_post(post, owners.get(post.account_id), attempts.get(post.id, 0), (notes or {}).get(post.id))
        for post in posts
    ]


def show_post(post: Post, account: Account | None, attempts: int, note: str | None = None) -> PostOut:
    content = post.content
    return PostOut(
        id=post.id,
        account_id=post.account_id,
        platform=account.platform if account else "",
        state=post.state,
        version=post.version,
        text=content.text,
        media=[MediaUseIn.model_construct(**asdict(use)) for use in content.media],
        article=ArticleIn.model_construct(**asdict(content.article)) if content.article else None,
        visibility=content.visibility,
        scheduled_at=post.scheduled_at,
        local_time=None if post.scheduled_at is None else local_of(post.scheduled_at, post.zone),
        zone=post.zone,
        labels=list(post.labels),
        created_at=post.created_at,
        updated_at=post.updated_at,
        published_at=post.published_at,
        platform_id=post.platform_id,
        url=post.url,
        error_code=post.error_code,
        error=post.error,
        job_id=post.job_id,
        needs_reconnection=needs_reconnection(post, account),
        attempts=attempts,
        lateness_ms=_lateness(post),
        note=note,
    )


def needs_reconnection(post: Post, account: Account | None) -> bool:
    """Whether its account cannot publish this planned post at its time."""
    if post.state not in PLANNED or account is None:
        return False
    if account.state is not AccountState.ACTIVE:
        return True
    if account.can_refresh or account.expires_at is None or post.scheduled_at is None:
        return False
    return account.expires_at < post.scheduled_at


def _lateness(post: Post) -> int | None:
    if post.published_at is None or post.scheduled_at is None:
        return None
    return max(0, round((post.published_at - post.scheduled_at).total_seconds() * 1_000))


def show_account(
    account: Account, *, expires_soon: bool, after_expiry: int, used: int, rules: Rules | None
) -> AccountOut:
    return AccountOut(
        id=account.id,
        platform=account.platform,
        author=AuthorOut(**asdict(account.author)),
        server=account.server,
        state=account.state,
        scopes=list(account.scopes),
        expires_at=account.expires_at,
        expires_soon=expires_soon,
        can_refresh=account.can_refresh,
        probe=account.probe,
        scheduled_after_expiry=after_expiry,
        usage=UsageOut(today=used, limit=rules.requests_per_account_per_day if rules else None),
        max_text=rules.max_text if rules else None,
    )


def show_media(media: Media) -> MediaOut:
    return MediaOut(**{name: getattr(media, name) for name in MediaOut.model_fields})


def show_calendar_post(post: CalendarPost) -> SlimPost:
    return SlimPost.model_construct(**asdict(post))


def show_event(event: PostEvent) -> TimelineItem:
    return TimelineItem(type="event", at=event.at, kind=event.kind, detail=event.detail, actor=event.actor)


def show_attempt(attempt: Attempt) -> TimelineItem:
    return TimelineItem(
        type="attempt",
        at=attempt.started_at,
        kind="attempt",
        detail=attempt.error or "",
        actor=attempt.worker,
        number=attempt.number,
        outcome=attempt.outcome,
        ended_at=attempt.ended_at,
        error_code=attempt.error_code,
        status=attempt.status,
        request_id=attempt.request_id,
    )


def show_log_line(line: LogLine) -> LogItem:
    fields = {name: getattr(line.attempt, name, None) for name in LogItem.model_fields}
    own = {"account_id": line.account_id, "lateness_ms": line.lateness_ms}
    return LogItem.model_validate(fields | own)
