"""Posts in the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import tables
from momentum.errors import Conflict, NotFound, PostPublishing
from momentum.model import EDITABLE, Article, Content, MediaUse, Post, PostState

posts = tables.posts


def to_post(row: Row[Any]) -> Post:
    return Post(
        id=row.id,
        tenant=row.tenant,
        account_id=row.account_id,
        state=PostState(row.state),
        version=row.version,
        content=_to_content(row.text, row.content),
        scheduled_at=row.scheduled_at,
        zone=row.zone,
        created_at=row.created_at,
        updated_at=row.updated_at,
        published_at=row.published_at,
        platform_id=row.platform_id,
        url=row.url,
        error_code=row.error_code,
        error=row.error,
        job_id=row.job_id,
        labels=tuple(row.labels),
    )


def content_values(content: Content) -> dict[str, Any]:
    """The columns of a content."""
    rest = asdict(content)
    return {"text": rest.pop("text"), "content": rest}


async def get(connection: AsyncConnection, tenant: str | None, post_id: str) -> Post:
    """Raises NotFound, also for a post of another tenant. `tenant` None: of any tenant."""
    query = select(posts).where(posts.c.id == post_id)
    if tenant is not None:
        query = query.where(posts.c.tenant == tenant)
    row = (await connection.execute(query)).first()
    if row is None:
        raise NotFound(f"post: there is no post {post_id!r}")
    return to_post(row)


async def by_request_key(
    connection: AsyncConnection, tenant: str, request_key: str
) -> tuple[Post, str | None] | None:
    """The post that a request with this Idempotency-Key has created, and the digest of that request."""
    query = select(posts).where(posts.c.tenant == tenant, posts.c.request_key == request_key)
    row = (await connection.execute(query)).first()
    return None if row is None else (to_post(row), row.request_digest)


async def insert(
    connection: AsyncConnection,
    post: Post,
    *,
    request_key: str | None = None,
    request_digest: str | None = None,
) -> None:
    request = {"request_key": request_key, "request_digest": request_digest}
    await connection.execute(posts.insert().values(_row_of(post) | request))


async def update(
    connection: AsyncConnection,
    post_id: str,
    *,
    now: datetime,
    expect_version: int | None = None,
    allowed: Collection[PostState] = EDITABLE,
    **changes: Any,
) -> Post:
    """Change a post for a person: the version grows, so that messages of the version before are dropped.
    `content` may be a Content. Raises Conflict if its version or state is another one by now."""
    rule = posts.update().where(posts.c.id == post_id, posts.c.state.in_([state.value for state in allowed]))
    if expect_version is not None:
        rule = rule.where(posts.c.version == expect_version)
    values = {"version": posts.c.version + 1, "updated_at": now, **_columns(changes)}
    row = (await connection.execute(rule.values(values).returning(*posts.c))).first()
    if row is None:
        raise _conflict(await get(connection, None, post_id), expect_version)
    return to_post(row)


async def set_job(connection: AsyncConnection, post_id: str, version: int, job_id: str) -> None:
    """The job that publishes this version."""
    rule = posts.update().where(posts.c.id == post_id, posts.c.version == version)
    await connection.execute(rule.values(job_id=job_id))


async def advance(
    connection: AsyncConnection,
    post: Post,
    allowed: Collection[PostState],
    state: PostState,
    *,
    now: datetime,
    **changes: Any,
) -> bool:
    """Move this version of a post to another state. False if its version or state is another one by now."""
    rule = posts.update().where(
        posts.c.id == post.id,
        posts.c.version == post.version,
        posts.c.state.in_([each.value for each in allowed]),
    )
    values = {"state": state.value, "updated_at": now, **_columns(changes)}
    return (await connection.execute(rule.values(values))).rowcount == 1


def _row_of(post: Post) -> dict[str, Any]:
    return {
        "id": post.id,
        "tenant": post.tenant,
        "account_id": post.account_id,
        "state": post.state.value,
        "version": post.version,
        **content_values(post.content),
        "labels": list(post.labels),
        "scheduled_at": post.scheduled_at,
        "zone": post.zone,
        "created_at": post.created_at,
        "updated_at": post.updated_at,
        "job_id": post.job_id,
    }


def _columns(changes: Mapping[str, Any]) -> dict[str, Any]:
    values = dict(changes)
    if isinstance(values.get("content"), Content):
        values |= content_values(values["content"])
    if isinstance(values.get("state"), PostState):
        values["state"] = values["state"].value
    if "labels" in values:
        values["labels"] = list(values["labels"])
    return values


def _to_content(text: str, rest: Mapping[str, Any]) -> Content:
    article = rest.get("article")
    return Content(
        text=text,
        media=tuple(MediaUse(**use) for use in rest.get("media", ())),
        article=None if article is None else Article(**article),
        visibility=rest.get("visibility", "PUBLIC"),
    )


def _conflict(post: Post, expected: int | None) -> Conflict:
    if post.state is PostState.PUBLISHING:
        return PostPublishing(f"post {post.id} is being published at this moment: wait for the outcome")
    if expected is not None and post.version != expected:
        return Conflict(
            f"version: post {post.id} was changed in the meantime (version {post.version}, not {expected}): "
            "load it again"
        )
    return Conflict(f"post {post.id} is {post.state.value}: this cannot be done any more")
