"""Attempts: intents to publish, and how they ended. Together they are the execution log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import tables
from momentum.ids import new_id
from momentum.model import Attempt, Outcome, Post

attempts = tables.attempts


def to_attempt(row: Row[Any]) -> Attempt:
    return Attempt(
        id=row.id,
        tenant=row.tenant,
        post_id=row.post_id,
        number=row.number,
        version=row.version,
        digest=row.digest,
        scheduled_at=row.scheduled_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        outcome=None if row.outcome is None else Outcome(row.outcome),
        error_code=row.error_code,
        error=row.error,
        status=row.status,
        request_id=row.request_id,
        worker=row.worker,
    )


async def begin(connection: AsyncConnection, post: Post, worker: str, now: datetime, **ended: Any) -> Attempt:
    """Store an attempt of this post. `ended` sets its other columns, for one that ends where it begins."""
    highest = select(func.max(attempts.c.number)).where(attempts.c.post_id == post.id)
    number = (await connection.execute(highest)).scalar() or 0
    attempt = Attempt(
        id=new_id("att"),
        tenant=post.tenant,
        post_id=post.id,
        number=number + 1,
        version=post.version,
        digest=post.digest,
        scheduled_at=post.scheduled_at or now,
        started_at=now,
        worker=worker,
        **ended,
    )
    await connection.execute(insert(attempts).values(asdict(attempt)))
    return attempt


async def end(
    connection: AsyncConnection,
    attempt_id: str,
    outcome: Outcome,
    now: datetime,
    *,
    error_code: str | None = None,
    error: str | None = None,
    status: int | None = None,
    request_id: str | None = None,
) -> bool:
    """Record how it ended. A later outcome replaces only `unknown`. False: it ended before."""
    open_ = or_(attempts.c.outcome.is_(None), attempts.c.outcome == Outcome.UNKNOWN.value)
    rule = update(attempts).where(attempts.c.id == attempt_id, open_)
    values = {
        "outcome": outcome.value,
        "ended_at": now,
        "error_code": error_code,
        "error": error,
        "status": status,
        "request_id": request_id,
    }
    return (await connection.execute(rule.values(values))).rowcount == 1


async def of_post(connection: AsyncConnection, post_id: str) -> Sequence[Attempt]:
    """All attempts of a post, oldest first."""
    query = select(attempts).where(attempts.c.post_id == post_id).order_by(attempts.c.number)
    return [to_attempt(row) for row in await connection.execute(query)]


async def last_in_doubt(connection: AsyncConnection, post_id: str) -> Attempt | None:
    """The newest attempt whose outcome is not known."""
    open_ = or_(attempts.c.outcome.is_(None), attempts.c.outcome == Outcome.UNKNOWN.value)
    query = select(attempts).where(attempts.c.post_id == post_id, open_)
    row = (await connection.execute(query.order_by(attempts.c.number.desc()).limit(1))).first()
    return None if row is None else to_attempt(row)


async def is_in_doubt(connection: AsyncConnection, post: Post, before: int) -> bool:
    """Whether an attempt before this number, with the same content, may have published the post."""
    query = select(attempts.c.id).where(
        attempts.c.post_id == post.id,
        attempts.c.digest == post.digest,
        attempts.c.outcome == Outcome.UNKNOWN.value,
        attempts.c.number < before,
    )
    return (await connection.execute(query.limit(1))).first() is not None


async def held_since(connection: AsyncConnection, post_id: str, since: datetime) -> bool:
    """Whether the log has said since then that this post is held."""
    query = select(attempts.c.id).where(
        attempts.c.post_id == post_id,
        attempts.c.outcome == Outcome.HELD.value,
        attempts.c.ended_at >= since,
    )
    return (await connection.execute(query.limit(1))).first() is not None
