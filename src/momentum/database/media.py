"""Media and their uploads in the database. The bytes are in the media store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import tables
from momentum.errors import NotFound
from momentum.model import Media, MediaKind
from momentum.platform import Upload

media = tables.media
uploads = tables.uploads
QUOTA_LOCK = 0x6D6F6D65  # of PostgreSQL's advisory locks, with the tenant: "mome"


def to_media(row: Row[Any]) -> Media:
    return Media(
        id=row.id,
        tenant=row.tenant,
        kind=MediaKind(row.kind),
        type=row.type,
        name=row.name,
        size=row.size,
        digest=row.digest,
        created_at=row.created_at,
        width=row.width,
        height=row.height,
        seconds=row.seconds,
        pages=row.pages,
    )


async def get(connection: AsyncConnection, tenant: str | None, media_id: str) -> Media:
    """Raises NotFound, also for media of another tenant. `tenant` None: of any tenant."""
    return (await get_many(connection, tenant, [media_id]))[0]


async def get_many(
    connection: AsyncConnection, tenant: str | None, media_ids: Sequence[str]
) -> Sequence[Media]:
    """In the order of the ids. Raises NotFound for the first that does not exist."""
    query = select(media).where(media.c.id.in_(media_ids))
    if tenant is not None:
        query = query.where(media.c.tenant == tenant)
    found = {row.id: to_media(row) for row in await connection.execute(query)}
    for media_id in media_ids:
        if media_id not in found:
            raise NotFound(f"media: there is no file {media_id!r}: upload it first")
    return [found[media_id] for media_id in media_ids]


async def used(connection: AsyncConnection, tenant: str) -> int:
    """The bytes of all files of the tenant."""
    query = select(func.sum(media.c.size)).where(media.c.tenant == tenant)
    return int((await connection.execute(query)).scalar() or 0)


async def insert_within(connection: AsyncConnection, item: Media, quota: int) -> bool:
    """False if the files of the tenant would need more than the quota. Two files at the same time cannot both
    take the last free bytes: SQLite has one writer, and here each tenant has one."""
    if connection.dialect.name == "postgresql":
        await connection.execute(select(func.pg_advisory_xact_lock(QUOTA_LOCK, func.hashtext(item.tenant))))
    if await used(connection, item.tenant) + item.size > quota:
        return False
    await insert(connection, item)
    return True


async def insert(connection: AsyncConnection, item: Media) -> None:
    await connection.execute(media.insert().values({**asdict(item), "kind": item.kind.value}))


async def get_upload(connection: AsyncConnection, account_id: str, media_id: str) -> Upload:
    """How far the upload of this file for this account has come; a new one if it has not begun."""
    query = select(uploads).where(uploads.c.account_id == account_id, uploads.c.media_id == media_id)
    row = (await connection.execute(query)).first()
    return Upload() if row is None else Upload(row.asset, dict(row.state), bool(row.sent), bool(row.ready))


async def save_upload(
    connection: AsyncConnection, account_id: str, media_id: str, upload: Upload, now: datetime
) -> None:
    values = {
        "asset": upload.asset,
        "state": upload.state,
        "sent": upload.sent,
        "ready": upload.ready,
        "updated_at": now,
    }
    add = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    rule = add(uploads).values(account_id=account_id, media_id=media_id, **values)
    await connection.execute(
        rule.on_conflict_do_update(index_elements=["account_id", "media_id"], set_=values)
    )
