"""Candidates of a claim and the usage of limits, as model.permits wants them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from duetime.model.limit import Queue, Rate, TaskLimit
from duetime.model.permits import Candidate, Decision, KeyUse, QueueUse, Usage, promotable, skip_reason
from duetime.stores.postgres.connection import PostgresConnection
from duetime.stores.postgres.connections import SQL

CANDIDATE_FIELDS = len(Candidate._fields)
MAX_NAMES = 500  # that one sweep looks at


def needs_decision(row: Any) -> bool:
    return row["limit_key"] is not None or row["overlap"] is not None or row["queue_limited"] is not None


def candidates_of(rows: Sequence[Any]) -> list[Candidate]:
    return [Candidate(*row[:CANDIDATE_FIELDS]) for row in rows]


def usage_of(rows: Sequence[Any]) -> Usage:
    """Each row of a candidate has what concerns it."""
    usage = Usage(rows[0]["now"])
    usage.limits = {row["target"]: limit_of(row) for row in rows if row["limit_key"] is not None}
    usage.keys = {row["limit_key"]: _key_use(row) for row in rows if row["permits"] is not None}
    usage.rivals = {row["id"]: row["rival"] for row in rows if row["rival"] is not None}
    usage.queues = {row["queue"]: _queue_use(row) for row in rows if row["queue_limited"] is not None}
    return usage


def limit_of(row: Any) -> TaskLimit:
    return TaskLimit(row["target"], row["max_running"], rate_of(row["rate_count"], row["rate_period"]))


def rate_of(count: int | None, period: int | None) -> Rate | None:
    return None if count is None or period is None else Rate(count, period)


def _key_use(row: Any) -> KeyUse:
    return KeyUse(row["permits"], row["spent_until"], row["asks_at"], row["served_at"])


def _queue_use(row: Any) -> QueueUse:
    rate = rate_of(row["queue_rate_count"], row["queue_rate_period"])
    queue = Queue(row["queue"], max_running=row["queue_max_running"], rate=rate)
    return QueueUse(queue, row["queue_running"], row["queue_spent_until"])


def arguments_of(decision: Decision) -> tuple[Sequence[Any], ...]:
    """The parameters of the statement `execute_decision`, after the node."""
    return (
        decision.start,
        [*decision.wait],
        [*decision.wait.values()],
        [*decision.ask_at],
        [*decision.ask_at.values()],
        [*decision.skip],
        [skip_reason(in_the_way) for in_the_way in decision.skip.values()],
        [*decision.cancel],
        [*decision.keys],
        [use.spent_until for use in decision.keys.values()],
        [use.asks_at for use in decision.keys.values()],
        [use.served_at for use in decision.keys.values()],
        [*decision.queues],
        [*decision.queues.values()],
        [*decision.promote],
        [*decision.promote.values()],
    )


class FreePermits:
    """Finds jobs that wait although a permit is free: a limit was raised, or the job that was to ask is
    gone."""

    def __init__(self) -> None:
        self._after = ""

    async def promote(self, connection: PostgresConnection) -> list[Any]:
        """Looks at the next names; returns the jobs that became claimable."""
        rows = await connection.fetch(SQL["waiting_names"], self._after, MAX_NAMES)
        self._after = rows[-1]["name"] if len(rows) == MAX_NAMES else ""
        free = {row["name"]: number for row in rows if (number := _free(row)) > 0}
        return await connection.fetch(SQL["promote"], [*free], [*free.values()]) if free else []


def _free(row: Any) -> int:
    if row["name"].startswith("/"):
        return int(not row["started"])
    return promotable(limit_of(row), _key_use(row), row["now"])
