"""What is watched all the time: tokens that end, posts that no job takes care of, and old rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

import duetime as dt
from momentum.database import accounts, events, posts, tables, usage
from momentum.errors import NotFound
from momentum.model import PLANNED, Account, Post, PostState
from momentum.platform import PlatformError, ReconnectNeeded
from momentum.publishing.budget import day_of
from momentum.publishing.parts import Parts, Skip, Work, load, log
from momentum.publishing.publish import doubt

PAGE = 200
KEPT_USAGE = timedelta(days=90)
KEPT_AUTHORIZATIONS = timedelta(days=1)


async def watch_tokens(parts: Parts) -> str:
    """Refresh tokens ahead of their end where that was granted, and warn of the others."""
    now = parts.now()
    async with parts.database.reading() as connection:
        ending = await accounts.expiring(connection, now + parts.options.warn_before_expiry)
    for account in ending:
        assert account.expires_at is not None
        if account.can_refresh and account.expires_at <= now + parts.options.refresh_before_expiry:
            await _refresh(parts, account)
        elif account.expires_at <= now:
            await parts.accounts.expire(account.id, "its access has expired")
        elif not account.can_refresh:
            await _warn(parts, account, account.expires_at, now)
    return f"{len(ending)} tokens end soon"


async def watch_posts(parts: Parts) -> str:
    """Posts that are late and whose job is gone get a new one. Normally there are none."""
    found, after = 0, ""
    while page := await _late(parts, after):
        for post in page:
            if why := await _why_no_job(parts, post):
                log.warning("post %s is %s, and no job publishes it: %s", post.id, post.state.value, why)
                found += await _take_care(parts, post)
        after = page[-1].id
    return f"{found} posts had no job"


async def prune(parts: Parts) -> str:
    now = parts.now()
    async with parts.database.transaction() as connection:
        begun = await accounts.prune_authorizations(connection, now - KEPT_AUTHORIZATIONS)
        days = await usage.prune(connection, day_of(now - KEPT_USAGE))
    return f"removed {begun} unfinished authorizations and {days} days of usage"


async def _refresh(parts: Parts, account: Account) -> None:
    try:
        await parts.accounts.refresh(account.id)
    except ReconnectNeeded as refused:
        await parts.accounts.expire(account.id, refused.message)
    except PlatformError as problem:
        log.warning("account %s: its token could not be refreshed: %s", account.id, problem)


async def _warn(parts: Parts, account: Account, expires_at: datetime, now: datetime) -> None:
    """Once for each token: warn, and mark the posts that are due after its end."""
    since = expires_at - parts.options.warn_before_expiry
    async with parts.database.transaction() as connection:
        if not await accounts.take_warning(connection, account.id, now, since):
            return
        due = await _due_after(connection, account, expires_at)
        detail = f"the access of {account.author.name} ends before this post is due: connect it again"
        for post in due:
            await events.add(connection, post, "needs_reconnection", detail, now=now)
    log.warning(
        "account %s (%s): its access ends at %s, before %d scheduled posts: connect it again",
        account.id,
        account.author.name,
        expires_at,
        len(due),
    )


async def _due_after(connection: AsyncConnection, account: Account, end: datetime) -> Sequence[Post]:
    table = tables.posts
    query = select(table).where(
        table.c.account_id == account.id,
        table.c.state.in_([state.value for state in PLANNED]),
        table.c.scheduled_at >= end,
    )
    return [posts.to_post(row) for row in await connection.execute(query)]


async def _late(parts: Parts, after: str) -> Sequence[Post]:
    table = tables.posts
    states = [state.value for state in (*PLANNED, PostState.PUBLISHING)]
    query = select(table).where(
        table.c.state.in_(states),
        table.c.scheduled_at < parts.now() - parts.options.stranded_after,
        table.c.id > after,
    )
    async with parts.database.reading() as connection:
        rows = await connection.execute(query.order_by(table.c.id).limit(PAGE))
        return [posts.to_post(row) for row in rows]


async def _why_no_job(parts: Parts, post: Post) -> str | None:
    """None: it has a job that has not ended."""
    if post.job_id is None:
        return "it never had one"
    try:
        job = await parts.publisher.app.get_job(post.job_id)
    except dt.JobNotFound:
        return f"job {post.job_id} is gone"
    return f"job {job.id} is {job.state.value}: {job.error or job.result}" if job.state.final else None


async def _take_care(parts: Parts, post: Post) -> bool:
    if post.state is PostState.PUBLISHING:
        try:
            work: Work = await load(parts, post.id, post.version)
            await doubt(parts, work)
        except (Skip, dt.Snooze):  # its worker goes on
            return False
        return True
    async with parts.database.transaction() as connection:
        try:
            now_stored = await posts.get(connection, None, post.id)
        except NotFound:
            return False
        if (now_stored.version, now_stored.state) != (post.version, post.state):
            return False
        await parts.publisher.plan(connection, now_stored)
        return True
