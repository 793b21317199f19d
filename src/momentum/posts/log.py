"""The execution log: one line for each attempt to publish, newest first, as values and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Select, and_, or_, select, type_coerce
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import Database, tables
from momentum.database.attempts import to_attempt
from momentum.model import Attempt, Outcome
from momentum.posts.queries import make_cursor, read_cursor

attempts, posts = tables.attempts, tables.posts
COLUMNS = (
    "post_id",
    "account_id",
    "number",
    "scheduled_at",
    "started_at",
    "ended_at",
    "lateness_ms",
    "outcome",
    "error_code",
    "error",
    "status",
    "request_id",
    "worker",
)
CHUNK = 500
# A spreadsheet runs text that begins with one of these as a formula.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class LogFilter:
    since: datetime | None = None
    until: datetime | None = None
    post: str | None = None
    account: str | None = None
    outcome: Outcome | None = None


class LogLine(NamedTuple):
    attempt: Attempt
    account_id: str

    @property
    def lateness_ms(self) -> int:
        late = self.attempt.started_at - self.attempt.scheduled_at
        return max(0, round(late.total_seconds() * 1_000))


class LogPage(NamedTuple):
    items: list[LogLine]
    next: str | None


async def read_log(
    connection: AsyncConnection, tenant: str, wanted: LogFilter, cursor: str | None, limit: int
) -> LogPage:
    query = _query(tenant, wanted)
    if cursor is not None:
        micros, last = read_cursor(cursor)
        at = type_coerce(attempts.c.started_at, BigInteger)
        query = query.where(or_(at < micros, and_(at == micros, attempts.c.id < last)))
    rows = (await connection.execute(query.limit(limit + 1))).all()
    found = [LogLine(to_attempt(row), row.account_id or "") for row in rows]
    if len(found) <= limit:
        return LogPage(found, None)
    last_line = found[limit - 1].attempt
    return LogPage(found[:limit], make_cursor(last_line.started_at, last_line.id))


def _query(tenant: str, wanted: LogFilter) -> Select[Any]:
    # The attempts of a deleted post stay in the log.
    query = select(attempts, posts.c.account_id).select_from(
        attempts.outerjoin(posts, posts.c.id == attempts.c.post_id)
    )
    query = query.where(attempts.c.tenant == tenant)
    if wanted.since is not None:
        query = query.where(attempts.c.started_at >= wanted.since)
    if wanted.until is not None:
        query = query.where(attempts.c.started_at < wanted.until)
    if wanted.post is not None:
        query = query.where(attempts.c.post_id == wanted.post)
    if wanted.account is not None:
        query = query.where(posts.c.account_id == wanted.account)
    if wanted.outcome is not None:
        query = query.where(attempts.c.outcome == wanted.outcome.value)
    return query.order_by(attempts.c.started_at.desc(), attempts.c.id.desc())


async def log_csv(database: Database, tenant: str, wanted: LogFilter) -> AsyncIterator[str]:
    """In chunks. Each is read by itself: a slow reader holds no connection."""
    yield csv_text([COLUMNS])
    cursor: str | None = None
    while True:
        async with database.reading() as connection:
            page = await read_log(connection, tenant, wanted, cursor, CHUNK)
        if page.items:
            yield csv_text(_cells(line) for line in page.items)
        cursor = page.next
        if cursor is None:
            return


def _cells(line: LogLine) -> Iterable[object]:
    attempt = line.attempt
    known: dict[str, object] = {"account_id": line.account_id, "lateness_ms": line.lateness_ms}
    for name in COLUMNS:
        value = known[name] if name in known else getattr(attempt, name)
        yield value.isoformat(timespec="milliseconds") if isinstance(value, datetime) else value


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows([safe_cell(value) for value in row] for row in rows)
    return written.getvalue()


def safe_cell(value: object) -> str:
    """A text that a spreadsheet would run gets an apostrophe before it."""
    text = "" if value is None else str(value)
    is_number = isinstance(value, int | float)
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not is_number else text
