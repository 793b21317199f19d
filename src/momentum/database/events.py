"""The timelines of posts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import tables
from momentum.ids import new_id
from momentum.model import Post, PostEvent

events = tables.events
PUBLISHER = "publisher"  # the actor of what no person did


async def add(
    connection: AsyncConnection,
    post: Post,
    kind: str,
    detail: str = "",
    *,
    now: datetime,
    actor: str = PUBLISHER,
) -> None:
    row = {
        "id": new_id("evt"),
        "post_id": post.id,
        "tenant": post.tenant,
        "at": now,
        "kind": kind,
        "detail": detail,
        "actor": actor,
    }
    await connection.execute(insert(events).values(row))


async def of_post(connection: AsyncConnection, post_id: str) -> Sequence[PostEvent]:
    """Oldest first."""
    query = select(events).where(events.c.post_id == post_id).order_by(events.c.at, events.c.id)
    return [PostEvent(row.at, row.kind, row.detail, row.actor) for row in await connection.execute(query)]
