"""Preparing: the files of a post are brought to the platform ahead of time. Every step may be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NoReturn

import duetime as dt
from momentum.database import events, media, posts
from momentum.errors import NotFound
from momentum.model import Media, Post, PostState
from momentum.platform import Access, Attachment, Upload
from momentum.publishing.parts import Parts, Skip, Work, load, log, overtaken
from momentum.publishing.record import fail, guarded, stop_if_held

KEPT_BACK = 1  # requests of the day that uploads leave for the call that publishes
BEFORE_READY = (PostState.SCHEDULED, PostState.PREPARING)


async def prepare_post(parts: Parts, ctx: dt.Context, post_id: str, version: int, last_try: bool) -> str:
    work = await load(parts, post_id, version, last_try)
    if work.post.state not in BEFORE_READY:
        raise Skip(f"the post is {work.post.state.value}")
    await stop_if_held(parts, work)
    work = await _begin(parts, work)
    try:
        waiting = await guarded(parts, work, lambda access: _bring(parts, work, access))
    except NotFound as missing:
        await fail(parts, work, "media_missing", missing.message)
    if waiting:
        await _wait(parts, ctx, work, waiting)
    return await _ready(parts, work)


def file_ids(post: Post) -> list[str]:
    """The ids of all files that the post needs, in order."""
    article = post.content.article
    thumbnail = [article.thumbnail] if article and article.thumbnail else []
    return [*(use.media_id for use in post.content.media), *thumbnail]


async def attachments(parts: Parts, work: Work) -> Sequence[Attachment]:
    """The files of a ready post with their assets; the picture of its article is the last."""
    if not file_ids(work.post):
        return ()
    uses = {use.media_id: use for use in work.post.content.media}
    found: list[Attachment] = []
    async with parts.database.reading() as connection:
        for each in await media.get_many(connection, None, file_ids(work.post)):
            upload = await media.get_upload(connection, work.account.id, each.id)
            if upload.asset is None:
                raise NotFound(f"media: the file {each.id!r} is not at {work.platform.title}")
            use = uses.get(each.id)
            found.append(
                Attachment(each, upload.asset, use.alt_text if use else "", use.title if use else "")
            )
    return found


async def _begin(parts: Parts, work: Work) -> Work:
    if work.post.state is PostState.PREPARING:
        return work
    now = parts.now()
    async with parts.database.transaction() as connection:
        if not await posts.advance(
            connection, work.post, [PostState.SCHEDULED], PostState.PREPARING, now=now
        ):
            raise await overtaken(parts, work)
        await events.add(connection, work.post, "preparing", now=now)
        return Work(
            await posts.get(connection, None, work.post.id), work.account, work.platform, work.last_try
        )


async def _bring(parts: Parts, work: Work, access: Access) -> Sequence[Media]:
    """Bring all files to the platform. Returns those that it still processes."""
    async with parts.database.reading() as connection:
        files = await media.get_many(connection, work.post.tenant, file_ids(work.post))
    return [each for each in files if not await _brought(parts, work, access, each)]


async def _brought(parts: Parts, work: Work, access: Access, item: Media) -> bool:
    """Bring one file to the platform, or go on where an earlier process stopped. Whether it is usable now."""
    async with parts.database.reading() as connection:
        upload = await media.get_upload(connection, work.account.id, item.id)

    async def save(changed: Upload) -> None:
        async with parts.database.transaction() as connection:
            await media.save_upload(connection, work.account.id, item.id, changed, parts.now())

    meter = work.meter(parts, KEPT_BACK)
    if not upload.sent:
        await work.platform.upload(access, parts.media.open(item), upload, save, meter)
        upload.sent = True
        await save(upload)
    if not upload.ready and await work.platform.is_processed(access, item, upload, meter):
        upload.ready = True
        await save(upload)
    return upload.ready


async def _wait(parts: Parts, ctx: dt.Context, work: Work, waiting: Sequence[Media]) -> NoReturn:
    """Ask again later whether the platform has processed the files. The worker is free until then."""
    waited = ctx.last_checkpoint or {"polls": 0, "since": parts.now().isoformat()}
    if parts.now() - datetime.fromisoformat(waited["since"]) > parts.options.max_processing:
        names = ", ".join(each.name for each in waiting)
        await fail(
            parts, work, "processing_timeout", f"{work.platform.title} did not process {names} in time"
        )
    await ctx.checkpoint({**waited, "polls": waited["polls"] + 1})
    delays = parts.options.poll_delays
    raise dt.Snooze(delays[min(waited["polls"], len(delays) - 1)], "the platform processes the files")


async def _ready(parts: Parts, work: Work) -> str:
    now = parts.now()
    async with parts.database.transaction() as connection:
        if not await posts.advance(
            connection,
            work.post,
            [PostState.PREPARING],
            PostState.READY,
            now=now,
            error_code=None,
            error=None,
        ):
            raise Skip("the post was changed in the meantime")
        await events.add(connection, work.post, "ready", now=now)
        await parts.publisher.plan(connection, await posts.get(connection, None, work.post.id))
    log.info("post %s: ready", work.post.id)
    return "ready"
