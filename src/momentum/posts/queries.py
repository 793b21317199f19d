"""Lists of posts for people: filters, search, pages, and the calendar."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
HOUR = 3_600_000_000  # microseconds
DAY = 24 * HOUR
MAX_HOUR_DAYS = 7  # days that are counted by the hour
MAX_PER_DAY = 1_000
MAX_PER_HOUR = 50
TITLE_SOURCE = 400  # characters of the text that are read for a title
# The days whose beginning and end are an instant in every zone.
FIRST_DAY, LAST_DAY = date(1, 1, 2), date(9999, 12, 30)
MAX_MICROS = 2**63 - 1  # that the databases can compare


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
    hours: dict[int, int] = field(default_factory=dict)  # posts by local hour, if they were counted


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
    per_hour: int | None = None,
) -> list[Day]:
    """The days from `first` to `last`, both included, each with its counts and its first posts. The database
    counts and chooses: a month with thousands of posts sends a few hundred rows. `per_hour` counts the posts
    of each hour, and has the first posts of each hour instead of those of the day."""
    for name, day in (("from", first), ("to", last)):
        if not FIRST_DAY <= day <= LAST_DAY:
            message = f"must be a day from {FIRST_DAY} to {LAST_DAY}"
            raise InvalidPost([Problem(name, message, "range_invalid")])
    count = (last - first).days + 1
    if not 0 < count <= MAX_DAYS:
        message = f"must be from `from` to {MAX_DAYS - 1} days later"
        raise InvalidPost([Problem("to", message, "range_invalid")])
    if per_hour is not None and count > MAX_HOUR_DAYS:
        message = f"must be at most {MAX_HOUR_DAYS - 1} days after `from` with per_hour"
        raise InvalidPost([Problem("to", message, "range_invalid")])
    dates = [first + timedelta(days=number) for number in range(count)]
    hours = [0] if per_hour is None else list(range(24))
    bounds = [_local(day, hour, zone) for day in dates for hour in hours]
    bounds.append(_local(last + timedelta(days=1), 0, zone))
    # All states by name: then the index by state answers, and no post itself is read for its count.
    wanted = PostFilter(tuple(states or PostState), account, text=text, label=label)
    chosen = [posts.c.tenant == tenant, *_conditions(wanted, posts.c.scheduled_at)]
    made = [Day(day, {}, []) for day in dates]
    busy: dict[int, None] = {}
    step = DAY if per_hour is None else HOUR
    for number, state, count in await connection.execute(_counts(bounds, step, chosen)):
        day, hour = divmod(number, len(hours))
        by_state = made[day].states
        by_state[PostState(state)] = by_state.get(PostState(state), 0) + count
        if per_hour is not None:
            made[day].hours[hour] = made[day].hours.get(hour, 0) + count
        busy[number] = None
    most = per_day if per_hour is None else per_hour
    if most > 0 and busy:
        for row in await connection.execute(_first_posts(bounds, sorted(busy), chosen, most)):
            made[row.number // len(hours)].posts.append(_calendar_post(row))
    return made


def _counts(bounds: Sequence[int], step: int, chosen: Sequence[ColumnElement[bool]]) -> Select[Any]:
    at = type_coerce(posts.c.scheduled_at, BigInteger)
    numbered = (
        select(_slot_number(at, bounds, step).label("number"), posts.c.state)
        .where(*chosen, at >= bounds[0], at < bounds[-1])
        .subquery()
    )
    query = select(numbered.c.number, numbered.c.state, func.count())
    return query.group_by(numbered.c.number, numbered.c.state)


def _slot_number(at: ColumnElement[int], bounds: Sequence[int], step: int) -> ColumnElement[int]:
    """Which day, or which hour, an instant belongs to. Those of the usual length are counted by a division;
    where the clock changes, another count begins."""
    starts, unusual = [0], set()
    for number, (first, next_first) in enumerate(pairwise(bounds)):
        if next_first - first != step:
            starts += [number, number + 1]
            unusual.add(number)
    starts = [start for start in dict.fromkeys(starts) if start < len(bounds) - 1]

    def counted_from(start: int) -> ColumnElement[int]:
        known = literal(start, BigInteger)
        return known if start in unusual else known + (at - bounds[start]) // literal(step, BigInteger)

    *earlier, last = starts
    if not earlier:
        return counted_from(last)
    branches = [(at < bounds[after], counted_from(start)) for start, after in pairwise(starts)]
    return case(*branches, else_=counted_from(last))


def _first_posts(
    bounds: Sequence[int], days: Sequence[int], chosen: Sequence[ColumnElement[bool]], per_day: int
) -> Select[Any]:
    """The first posts of each day or hour, with little more than a calendar shows. One short search for each:
    to rank all posts of a month would read them all."""
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


def _local(day: date, hour: int, zone: ZoneInfo) -> int:
    """The first instant of a local hour, as the database has it. Where the clock skips it, the first instant
    after the gap."""
    start = datetime.combine(day, time(hour), zone)
    return (start.astimezone(UTC) - EPOCH) // MICROSECOND


def make_cursor(at: datetime, last_id: str) -> str:
    return urlsafe_b64encode(f"{(at - EPOCH) // MICROSECOND}/{last_id}".encode()).decode().rstrip("=")


def read_cursor(cursor: str) -> tuple[int, str]:
    try:
        text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        micros, _, last_id = text.partition("/")
        if abs(int(micros)) <= MAX_MICROS and last_id.isprintable():
            return int(micros), last_id
    except ValueError:
        pass
    message = "is not a cursor of this list: take it from `next`"
    raise InvalidPost([Problem("cursor", message, "cursor_invalid")])
