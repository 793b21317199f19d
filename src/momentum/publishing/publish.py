"""Publishing: the intent is stored, then the one call is made, then its answer is recorded. A call whose
answer is not known is never repeated here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import duetime as dt
from momentum.database import attempts, events, posts
from momentum.errors import NotFound
from momentum.model import PLANNED, Attempt, PostState
from momentum.platform import (
    Access,
    Attachment,
    DuplicatePost,
    NotSent,
    OutcomeUnknown,
    PlatformError,
    ReconnectNeeded,
)
from momentum.publishing.decide import Answer, Circumstances, Decision, decide, in_doubt
from momentum.publishing.parts import Parts, Skip, Work, load, log, overtaken
from momentum.publishing.prepare import attachments, file_ids
from momentum.publishing.record import fail, guarded, next_step, record, renew, stop_if_held

# A process that was paused between its intent and its call does not make the call: others may have decided
# about the post by now.
MAX_PAUSE = timedelta(seconds=30)


async def publish_post(parts: Parts, post_id: str, version: int, last_try: bool) -> str:
    work = await load(parts, post_id, version, last_try)
    if work.post.state is PostState.PUBLISHING:
        return await doubt(parts, work)
    if work.post.state not in PLANNED:
        raise Skip(f"the post is {work.post.state.value}")
    await stop_if_held(parts, work)
    wait_until_due(parts, work)
    files = await _attached(parts, work)
    access = await guarded(parts, work, _nothing_more)
    attempt = await store_intent(parts, work, _from_states(work))
    answer = await call(parts, work, attempt, access, files)
    decision = await judge(parts, work, attempt, answer, access)
    await record(parts, work, attempt, decision)
    return next_step(parts, work, decision)


async def _nothing_more(access: Access) -> Access:
    """The step is to get the token."""
    return access


def wait_until_due(parts: Parts, work: Work) -> None:
    """A message that comes early is put back."""
    assert work.post.scheduled_at is not None
    early = work.post.scheduled_at - parts.now()
    if early > timedelta():
        raise dt.Snooze(early, "not due yet")


async def store_intent(parts: Parts, work: Work, allowed: Sequence[PostState]) -> Attempt:
    """From here on the post counts as possibly published, until an answer says otherwise."""
    now = parts.now()
    async with parts.database.transaction() as connection:
        if not await posts.advance(connection, work.post, allowed, PostState.PUBLISHING, now=now):
            raise await overtaken(parts, work)
        attempt = await attempts.begin(connection, work.post, parts.worker, now)
        await events.add(connection, work.post, "publishing", f"attempt {attempt.number}", now=now)
    return attempt


async def call(
    parts: Parts, work: Work, attempt: Attempt, access: Access, files: Sequence[Attachment]
) -> Answer:
    """The one call. Every way in which it can end is an answer."""
    limit = parts.options.call_timeout
    if parts.now() - attempt.started_at > MAX_PAUSE:
        return NotSent("this worker was paused before it could publish", code="worker_paused")
    try:
        async with asyncio.timeout(limit.total_seconds()):
            return await work.platform.publish(access, work.post, files, work.meter(parts))
    except PlatformError as error:
        return error
    except TimeoutError:
        message = f"{work.platform.title} did not answer within {limit.total_seconds():g} seconds"
        return OutcomeUnknown(message, code="timeout")
    except Exception as error:  # an error in a client must not lead to a second post
        log.exception("post %s: the client of %s failed", work.post.id, work.platform.name)
        return OutcomeUnknown(f"{type(error).__name__}: {error}", code="client_failed")


async def judge(parts: Parts, work: Work, attempt: Attempt, answer: Answer, access: Access) -> Decision:
    refreshed = isinstance(answer, ReconnectNeeded) and await renew(parts, work, answer, access)
    doubted = False
    if isinstance(answer, DuplicatePost):
        async with parts.database.reading() as connection:
            doubted = await attempts.is_in_doubt(connection, work.post, attempt.number)
    given = Circumstances(
        PostState.READY,
        repeatable=False,
        last_try=work.last_try,
        in_doubt=doubted,
        refreshed=refreshed,
    )
    return decide(answer, given)


async def doubt(parts: Parts, work: Work) -> str:
    """The worker that stored the intent ended before it recorded an answer."""
    async with parts.database.reading() as connection:
        attempt = await attempts.last_in_doubt(connection, work.post.id)
    worker = attempt.worker if attempt else "the worker"
    message = f"{worker} ended during the call: {work.platform.title} may have the post"
    decision = in_doubt(message, "worker_lost")
    await record(parts, work, attempt, decision, [PostState.PUBLISHING])
    return next_step(parts, work, decision)


def _from_states(work: Work) -> Sequence[PostState]:
    """A post without files needs no preparation."""
    return [PostState.READY] if file_ids(work.post) else [PostState.SCHEDULED, PostState.READY]


async def _attached(parts: Parts, work: Work) -> Sequence[Attachment]:
    try:
        return await attachments(parts, work)
    except NotFound as missing:
        await fail(parts, work, "media_missing", missing.message)
