"""What people look at: calendar, inbox, hints, the execution log, and the stream of changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from datetime import date, datetime
from time import monotonic
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from duetime.serving import Refused
from momentum.api.auth import Caller, KnownCaller, authenticate
from momentum.api.changes import Change, Listener
from momentum.api.models.posts import (
    CalendarDay,
    CalendarOut,
    HintOut,
    HintsOut,
    InboxItem,
    InboxOut,
    LogPage,
)
from momentum.api.state import ServiceState, State
from momentum.api.views import show_calendar_post, show_log_line, show_posts
from momentum.errors import AccessDenied, InvalidPost, Problem
from momentum.model import Outcome, PostState
from momentum.posts.hints import read_hints
from momentum.posts.inbox import open_holds, waiting_posts
from momentum.posts.local_time import zone_of
from momentum.posts.log import LogFilter, log_csv, read_log
from momentum.posts.queries import MAX_PAGE, MAX_PER_DAY, MAX_PER_HOUR, calendar

router = APIRouter()
HEARTBEAT_INTERVAL = 15.0  # seconds without an event
KEY_CHECK_INTERVAL = 3.0  # seconds after which the stream of a revoked key ends at the latest
Since = Annotated[datetime | None, Query(alias="from")]
Until = Annotated[datetime | None, Query(alias="to")]


@router.get("/calendar", response_model=CalendarOut, tags=["posts"])
async def get_calendar(
    caller: KnownCaller,
    state: State,
    first: Annotated[date, Query(alias="from")],
    last: Annotated[date, Query(alias="to")],
    zone: str = "UTC",
    account: str | None = None,
    states: Annotated[list[PostState], Query(alias="state")] = [],  # noqa: B006  # FastAPI copies it
    q: Annotated[str | None, Query(max_length=200)] = None,
    label: str | None = None,
    per_day: Annotated[int, Query(ge=0, le=MAX_PER_DAY)] = 6,
    per_hour: Annotated[int | None, Query(ge=0, le=MAX_PER_HOUR)] = None,
) -> CalendarOut:
    """The days from `from` to `to`, both included, with counts and the first posts of each. `per_hour`: with
    the counts and the first posts of each hour instead, for up to 7 days."""
    place = zone_of(zone)
    async with state.momentum.database.reading() as connection:
        days = await calendar(
            connection,
            caller.tenant,
            first,
            last,
            place,
            account=account,
            states=states,
            text=q,
            label=label,
            per_day=per_day,
            per_hour=per_hour,
        )
    return CalendarOut(
        days=[
            CalendarDay.model_construct(
                date=day.date,
                count=sum(day.states.values()),
                states=day.states,
                hours=day.hours,
                posts=[show_calendar_post(post) for post in day.posts],
            )
            for day in days
        ]
    )


@router.get("/inbox", response_model=InboxOut, tags=["posts"])
async def get_inbox(caller: KnownCaller, state: State) -> InboxOut:
    """Posts and platforms that need a decision of a person."""
    async with state.momentum.database.reading() as connection:
        waiting = await waiting_posts(connection, caller.tenant)
        shown = await show_posts(connection, caller.tenant, [one.post for one in waiting])
        holds = await open_holds(connection, caller.tenant, state.now())
    items = [
        InboxItem.model_validate(
            {
                "kind": "hold",
                "platform": hold.platform,
                "account_id": hold.account_id or None,
                "reason": hold.reason,
                "since": hold.since,
                "until": hold.until,
            }
        )
        for hold in holds
    ]
    items += [
        InboxItem.model_validate(
            {
                "kind": one.kind,
                "post": post,
                "platform": post.platform,
                "account_id": post.account_id,
                "reason": one.reason,
                "since": post.updated_at,
            }
        )
        for one, post in zip(waiting, shown, strict=True)
    ]
    return InboxOut(items=items)


@router.get("/hints", response_model=HintsOut, tags=["posts"])
async def get_hints(
    caller: KnownCaller, state: State, account: str | None = None, zone: str = "UTC"
) -> HintsOut:
    """Times of the week at which this tenant has published, most often first. Nothing is invented."""
    async with state.momentum.database.reading() as connection:
        found = await read_hints(connection, caller.tenant, account, zone_of(zone))
    hints = [HintOut(**asdict(hint)) for hint in found.hints]
    return HintsOut(hints=hints, posts=found.posts, reason=found.reason)


def _log_filter(
    since: Since = None,
    until: Until = None,
    post: str | None = None,
    account: str | None = None,
    outcome: Outcome | None = None,
) -> LogFilter:
    for field, instant in (("from", since), ("to", until)):
        if instant is not None and instant.tzinfo is None:
            raise InvalidPost([Problem(field, "has no offset: write it with Z or +01:00", "time_invalid")])
    return LogFilter(since, until, post, account, outcome)


WantedLines = Annotated[LogFilter, Depends(_log_filter)]


@router.get("/log", response_model=LogPage, tags=["log"])
async def get_log(
    caller: KnownCaller,
    state: State,
    wanted: WantedLines,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> LogPage:
    """Every attempt to publish, newest first."""
    async with state.momentum.database.reading() as connection:
        page = await read_log(connection, caller.tenant, wanted, cursor, limit)
    return LogPage(items=[show_log_line(line) for line in page.items], next=page.next)


@router.get("/log.csv", tags=["log"], response_class=StreamingResponse)
async def get_log_csv(
    caller: KnownCaller,
    state: State,
    wanted: WantedLines,
) -> StreamingResponse:
    """The same as a file for spreadsheets."""
    headers = {"Content-Disposition": 'attachment; filename="momentum-log.csv"'}
    chunks = log_csv(state.momentum.database, caller.tenant, wanted)
    return StreamingResponse(chunks, media_type="text/csv; charset=utf-8", headers=headers)


@router.get("/events", tags=["posts"], response_class=StreamingResponse)
async def get_events(request: Request, caller: KnownCaller, state: State) -> StreamingResponse:
    """Server-sent events: `post` with id, state and version of each post that changes."""
    return _Events(state, caller, request)


class _Events(StreamingResponse):
    """Has a place among the open streams of its caller until it ends, however it ends."""

    def __init__(self, state: ServiceState, caller: Caller, request: Request) -> None:
        headers = {"X-Accel-Buffering": "no"}
        super().__init__(_stream(state, caller, request), media_type="text/event-stream", headers=headers)
        self._held = state.streams.held((caller.tenant, caller.key_id))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            await super().__call__(scope, receive, send)


async def _stream(state: ServiceState, caller: Caller, request: Request) -> AsyncIterator[str]:
    """Ends when the service stops, or when the key is revoked: the key is checked before events are sent, and
    every few seconds without one."""
    async with state.changes.listen(caller.tenant) as listener:
        yield "retry: 2000\n\n"
        silent_since = monotonic()
        while True:
            changes = await _next_changes(listener)
            if None in changes or not await _still_allowed(request, caller):
                return
            if changes:
                yield "".join(f"event: post\ndata: {json.dumps(asdict(one))}\n\n" for one in changes if one)
            elif monotonic() - silent_since >= HEARTBEAT_INTERVAL:
                yield ": still here\n\n"
            else:
                continue
            silent_since = monotonic()


async def _next_changes(listener: Listener) -> list[Change | None]:
    """All changes that wait, so that one check of the key is enough for them; none after a while."""
    try:
        async with asyncio.timeout(KEY_CHECK_INTERVAL):
            found = [await listener.get()]
    except TimeoutError:
        return []
    while not listener.empty():
        found.append(listener.get_nowait())
    return found


async def _still_allowed(request: Request, caller: Caller) -> bool:
    try:
        return (await authenticate(request)).tenant == caller.tenant
    except (AccessDenied, Refused):
        return False
