"""The Duetime tasks of Momentum, and their schedules. Each task is one pipeline of another module."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from datetime import datetime

import duetime as dt
from momentum.publishing import watch
from momentum.publishing.parts import Parts, PostFailed, Skip, TryAgain, load, log
from momentum.publishing.prepare import prepare_post
from momentum.publishing.publish import publish_post
from momentum.publishing.publisher import PREPARE, PUBLISH, RESOLVE
from momentum.publishing.record import fail
from momentum.publishing.resolve import resolve_post

QUEUE = "momentum"  # of the tasks that belong to no platform
WATCH_TOKENS, WATCH_POSTS, PRUNE = "momentum.watch_tokens", "momentum.watch_posts", "momentum.prune"
# LinkedIn answers 409 to concurrent writes of one member, and two jobs must not upload the same file.
ONE_PER_ACCOUNT = dt.Limit(1, per="account_id")


def make_tasks(parts: Parts) -> dt.Tasks:
    tasks = dt.Tasks()
    options = parts.options
    retry = dt.Retry(
        max_attempts=options.max_attempts,
        first_delay=options.first_delay,
        multiplier=3,
        max_delay=options.max_delay,
        give_up_on=[PostFailed],
    )

    def last_try(ctx: dt.Context) -> bool:
        return ctx.failures + 1 >= options.max_attempts

    @tasks.task(PREPARE, timeout="1h", retry=retry, limit=ONE_PER_ACCOUNT)
    async def prepare(
        ctx: dt.Context, post_id: str, post_version: int, account_id: str, scheduled_at: datetime
    ) -> str:
        """Bring the files of a post to its platform."""
        run = prepare_post(parts, ctx, post_id, post_version, last_try(ctx))
        return await _ended(parts, run, post_id, post_version, last_try(ctx))

    @tasks.task(PUBLISH, priority=7, timeout="5m", retry=retry, limit=ONE_PER_ACCOUNT)
    async def publish(
        ctx: dt.Context, post_id: str, post_version: int, account_id: str, scheduled_at: datetime
    ) -> str:
        """Publish a post once."""
        run = publish_post(parts, post_id, post_version, last_try(ctx))
        return await _ended(parts, run, post_id, post_version, last_try(ctx))

    @tasks.task(RESOLVE, timeout="5m", retry=retry, limit=ONE_PER_ACCOUNT)
    async def resolve(
        ctx: dt.Context, post_id: str, post_version: int, account_id: str, probe: bool | None = None
    ) -> str:
        """Find out whether a post was published."""
        try:
            return await resolve_post(parts, ctx, post_id, post_version, probe, last_try(ctx))
        except Skip as skip:
            return f"skipped: {skip}"

    @tasks.task(WATCH_TOKENS, queue=QUEUE, priority=3)
    async def watch_tokens() -> str:
        """Refresh tokens ahead of their end, or warn."""
        return await watch.watch_tokens(parts)

    @tasks.task(WATCH_POSTS, queue=QUEUE, priority=3)
    async def watch_posts() -> str:
        """Look for late posts without a job."""
        return await watch.watch_posts(parts)

    @tasks.task(PRUNE, queue=QUEUE, priority=3)
    async def prune() -> str:
        """Remove what is no longer needed."""
        return await watch.prune(parts)

    return tasks


def schedules(parts: Parts) -> Sequence[dt.NewSchedule]:
    return [
        dt.NewSchedule(WATCH_TOKENS, WATCH_TOKENS, dt.Every("1h"), overlap="skip"),
        dt.NewSchedule(WATCH_POSTS, WATCH_POSTS, dt.Every(parts.options.watch_interval), overlap="skip"),
        dt.NewSchedule(PRUNE, PRUNE, dt.Cron("H H * * *"), overlap="skip"),
    ]


async def _ended(parts: Parts, run: Awaitable[str], post_id: str, version: int, last_try: bool) -> str:
    """The result of a pipeline. An error that the program did not expect is retried, too; after the last try
    the post says that it failed."""
    try:
        return await run
    except Skip as skip:
        return f"skipped: {skip}"
    except (TryAgain, PostFailed, dt.Snooze):
        raise
    except Exception as error:
        log.exception("post %s: an unexpected error", post_id)
        if last_try:
            await fail(
                parts,
                await load(parts, post_id, version),
                "internal_error",
                f"{type(error).__name__}: {error}",
            )
        raise
