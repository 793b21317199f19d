"""Files: streamed in and out."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from sqlalchemy import String, cast, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from momentum.api.auth import KnownCaller
from momentum.api.models.accounts import MediaOut
from momentum.api.problems import problem
from momentum.api.state import ServiceState, State
from momentum.api.views import show_media
from momentum.database import media, tables
from momentum.errors import Conflict, MomentumError
from momentum.media import TooManyBytes
from momentum.model import PLANNED, Media, PostState

router = APIRouter(tags=["media"])
RANGE = re.compile(r"bytes=(\d*)-(\d*)")
# Shown by the browser. Everything else is only offered as a download.
INLINE = {"image/jpeg", "image/png", "image/gif", "image/webp", "video/mp4", "application/pdf"}
IN_USE = (*PLANNED, PostState.PUBLISHING, PostState.UNKNOWN)


class QuotaReached(MomentumError, code="media_quota", status=413):
    """The files of the tenant need too much space."""


@router.post("/media", status_code=201, response_model=MediaOut)
async def upload_media(
    request: Request,
    caller: KnownCaller,
    state: State,
    name: Annotated[str, Query(max_length=1_000)] = "file",
) -> MediaOut:
    """The file itself is the body. What it is, its content says."""
    with state.uploads.held((caller.tenant, None)):
        stored = await _store(request, caller.tenant, name, state)
    return show_media(stored)


async def _store(request: Request, tenant: str, name: str, state: ServiceState) -> Media:
    database, quota = state.momentum.database, state.settings.media_quota
    async with database.reading() as connection:
        used = await media.used(connection, tenant)
    if used >= quota:
        raise QuotaReached(f"media: {used:,} of {quota:,} bytes are used: delete files that are not needed")
    declared = request.headers.get("content-type", "")
    try:
        with state.incoming.counted(request.stream(), tenant, quota - used) as chunks:
            stored = await state.momentum.media.put(tenant, name, chunks, declared, max_bytes=quota - used)
            kept = False
            try:
                async with database.transaction() as connection:
                    kept = await media.insert_within(connection, stored, quota)
            finally:
                if not kept:
                    await state.momentum.media.delete(stored)
    except ClientDisconnect:
        raise Incomplete("media: the connection ended before the file: send it again") from None
    except TooManyBytes:
        raise _no_room(quota) from None
    if not kept:
        raise _no_room(quota)
    return stored


class Incomplete(MomentumError, code="upload_incomplete", status=400):
    """The caller went away."""


@router.get("/media/{media_id}", response_model=MediaOut)
async def get_media(media_id: str, caller: KnownCaller, state: State) -> MediaOut:
    async with state.momentum.database.reading() as connection:
        return show_media(await media.get(connection, caller.tenant, media_id))


@router.get("/media/{media_id}/content", response_class=StreamingResponse)
async def get_media_content(media_id: str, request: Request, caller: KnownCaller, state: State) -> Response:
    """The bytes; with `Range: bytes=0-99` a part of them."""
    async with state.momentum.database.reading() as connection:
        found = await media.get(connection, caller.tenant, media_id)
    place = "inline" if found.type in INLINE else "attachment"
    headers = {
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, max-age=86400, immutable",  # a file never changes under its id
        "Content-Disposition": f"{place}; filename*=UTF-8''{quote(found.name)}",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    start, end, status = 0, found.size, 200
    asked = request.headers.get("range")
    if asked is not None and (matched := RANGE.fullmatch(asked.strip())) and matched[0] != "bytes=-":
        if matched[1]:
            start = int(matched[1])
            end = min(found.size, int(matched[2]) + 1) if matched[2] else found.size
        else:
            start = max(0, found.size - int(matched[2]))
        if start >= end:
            headers["Content-Range"] = f"bytes */{found.size}"
            return problem(416, "range_invalid", f"the file has {found.size} bytes", (), headers)
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{found.size}"
        status = 206
    headers["Content-Length"] = str(end - start)
    chunks = state.momentum.media.stream(found, start, end)
    return StreamingResponse(chunks, status, headers, found.type)


@router.delete("/media/{media_id}", status_code=204)
async def delete_media(media_id: str, caller: KnownCaller, state: State) -> None:
    """A file that no planned post uses."""
    async with state.momentum.database.transaction() as connection:
        found = await media.get(connection, caller.tenant, media_id)
        user = await _post_that_uses(connection, caller.tenant, found.id)
        if user is not None:
            raise Conflict(f"media {found.id} is part of the planned post {user}: remove it there first")
        await connection.execute(delete(tables.media).where(tables.media.c.id == found.id))
        await connection.execute(delete(tables.uploads).where(tables.uploads.c.media_id == found.id))
    await state.momentum.media.delete(found)


def _no_room(quota: int) -> QuotaReached:
    together = f"together with other files that are sent now, this one is over the quota of {quota:,} bytes"
    return QuotaReached(f"media: {together}: delete files that are not needed")


async def _post_that_uses(connection: AsyncConnection, tenant: str, media_id: str) -> str | None:
    posts = tables.posts
    query = select(posts.c.id).where(
        posts.c.tenant == tenant,
        posts.c.state.in_([state.value for state in IN_USE]),
        cast(posts.c.content, String).contains(f'"{media_id}"'),
    )
    found: str | None = (await connection.execute(query.limit(1))).scalar()
    return found
