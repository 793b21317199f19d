"""The side of publishing that the API uses: it stores jobs in the caller's transaction, and nothing is
published here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncConnection

import duetime as dt
from momentum.database import accounts, attempts, events, posts, usage
from momentum.errors import Conflict, InvalidPost, Problem
from momentum.model import Outcome, Post, PostState
from momentum.publishing.options import PublishingOptions

PREPARE, PUBLISH, RESOLVE = "momentum.prepare", "momentum.publish", "momentum.resolve"
AFTERWARDS = ("publish", "draft", "fail")  # what a person wants of a post that was not published


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Publisher:
    app: dt.App
    options: PublishingOptions
    now: Callable[[], datetime] = utc_now

    async def plan(self, connection: AsyncConnection, post: Post) -> str:
        """Store the job of a scheduled post within this transaction. A post with files is prepared ahead of
        its time. Returns the id of the job, which is also written to the post."""
        if post.scheduled_at is None:
            raise InvalidPost([Problem("scheduled_at", "choose when the post is published", "required")])
        prepares = has_files(post) and post.state is not PostState.READY
        due = post.scheduled_at - self.options.lead if prepares else post.scheduled_at
        job = await self.app.submit(
            PREPARE if prepares else PUBLISH,
            post_id=post.id,
            post_version=post.version,
            account_id=post.account_id,
            scheduled_at=post.scheduled_at.isoformat(),
            **await self._options(connection, post, max(due, self.now())),
        )
        await posts.set_job(connection, post.id, post.version, str(job.id))
        return str(job.id)

    async def drop(self, job_id: str | None) -> None:
        """Cancel the job of an older version, after the commit. A courtesy: it would find out by itself."""
        if job_id is not None:
            with suppress(dt.NotFound, dt.JobFinished):
                await self.app.cancel_job(job_id, "the post was changed")

    async def resolve_later(
        self,
        connection: AsyncConnection,
        post: Post,
        *,
        delay_until: datetime | None = None,
        probe: bool | None = None,
    ) -> None:
        """Have a worker find out whether a post in doubt was published: by a look-up where the platform has
        one, or by a probe. `probe` None: as the account says."""
        await self.app.submit(
            RESOLVE,
            post_id=post.id,
            post_version=post.version,
            account_id=post.account_id,
            probe=probe,
            **await self._options(connection, post, delay_until or self.now()),
        )

    async def resolve(
        self,
        connection: AsyncConnection,
        post: Post,
        *,
        published: bool,
        then: str = "fail",
        url: str | None = None,
        actor: str = "",
    ) -> Post:
        """A person decides about a post in doubt. `then` is for a post that was not published: publish it
        again, keep it as a draft, or let it fail."""
        if then not in AFTERWARDS:
            raise InvalidPost([Problem("then", f"{then!r} is unknown: use {', '.join(AFTERWARDS)}")])
        if post.state is not PostState.UNKNOWN:
            raise Conflict(f"post {post.id} is {post.state.value}: there is nothing to decide")
        now = self.now()
        doubt = await attempts.last_in_doubt(connection, post.id)
        changes: dict[str, object] = {"error_code": None, "error": None}
        if published:
            changes |= {"state": PostState.PUBLISHED, "url": url}
            changes["published_at"] = doubt.started_at if doubt else now
        elif then == "publish":
            changes |= {"state": PostState.SCHEDULED, "scheduled_at": max(post.scheduled_at or now, now)}
        elif then == "draft":
            changes |= {"state": PostState.DRAFT}
        else:
            changes |= {"state": PostState.FAILED, "error_code": "not_published"}
            changes["error"] = "a person decided that it was not published"
        changed = await posts.update(
            connection,
            post.id,
            now=now,
            expect_version=post.version,
            allowed=(PostState.UNKNOWN,),
            **changes,
        )
        if doubt is not None:
            # "Not published" stays a person's word: if the platform calls the next one a duplicate, it was.
            outcome = Outcome.PUBLISHED if published else Outcome.UNKNOWN
            await attempts.end(connection, doubt.id, outcome, now, error_code="decided", error=_by(actor))
        what = "published" if published else f"not published; {then}"
        await events.add(connection, changed, "resolved", what, now=now, actor=actor)
        if not published and then == "publish":
            await self.plan(connection, changed)
        return changed

    async def resume(self, connection: AsyncConnection, platform: str, account_id: str = usage.WHOLE) -> bool:
        """End a hold. Held posts notice it after `recheck`. False if there was none."""
        return await usage.release(connection, platform, account_id)

    async def _options(self, connection: AsyncConnection, post: Post, at: datetime) -> dict[str, object]:
        account = await accounts.get(connection, None, post.account_id)
        return {"at": at, "queue": account.platform, "labels": {"post": post.id}, "connection": connection}


def has_files(post: Post) -> bool:
    """Whether something must be at the platform before the post can be published."""
    article = post.content.article
    return bool(post.content.media) or bool(article and article.thumbnail)


def _by(actor: str) -> str:
    return f"decided by {actor or 'a person'}"
