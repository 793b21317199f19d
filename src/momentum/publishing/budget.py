"""The daily budgets: requests are counted before they are made, for each account and for the whole app."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from momentum.database import Database, usage
from momentum.platform import Platform, Throttled


@dataclass(frozen=True, slots=True)
class DailyMeter:
    """The budgets of one account. `reserve` requests are kept back for others: uploads leave one for the call
    that publishes a post that is ready."""

    database: Database
    platform: Platform
    account_id: str
    now: Callable[[], datetime]
    reserve: int = 0

    async def spend(self, requests: int = 1) -> None:
        rules = self.platform.rules
        now = self.now()
        async with self.database.transaction() as connection:
            for account_id, limit in (
                (self.account_id, rules.requests_per_account_per_day),
                (usage.WHOLE, rules.requests_per_app_per_day),
            ):
                left = None if limit is None else limit - self.reserve
                if not await usage.spend(
                    connection, self.platform.name, account_id, day_of(now), requests, left
                ):
                    raise self._used_up(now, limit, whole=account_id == usage.WHOLE)

    def _used_up(self, now: datetime, limit: int | None, whole: bool) -> Throttled:
        who = "this app" if whole else "this account"
        return Throttled(
            f"{who} has used its {limit} requests to {self.platform.title} of today (UTC)",
            until=next_day(now),
            whole_platform=whole,
            code="budget_used_up",
        )


def day_of(now: datetime) -> str:
    return now.astimezone(UTC).date().isoformat()


def next_day(now: datetime) -> datetime:
    """The next 00:00 UTC, when platforms count from zero again."""
    return datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
