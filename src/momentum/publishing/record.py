"""Recording what became of an attempt, in one transaction, and what the job does next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from typing import NoReturn, TypeVar

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

import duetime as dt
from momentum.database import attempts, events, posts, usage
from momentum.database.usage import Hold
from momentum.model import PLANNED, Attempt, Outcome, PostState
from momentum.platform import Access, PlatformError, ReconnectNeeded
from momentum.publishing.decide import Circumstances, Decision, Then, decide
from momentum.publishing.parts import Parts, PostFailed, TryAgain, Work, log, overtaken

Result = TypeVar("Result")
LONG_RECHECK = 15  # times `recheck`: a hold with an end seldom ends earlier
IN_DOUBT = {PostState.UNKNOWN}
CALLED = {PostState.PUBLISHING, *IN_DOUBT}  # the call was made, or may have been
RECORD_DELAYS = (0.2, 1.0, 5.0, 15.0)  # seconds; an answer is worth waiting for the database


async def record(
    parts: Parts,
    work: Work,
    attempt: Attempt | None,
    decision: Decision,
    allowed: Collection[PostState] = CALLED,
) -> None:
    """Store how an attempt ended. `attempt` None: it ended before there was an intent. A late answer of a
    slow process still replaces `unknown`."""
    for delay in (*RECORD_DELAYS, None):
        try:
            async with parts.database.transaction() as connection:
                return await _record(parts, connection, work, attempt, decision, allowed)
        except (SQLAlchemyError, OSError) as problem:
            if delay is None:
                raise
            log.warning("post %s: recording is tried again: %s", work.post.id, problem)
            await asyncio.sleep(delay)


async def _record(
    parts: Parts,
    connection: AsyncConnection,
    work: Work,
    attempt: Attempt | None,
    decision: Decision,
    allowed: Collection[PostState],
) -> None:
    now, post = parts.now(), work.post
    changes = _post_changes(decision, now)
    doubted = False
    moved = await posts.advance(connection, post, set(allowed) - IN_DOUBT, decision.state, now=now, **changes)
    if not moved and set(allowed) >= IN_DOUBT:
        doubted = moved = await posts.advance(connection, post, IN_DOUBT, decision.state, now=now, **changes)
    if not moved and attempt is None:
        raise await overtaken(parts, work)
    await _log_attempt(parts, connection, work, attempt, decision, now)
    if not moved:
        kind, detail = "late_answer", f"{decision.outcome.value}: the post had been decided before"
        return await events.add(connection, post, kind, detail, now=now)
    kind = decision.outcome.value
    detail = decision.published.id if decision.published else decision.message or ""
    await events.add(connection, post, kind, detail, now=now)
    if decision.hold is not None:
        account_id = usage.WHOLE if decision.hold.whole_platform else work.account.id
        reason, code = decision.message or "", decision.code or "held"
        hold = Hold(work.platform.name, account_id, decision.hold.until, code, reason, now)
        await usage.hold(connection, hold)
    if doubted and decision.then in (Then.RETRY, Then.WAIT):
        # The job has ended: another attempt of it called this one lost.
        await parts.publisher.plan(connection, await posts.get(connection, None, post.id))
    if decision.then is Then.RESOLVE:
        await look_later(parts, connection, work, now)


async def look_later(parts: Parts, connection: AsyncConnection, work: Work, now: datetime) -> None:
    """Have a post in doubt looked up, if there is a way. Otherwise it waits for a person."""
    if work.platform.can_find:
        delay = parts.options.find_delays[0]
    elif work.account.probe:
        delay = parts.options.probe_delay
    else:
        return
    await parts.publisher.resolve_later(connection, work.post, delay_until=now + delay)


def next_step(parts: Parts, work: Work, decision: Decision) -> str:
    """The result of the job, or what it raises to be tried again, to wait, or to end as a dead letter."""
    about = f"{decision.code}: {decision.message}"
    log.info("post %s: %s %s", work.post.id, decision.outcome.value, decision.code or "")
    match decision.then:
        case Then.RETRY:
            raise TryAgain(about)
        case Then.WAIT:
            assert decision.hold is not None
            raise wait_for(parts, decision.hold.until, about)
        case Then.FAIL:
            raise PostFailed(about)
        case Then.RESOLVE:
            return f"unknown: {about}"
        case Then.END:
            return f"published: {decision.published.id if decision.published else ''}"


def wait_for(parts: Parts, until: datetime | None, reason: str) -> dt.Snooze:
    """Come back when the hold ends, and look in between: a person may end it earlier."""
    recheck = parts.options.recheck
    if until is None:
        return dt.Snooze(recheck + parts.chance() * recheck, reason)
    remaining = max(until - parts.now(), timedelta()) + parts.jitter()
    return dt.Snooze(min(remaining, LONG_RECHECK * recheck), reason)


async def stop_if_held(parts: Parts, work: Work) -> None:
    """Put the message back while the account or its platform is held. The log says it once for each hold."""
    now = parts.now()
    async with parts.database.reading() as connection:
        hold = await usage.hold_on(connection, work.platform.name, work.account.id, now)
        known = hold is not None and await attempts.held_since(connection, work.post.id, hold.since)
    if hold is None:
        return
    if not known:
        async with parts.database.transaction() as connection:
            ended = {"ended_at": now, "outcome": Outcome.HELD, "error_code": hold.code, "error": hold.reason}
            await attempts.begin(connection, work.post, parts.worker, now, **ended)
            await events.add(connection, work.post, "held", hold.reason, now=now)
    raise wait_for(parts, hold.until, f"held: {hold.reason}")


async def guarded(parts: Parts, work: Work, step: Callable[[Access], Awaitable[Result]]) -> Result:
    """Take a step that may be repeated without harm: an upload, or reading a token. An error of the platform
    is recorded as an attempt and raised as what the job does next."""
    access = None
    try:
        access = await parts.accounts.access(work.account.id)
        return await step(access)
    except PlatformError as error:
        refreshed = isinstance(error, ReconnectNeeded) and await renew(parts, work, error, access)
        given = Circumstances(work.post.state, repeatable=True, last_try=work.last_try, refreshed=refreshed)
        await _stop(parts, work, decide(error, given))


async def renew(parts: Parts, work: Work, error: ReconnectNeeded, rejected: Access | None) -> bool:
    """Get another token than the rejected one, where one was granted or is there already. False: a person
    must connect the account again."""
    if work.account.can_refresh:
        try:
            await parts.accounts.refresh(work.account.id, rejected)
            return True
        except ReconnectNeeded as refused:
            error = refused
        except PlatformError as problem:
            log.warning("account %s: its token could not be refreshed: %s", work.account.id, problem)
            return True  # the platform did not refuse: later
    return not await parts.accounts.expire(work.account.id, error.message, rejected)


async def fail(parts: Parts, work: Work, code: str, message: str) -> NoReturn:
    """End a post that cannot be published, before there was an intent."""
    await _stop(parts, work, Decision(Outcome.FAILED, PostState.FAILED, Then.FAIL, code, message))


async def _stop(parts: Parts, work: Work, decision: Decision) -> NoReturn:
    await record(parts, work, None, decision, PLANNED)
    raise AssertionError(next_step(parts, work, decision))  # before an intent, every decision is raised


def _post_changes(decision: Decision, now: datetime) -> dict[str, object]:
    if decision.published is not None:
        found = decision.published
        return {
            "published_at": now,
            "platform_id": found.id or None,
            "url": found.url,
            "error_code": None,
            "error": None,
        }
    return {"error_code": decision.code, "error": decision.message}


async def _log_attempt(
    parts: Parts,
    connection: AsyncConnection,
    work: Work,
    attempt: Attempt | None,
    decision: Decision,
    now: datetime,
) -> None:
    if attempt is None:
        attempt = await attempts.begin(connection, work.post, parts.worker, now)
    await attempts.end(
        connection,
        attempt.id,
        decision.outcome,
        now,
        error_code=decision.code,
        error=decision.message,
        status=decision.status,
        request_id=decision.request_id,
    )
