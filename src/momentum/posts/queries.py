"""Lists of posts for people: filters, search, pages, and the calendar."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Text,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    type_coerce,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import tables
from momentum.database.posts import to_post
from momentum.database.tables import EPOCH, MICROSECOND
from momentum.errors import InvalidPost, Problem
from momentum.model import MediaKind, Post, PostState
from momentum.posts.content import title_of

posts, accounts = tables.posts, tables.accounts
MAX_PAGE = 200
MAX_DAYS = 100
DAY = 86_400_000_000  # microseconds
MAX_PER_DAY = 1_000
TITLE_SOURCE = 400  # characters of the text that are read for a title


@dataclass(frozen=True, slots=True)
class PostFilter:
    states: tuple[PostState, ...] = ()
    account: str | None = None
    platform: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None
    label: str | None = None


class Page(NamedTuple):
    items: Sequence[Post]
    next: str | None


@dataclass(frozen=True, slots=True)
class CalendarPost:
    id: str
    account_id: str
    platform: str
    state: PostState
    scheduled_at: datetime
    title: str
    media_kind: MediaKind | None
    version: int


@dataclass(slots=True)
class Day:
    date: date
    states: dict[PostState, int]
    posts: list[CalendarPost]


async def listing(
    connection: AsyncConnection, tenant: str, wanted: PostFilter, cursor: str | None, limit: int
) -> Page:
    """Latest first: by the planned time, drafts by their creation."""
    at = func.coalesce(posts.c.scheduled_at, posts.c.created_at)
    query = select(posts).where(posts.c.tenant == tenant, *_conditions(wanted, at))
    if cursor is not None:
        micros, last = read_cursor(cursor)
        at_micros = type_coerce(at, BigInteger)
        query = query.where(or_(at_micros < micros, and_(at_micros == micros, posts.c.id < last)))
    query = query.order_by(at.desc(), posts.c.id.desc()).limit(limit + 1)
    found = [to_post(row) for row in await connection.execute(query)]
    if len(found) <= limit:
        return Page(found, None)
    last_post = found[limit - 1]
    return Page(found[:limit], make_cursor(last_post.scheduled_at or last_post.created_at, last_post.id))


def _conditions(wanted: PostFilter, at: ColumnElement[Any]) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.states:
        found.append(posts.c.state.in_([state.value for state in wanted.states]))
    if wanted.account is not None:
        found.append(posts.c.account_id == wanted.account)
    if wanted.platform is not None:
        of_platform = select(accounts.c.id).where(accounts.c.platform == wanted.platform)
        found.append(posts.c.account_id.in_(of_platform))
    if wanted.since is not None:
        found.append(at >= wanted.since)
    if wanted.until is not None:
        found.append(at < wanted.until)
    if wanted.text:
        found.append(posts.c.text.icontains(wanted.text, autoescape=True))
    if wanted.label is not None:  # in the JSON text of the list
        found.append(cast(posts.c.labels, Text).contains(json.dumps(wanted.label), autoescape=True))
    return found


async def attempt_counts(connection: AsyncConnection, post_ids: Sequence[str]) -> Mapping[str, int]:
    table = tables.attempts
    query = (
        select(table.c.post_id, func.count()).where(table.c.post_id.in_(post_ids)).group_by(table.c.post_id)
    )
    return {row[0]: row[1] for row in await connection.execute(query)}


async def counts(connection: AsyncConnection, tenant: str) -> Mapping[PostState, int]:
    query = select(posts.c.state, func.count()).where(posts.c.tenant == tenant).group_by(posts.c.state)
    return {PostState(state): count for state, count in await connection.execute(query)}


async def calendar(
    connection: AsyncConnection,
    tenant: str,
    first: date,
    last: date,
    zone: ZoneInfo,
    *,
    account: str | None = None,
    states: Sequence[PostState] = (),
    text: str | None = None,
    label: str | None = None,
    per_day: int = 6,
) -> list[Day]:
    """The days from `first` to `last`, both included, each with its counts and its first posts. The database
    counts and chooses: a month with thousands of posts sends a few hundred rows."""
    dates = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    if not 0 < len(dates) <= MAX_DAYS:
        message = f"must be from `from` to {MAX_DAYS - 1} days later"
        raise InvalidPost([Problem("to", message, "range_invalid")])
    bounds = [_midnight(day, zone) for day in (*dates, last + timedelta(days=1))]
    # All states by name: then the index by state answers, and no post itself is read for its count.
    wanted = PostFilter(tuple(states or PostState), account, text=text, label=label)
    chosen = [posts.c.tenant == tenant, *_conditions(wanted, posts.c.scheduled_at)]
    made = [Day(day, {}, []) for day in dates]
    for number, state, count in await connection.execute(_counts(bounds, chosen)):
        made[number].states[PostState(state)] = count
    busy = [number for number, day in enumerate(made) if day.states]
    if per_day > 0 and busy:
        for row in await connection.execute(_first_posts(bounds, busy, chosen, per_day)):
            made[row.number].posts.append(_calendar_post(row))
    return made


def _counts(bounds: Sequence[int], chosen: Sequence[ColumnElement[bool]]) -> Select[Any]:
    at = type_coerce(posts.c.scheduled_at, BigInteger)
    numbered = (
        select(_day_number(at, bounds).label("number"), posts.c.state)
        .where(*chosen, at >= bounds[0], at < bounds[-1])
        .subquery()
    )
    query = select(numbered.c.number, numbered.c.state, func.count())
    return query.group_by(numbered.c.number, numbered.c.state)


def _day_number(at: ColumnElement[int], bounds: Sequence[int]) -> ColumnElement[int]:
    """Which day an instant belongs to. Days of 24 hours are counted by a division; where the clock changes,
    another count begins."""
    starts = [0]
    for number, (first, next_first) in enumerate(pairwise(bounds)):
        if next_first - first != DAY:
            starts += [number, number + 1]
    starts = [start for start in dict.fromkeys(starts) if start < len(bounds) - 1]

    def counted_from(start: int) -> ColumnElement[int]:
        return literal(start, BigInteger) + (at - bounds[start]) // literal(DAY, BigInteger)

    *earlier, last = starts
    if not earlier:
        return counted_from(last)
    branches = [(at < bounds[after], counted_from(start)) for start, after in pairwise(starts)]
    return case(*branches, else_=counted_from(last))


def _first_posts(
    bounds: Sequence[int], days: Sequence[int], chosen: Sequence[ColumnElement[bool]], per_day: int
) -> Select[Any]:
    """The first posts of each day, with little more than a calendar shows. One short search for each day: to
    rank all posts of a month would read them all."""
    at = type_coerce(posts.c.scheduled_at, BigInteger)
    first_ids = [
        select(literal(number).label("number"), posts.c.id)
        .where(*chosen, at >= bounds[number], at < bounds[number + 1])
        .order_by(posts.c.scheduled_at, posts.c.id)
        .limit(per_day)
        .subquery()
        for number in days
    ]
    first = union_all(*(select(one.c.number, one.c.id) for one in first_ids)).subquery()
    return (
        select(
            first.c.number,
            posts.c.id,
            posts.c.account_id,
            accounts.c.platform,
            posts.c.state,
            posts.c.scheduled_at,
            func.substr(posts.c.text, 1, TITLE_SOURCE).label("text"),
            tables.media.c.kind,
            posts.c.version,
        )
        .select_from(
            first.join(posts, posts.c.id == first.c.id)
            .join(accounts, accounts.c.id == posts.c.account_id)
            .outerjoin(tables.media, tables.media.c.id == _first_media_id())
        )
        .order_by(posts.c.scheduled_at, posts.c.id)
    )


def _first_media_id() -> ColumnElement[str]:
    found: ColumnElement[str] = posts.c.content["media", 0, "media_id"].as_string()
    return found


def _calendar_post(row: Any) -> CalendarPost:
    return CalendarPost(
        row.id,
        row.account_id,
        row.platform,
        PostState(row.state),
        row.scheduled_at,
        title_of(row.text),
        None if row.kind is None else MediaKind(row.kind),
        row.version,
    )


def _midnight(day: date, zone: ZoneInfo) -> int:
    """The first instant of a day, as the database has it. Where the clock skips midnight, the first instant
    after the gap."""
    start = datetime.combine(day, time(), zone)
    return (start.astimezone(UTC) - EPOCH) // MICROSECOND


def make_cursor(at: datetime, last_id: str) -> str:
    return urlsafe_b64encode(f"{(at - EPOCH) // MICROSECOND}/{last_id}".encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[int, str]:
    try:
        text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        micros, _, last_id = text.partition("/")
        return int(micros), last_id
    except ValueError:
        message = "is not a cursor of this list: take it from `next`"
        raise InvalidPost([Problem("cursor", message, "cursor_invalid")]) from None
