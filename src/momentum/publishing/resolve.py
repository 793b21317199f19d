"""Finding out whether a post in doubt was published: by a look-up where the platform has one, or by a probe.
Otherwise it waits for a person."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import duetime as dt
from momentum.database import attempts, events, posts
from momentum.model import Attempt, Outcome, PostState
from momentum.platform import OutcomeUnknown, PlatformError, Published, Throttled
from momentum.publishing.decide import Circumstances, Decision, Then, decide
from momentum.publishing.parts import Parts, Skip, Work, load
from momentum.publishing.prepare import attachments
from momentum.publishing.publish import call, doubt, judge, store_intent
from momentum.publishing.record import next_step, record, stop_if_held, wait_for

CLOCK_DIFFERENCE = timedelta(minutes=2)  # between this machine and the platform


async def resolve_post(
    parts: Parts, ctx: dt.Context, post_id: str, version: int, probe: bool | None, last_try: bool
) -> str:
    work = await load(parts, post_id, version, last_try)
    if work.post.state is PostState.PUBLISHING:  # the worker of a probe ended during its call
        return await doubt(parts, work)
    if work.post.state is not PostState.UNKNOWN:
        raise Skip(f"the post is {work.post.state.value}")
    async with parts.database.reading() as connection:
        known = await attempts.of_post(connection, post_id)
    in_doubt = [each for each in known if each.outcome in (None, Outcome.UNKNOWN)]
    if not in_doubt:
        raise Skip("no attempt is in doubt")
    await stop_if_held(parts, work)
    try:
        if work.platform.can_find:
            return await _look_up(parts, ctx, work, in_doubt[-1])
    except OutcomeUnknown:
        pass  # this account may not read its posts
    wanted = work.account.probe if probe is None else probe
    same = [each for each in in_doubt if each.digest == work.post.digest]
    if wanted and len(same) == 1:  # one probe: a second doubt is for a person
        early = same[0].started_at + parts.options.probe_delay - parts.now()
        if early > timedelta():
            raise dt.Snooze(early, "the platform may still be storing the first one")
        return await _probe(parts, work)
    return "unknown: a person decides"


async def _look_up(parts: Parts, ctx: dt.Context, work: Work, attempt: Attempt) -> str:
    since = attempt.started_at - CLOCK_DIFFERENCE
    try:
        access = await parts.accounts.access(work.account.id)
        found = await work.platform.find(access, work.post, since, work.meter(parts))
    except OutcomeUnknown:
        raise
    except Throttled as limit:
        raise wait_for(parts, limit.until, limit.message) from None
    except PlatformError as error:
        if work.last_try:
            return f"unknown: {error.message}"
        raise
    if found is not None:
        return await _found(parts, work, attempt, found)
    looked = (ctx.last_checkpoint or 0) + 1
    delays = parts.options.find_delays
    if looked < len(delays):
        await ctx.checkpoint(looked)
        raise dt.Snooze(delays[looked], "not found yet")
    return await _not_there(parts, work, attempt)


async def _found(parts: Parts, work: Work, attempt: Attempt, found: Published) -> str:
    decision = decide(found, Circumstances(PostState.UNKNOWN, repeatable=False))
    await record(parts, work, attempt, decision, [PostState.UNKNOWN])
    return next_step(parts, work, decision)


async def _not_there(parts: Parts, work: Work, attempt: Attempt) -> str:
    """The platform does not have it after all this time. A person may publish it again; so does the publisher
    if it is allowed to."""
    now, post = parts.now(), work.post
    message = f"{work.platform.title} does not have the post"
    again = parts.options.republish
    state = PostState.READY if again else PostState.UNKNOWN
    async with parts.database.transaction() as connection:
        if not await posts.advance(
            connection, post, [PostState.UNKNOWN], state, now=now, error_code="not_found", error=message
        ):
            raise Skip("the post was decided in the meantime")
        await events.add(connection, post, "not_found", message, now=now)
        if again:
            await attempts.end(
                connection, attempt.id, Outcome.RETRY, now, error_code="not_found", error=message
            )
            await parts.publisher.plan(connection, await posts.get(connection, None, post.id))
    return f"not found: {'it is published again' if again else 'a person decides'}"


async def _probe(parts: Parts, work: Work) -> str:
    """Send the identical post once more. The platform's filter of duplicates names the first one, if there is
    one."""
    access = await parts.accounts.access(work.account.id)
    files = await attachments(parts, work)
    attempt = await store_intent(parts, work, [PostState.UNKNOWN])
    answer = await call(parts, work, attempt, access, files)
    decision = await judge(parts, work, attempt, answer, access)
    if decision.outcome is not Outcome.PUBLISHED:
        decision = _still_in_doubt(decision)
    await record(parts, work, attempt, decision)
    return next_step(parts, work, decision)


def _still_in_doubt(decision: Decision) -> Decision:
    """The probe created nothing, or has no clear answer: that says nothing about the first attempt."""
    if decision.then is Then.RESOLVE:
        return replace(decision, then=Then.END)
    return replace(decision, state=PostState.UNKNOWN, then=Then.END, hold=None)
