"""Requests made to platforms, by UTC day, and the holds: what must not be called for now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, or_, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from momentum.database import tables

usage = tables.usage
holds = tables.holds
FOREVER = datetime.max.replace(tzinfo=UTC)
WHOLE = ""  # instead of an account id: the whole app, the whole platform


@dataclass(frozen=True, slots=True)
class Hold:
    """A platform, or one account of it, must not be called until then."""

    platform: str
    account_id: str  # "": the whole platform
    until: datetime | None  # None: until a person resumes it
    code: str
    reason: str
    since: datetime


async def spend(
    connection: AsyncConnection, platform: str, account_id: str, day: str, requests: int, limit: int | None
) -> bool:
    """Count requests if they fit into the limit. False: nothing is counted."""
    if limit is not None and requests > limit:
        return False
    add = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    rule = add(usage).values(platform=platform, account_id=account_id, day=day, requests=requests)
    fits = None if limit is None else usage.c.requests + requests <= limit
    rule = rule.on_conflict_do_update(
        index_elements=["platform", "account_id", "day"],
        set_={"requests": usage.c.requests + requests},
        where=fits,
    )
    return (await connection.execute(rule.returning(usage.c.requests))).first() is not None


async def used(connection: AsyncConnection, platform: str, account_id: str, day: str) -> int:
    """Requests on this day; of the whole app if `account_id` is empty."""
    query = select(usage.c.requests).where(
        usage.c.platform == platform, usage.c.account_id == account_id, usage.c.day == day
    )
    return (await connection.execute(query)).scalar() or 0


async def prune(connection: AsyncConnection, before_day: str) -> int:
    return (await connection.execute(delete(usage).where(usage.c.day < before_day))).rowcount


async def hold(connection: AsyncConnection, held: Hold) -> None:
    """Begin a hold, or change the one that is there. One that only a person may end stays as it is."""
    over = delete(holds).where(
        holds.c.platform == held.platform, holds.c.account_id == held.account_id, holds.c.until <= held.since
    )
    await connection.execute(over)
    values: dict[str, Any] = {"until": held.until, "code": held.code, "reason": held.reason}
    add = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    rule = add(holds).values(platform=held.platform, account_id=held.account_id, since=held.since, **values)
    await connection.execute(
        rule.on_conflict_do_update(
            index_elements=["platform", "account_id"], set_=values, where=holds.c.until.is_not(None)
        )
    )


async def release(connection: AsyncConnection, platform: str, account_id: str = WHOLE) -> bool:
    """End a hold. False if there was none."""
    rule = delete(holds).where(holds.c.platform == platform, holds.c.account_id == account_id)
    return (await connection.execute(rule)).rowcount == 1


async def hold_on(connection: AsyncConnection, platform: str, account_id: str, now: datetime) -> Hold | None:
    """The hold that stops this account now, if any: of the account, or of its whole platform. Of two, the one
    that lasts longer."""
    query = select(holds).where(
        holds.c.platform == platform,
        holds.c.account_id.in_([WHOLE, account_id]),
        or_(holds.c.until.is_(None), holds.c.until > now),
    )
    found = [Hold(*row) for row in await connection.execute(query)]
    return max(found, key=lambda held: held.until or FOREVER, default=None)
