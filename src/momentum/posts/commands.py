"""What people do with posts. Each command is one transaction that stores the post and, if it is planned, its
job: nothing is published here. A job of an older version is cancelled after the commit, as a courtesy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import Database, accounts, events, posts, tables
from momentum.database.media import to_media
from momentum.errors import Conflict, InvalidPost, NotFound, PlatformFailed, Problem
from momentum.ids import new_id
from momentum.model import EDITABLE, PLANNED, Account, Media, Post, PostState
from momentum.platform import Platform, Rules
from momentum.posts.checks import Checked, check
from momentum.posts.content import PostInput
from momentum.publishing.publisher import Publisher

DELETABLE = (PostState.DRAFT, PostState.CANCELLED, PostState.FAILED)


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Saved:
    """A stored post. `note` says how a special local time was understood."""

    post: Post
    note: str | None = None
    created: bool = True


@dataclass(frozen=True, slots=True)
class PostCommands:
    database: Database
    platforms: Mapping[str, Platform]
    publisher: Publisher
    now: Callable[[], datetime] = utc_now

    async def check(self, tenant: str, given: PostInput) -> tuple[Checked, Rules]:
        """What would be wrong with this post, by which rules. Nothing is stored."""
        await self.learn_rules(tenant, given.account_id)
        async with self.database.reading() as connection:
            return await self._check(connection, tenant, given)

    async def learn_rules(self, tenant: str, account_id: str | None = None) -> None:
        """Know the rules of the servers of this account, or of all: before a transaction begins, because a
        server may be slow."""
        async with self.database.reading() as connection:
            found = await accounts.listing(connection, tenant)
        servers = {(one.platform, one.server) for one in found if account_id in (None, one.id)}
        known = [(self.platforms[name], server) for name, server in servers if name in self.platforms]
        await asyncio.gather(*(platform.learn_rules(server) for platform, server in known))

    async def create(
        self,
        tenant: str,
        given: PostInput,
        *,
        actor: str,
        request_key: str | None = None,
        request_digest: str | None = None,
    ) -> Saved:
        """Store a post. A repeat with the same key and digest gets the post of the first request."""
        await self.learn_rules(tenant, given.account_id)
        try:
            async with self.database.transaction() as connection:
                if request_key is not None:
                    known = await self._repeated(connection, tenant, request_key, request_digest)
                    if known is not None:
                        return known
                return await self.create_within(
                    connection,
                    tenant,
                    given,
                    actor=actor,
                    request_key=request_key,
                    request_digest=request_digest,
                )
        except IntegrityError:  # the same key at the same moment: the other request was first
            if request_key is None:
                raise
            async with self.database.reading() as connection:
                known = await self._repeated(connection, tenant, request_key, request_digest)
            if known is None:
                raise
            return known

    async def create_within(
        self, connection: AsyncConnection, tenant: str, given: PostInput, *, actor: str, **request: str | None
    ) -> Saved:
        """Store a post in the caller's transaction."""
        checked = await self._require_valid(connection, tenant, given)
        now = self.now()
        post = Post(
            new_id("post"),
            tenant,
            given.account_id,
            PostState.DRAFT if checked.scheduled_at is None else PostState.SCHEDULED,
            1,
            checked.content,
            checked.scheduled_at,
            checked.zone,
            now,
            now,
            labels=checked.labels,
        )
        await posts.insert(connection, post, **request)
        await events.add(connection, post, "created", _when(post), now=now, actor=actor)
        return Saved(await self._plan(connection, post), checked.note)

    async def edit(
        self, tenant: str, post_id: str, changes: Mapping[str, Any], *, version: int | None, actor: str
    ) -> Saved:
        """Change fields. A planned post stays planned unless its time is taken away. A failed or cancelled
        one becomes a draft, or is planned if it gets a time."""
        before = await self._get(tenant, post_id)
        given = _as_input(before)
        has_time = "scheduled_at" in changes or "local_time" in changes
        if has_time:
            given = replace(given, scheduled_at=None, local_time=None)
        elif before.state not in PLANNED:
            given = replace(given, scheduled_at=None)
        given = replace(given, **changes)
        return await self._save(before, given, version, actor, "edited", keeps_time=not has_time)

    async def schedule(
        self, tenant: str, post_id: str, when: Mapping[str, Any], *, version: int | None, actor: str
    ) -> Saved:
        """`when` has both `scheduled_at` and `local_time`, one of them None."""
        before = await self._get(tenant, post_id)
        given = replace(_as_input(before), **when)
        return await self._save(before, given, version, actor, "scheduled")

    async def publish_now(self, tenant: str, post_id: str, *, version: int | None, actor: str) -> Saved:
        before = await self._get(tenant, post_id)
        given = replace(_as_input(before), scheduled_at=self.now())
        return await self._save(before, given, version, actor, "publish_now")

    async def unschedule(self, tenant: str, post_id: str, *, version: int | None, actor: str) -> Saved:
        before = await self._get(tenant, post_id)
        changes = {"state": PostState.DRAFT, "scheduled_at": None, "job_id": None}
        return await self._change(before, changes, version, actor, "unscheduled", PLANNED)

    async def cancel(self, tenant: str, post_id: str, *, version: int | None, actor: str) -> Saved:
        """A cancelled post is not published. A failed one leaves the inbox."""
        before = await self._get(tenant, post_id)
        if before.state is PostState.CANCELLED:
            return Saved(before)
        changes = {"state": PostState.CANCELLED, "job_id": None}
        return await self._change(before, changes, version, actor, "cancelled", EDITABLE)

    async def duplicate(self, tenant: str, post_id: str, *, actor: str) -> Saved:
        """A draft with the same content."""
        original = await self._get(tenant, post_id)
        given = replace(_as_input(original), scheduled_at=None)
        async with self.database.transaction() as connection:
            return await self.create_within(connection, tenant, given, actor=actor)

    async def delete(self, tenant: str, post_id: str) -> None:
        """The execution log keeps its attempts."""
        post = await self._get(tenant, post_id)
        states = [state.value for state in DELETABLE]
        table = tables.posts
        async with self.database.transaction() as connection:
            rule = delete(table).where(table.c.id == post.id, table.c.state.in_(states))
            if (await connection.execute(rule)).rowcount == 0:
                raise Conflict(f"post {post.id} is {post.state.value}: cancel it first, or keep it")
            await connection.execute(delete(tables.events).where(tables.events.c.post_id == post.id))

    async def resolve(
        self, tenant: str, post_id: str, *, published: bool, then: str | None, url: str | None, actor: str
    ) -> Saved:
        async with self.database.transaction() as connection:
            post = await posts.get(connection, tenant, post_id)
            changed = await self.publisher.resolve(
                connection, post, published=published, then=then or "fail", url=url, actor=actor
            )
        return Saved(changed)

    async def look_up(self, tenant: str, post_id: str, *, actor: str) -> Saved:
        """Have a worker find out now whether a post in doubt was published."""
        async with self.database.transaction() as connection:
            post = await posts.get(connection, tenant, post_id)
            if post.state is not PostState.UNKNOWN:
                raise Conflict(f"post {post.id} is {post.state.value}: there is no doubt about it")
            await self.publisher.resolve_later(connection, post)
            await events.add(connection, post, "check_requested", now=self.now(), actor=actor)
        return Saved(post)

    # The inside.

    async def _get(self, tenant: str, post_id: str) -> Post:
        async with self.database.reading() as connection:
            return await posts.get(connection, tenant, post_id)

    async def _save(
        self,
        before: Post,
        given: PostInput,
        version: int | None,
        actor: str,
        kind: str,
        *,
        keeps_time: bool = False,
    ) -> Saved:
        """Check all of the post again, and store it with a new version and job."""
        await self.learn_rules(before.tenant, given.account_id)
        async with self.database.transaction() as connection:
            timed = replace(given, scheduled_at=None) if keeps_time else given
            checked = await self._require_valid(
                connection, before.tenant, timed, planned=given.scheduled_at is not None
            )
            scheduled_at = given.scheduled_at if keeps_time else checked.scheduled_at
            changed = await posts.update(
                connection,
                before.id,
                now=self.now(),
                expect_version=before.version if version is None else version,
                account_id=given.account_id,
                content=checked.content,
                labels=checked.labels,
                zone=checked.zone,
                scheduled_at=scheduled_at,
                state=PostState.DRAFT if scheduled_at is None else PostState.SCHEDULED,
                job_id=None,
                error_code=None,
                error=None,
            )
            await events.add(connection, changed, kind, _when(changed), now=self.now(), actor=actor)
            changed = await self._plan(connection, changed)
        await self.publisher.drop(before.job_id)
        return Saved(changed, checked.note)

    async def _change(
        self,
        before: Post,
        changes: Mapping[str, Any],
        version: int | None,
        actor: str,
        kind: str,
        allowed: Sequence[PostState],
    ) -> Saved:
        async with self.database.transaction() as connection:
            changed = await posts.update(
                connection, before.id, now=self.now(), expect_version=version, allowed=allowed, **changes
            )
            await events.add(connection, changed, kind, now=self.now(), actor=actor)
        await self.publisher.drop(before.job_id)
        return Saved(changed)

    async def _plan(self, connection: AsyncConnection, post: Post) -> Post:
        if post.state is not PostState.SCHEDULED:
            return post
        return replace(post, job_id=await self.publisher.plan(connection, post))

    async def _repeated(
        self, connection: AsyncConnection, tenant: str, key: str, digest: str | None
    ) -> Saved | None:
        known = await posts.by_request_key(connection, tenant, key)
        if known is None:
            return None
        post, first_digest = known
        if first_digest != digest:
            raise Conflict("Idempotency-Key: it was used with another body: use a new key for another post")
        return Saved(post, created=False)

    async def _require_valid(
        self, connection: AsyncConnection, tenant: str, given: PostInput, *, planned: bool = False
    ) -> Checked:
        checked, _ = await self._check(connection, tenant, given, planned=planned)
        if checked.problems:
            raise InvalidPost(checked.problems)
        return checked

    async def _check(
        self, connection: AsyncConnection, tenant: str, given: PostInput, *, planned: bool = False
    ) -> tuple[Checked, Rules]:
        account = await _account(connection, tenant, given.account_id)
        platform = self.platforms.get(account.platform)
        if platform is None:
            raise PlatformFailed(f"account_id: the platform {account.platform} is not enabled here")
        media = await _media(connection, tenant, given)
        checked = check(given, account, platform, media, self.now(), planned=planned)
        return checked, platform.rules_at(account.server)


async def _account(connection: AsyncConnection, tenant: str, account_id: str) -> Account:
    try:
        return await accounts.get(connection, tenant, account_id)
    except NotFound:
        message = f"there is no account {account_id!r}: see the list of accounts"
        raise InvalidPost([Problem("account_id", message, "account_unknown")]) from None


async def _media(connection: AsyncConnection, tenant: str, given: PostInput) -> Sequence[Media]:
    ids = given.media_ids
    if not ids:
        return []
    table = tables.media
    query = select(table).where(table.c.tenant == tenant, table.c.id.in_(ids))
    found = {row.id: to_media(row) for row in await connection.execute(query)}
    fields = [f"media[{index}].media_id" for index in range(len(given.media))] + ["article.thumbnail"]
    missing = [
        Problem(field, f"there is no file {media_id!r}: upload it first", "media_unknown")
        for field, media_id in zip(fields, ids, strict=False)
        if media_id not in found
    ]
    if missing:
        raise InvalidPost(missing)
    return [found[media_id] for media_id in ids]


def _as_input(post: Post) -> PostInput:
    content = post.content
    return PostInput(
        post.account_id,
        content.text,
        content.media,
        content.article,
        content.visibility,
        post.labels,
        post.scheduled_at,
        None,
        post.zone,
    )


def _when(post: Post) -> str:
    return "" if post.scheduled_at is None else f"for {post.scheduled_at:%Y-%m-%d %H:%M} UTC"
