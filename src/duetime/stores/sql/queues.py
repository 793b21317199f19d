"""Queues: their settings, and how many more of their jobs may start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.limit import MAX_RUNNING, Queue, QueueCounts, QueueFilter, with_lanes
from duetime.model.permits import QueueUse
from duetime.store import ClaimRequest, Lane
from duetime.stores.sql.rows import rate_of
from duetime.stores.sql.session import Row, SqlSession, SqlTransaction

RESTRICTED = QueueFilter(restricted=True)
JUST_NOW = SECOND // 20  # a start allowed within this time may have come too late for the last claim


async def known(session: SqlSession, counted: bool, wanted: QueueFilter) -> list[Queue]:
    if wanted.for_workers:
        restricted = await known(session, False, RESTRICTED)
        return with_lanes(restricted, await lanes(session, wanted.after, wanted.limit))
    counts: dict[str, QueueCounts] = {}
    if counted:
        rows = await session.all("count_jobs", (await session.time(), wanted.tenant))
        counts = {queue: QueueCounts(*map(int, numbers)) for queue, *numbers in rows}
    return [
        queue_of(row, counts.get(row[0], QueueCounts()) if counted else None)
        for row in await session.all("queues", (*wanted[:4], _most(wanted.limit)))
    ]


async def lanes(session: SqlSession, after: str, limit: int | None) -> list[Row]:
    """Queue, priority and tenant of pending jobs, of so many queues."""
    found = await session.all("lanes", (after, _most(limit)))
    names = sorted({row[0] for row in found})[:limit]
    return [row for row in found if names and row[0] <= names[-1]]


async def add_queues(transaction: SqlTransaction, used: Iterable[tuple[str, str]]) -> None:
    """`used`: each queue with a tenant that stores jobs under it."""
    pairs = set(used)
    await transaction.change_many("add_queues", [(queue,) for queue in {queue for queue, _ in pairs}])
    await transaction.change_many("add_queue_tenants", [(tenant, queue) for queue, tenant in pairs])


async def set_queue(transaction: SqlTransaction, queue: Queue) -> None:
    count, period = (None, None) if queue.rate is None else queue.rate
    await transaction.change(
        "set_queue",
        (queue.name, queue.paused, queue.pause_note, queue.paused_at, queue.max_running, count, period),
    )
    transaction.tell([JobHint("*", 0, 0)])


class QueueLimits:
    """Queues that are paused or limited, and how much of them is in use."""

    def __init__(self, uses: Sequence[QueueUse], now: Micros) -> None:
        self._now = now
        self.paused = {use.queue.name for use in uses if use.queue.paused}
        self.in_use = {use.queue.name: use for use in uses if not use.queue.paused}
        self.vacancies = {name: use.vacancies(now) or 0 for name, use in self.in_use.items()}

    async def next_start(self, session: SqlSession, request: ClaimRequest) -> Micros | None:
        """When a rate allows the next start of a job that is due."""
        instants = ((name, self._free_at(use)) for name, use in self.in_use.items())
        held_up = [
            instant
            for name, instant in instants
            if instant is not None and await self._any_due(session, request, name)
        ]
        return min(held_up, default=None)

    def _free_at(self, use: QueueUse) -> Micros | None:
        """When its rate allows the next start, if that is later, or so recent that the last claim came too
        early."""
        if use.queue.rate is None:
            return None
        instant = use.queue.rate.free_at(use.spent_until)
        return instant if instant > self._now - (JUST_NOW if self.vacancies[use.queue.name] else 0) else None

    async def _any_due(self, session: SqlSession, request: ClaimRequest, queue: str) -> bool:
        lanes = [lane for lane in request.lanes if lane.queue == queue]
        due_at = await next_due(session, lanes, request.targets, -1, -1)
        return due_at is not None and due_at <= self._now


async def queue_limits(session: SqlSession, now: Micros) -> QueueLimits:
    rows = await session.all("restricted_queues")
    return QueueLimits([QueueUse(queue_of(row[:7]), row[8], row[7]) for row in rows], now)


async def next_due(
    session: SqlSession,
    lanes: Sequence[Lane],
    targets: Sequence[str],
    after: Micros,
    restricted_after: Micros,
) -> Micros | None:
    """The earliest due time after these instants, of plain and of restricted jobs."""
    parameters = (session.listed(targets), after, restricted_after)
    found = await session.each_lane("next_due", lanes, parameters) if lanes and targets else []
    return min((due_at for (due_at,) in found if due_at is not None), default=None)


def queue_of(row: Sequence[Any], counts: QueueCounts | None = None) -> Queue:
    name, paused, note, paused_at, max_running, count, period = row
    return Queue(name, paused == 1, note, paused_at, max_running, rate_of(count, period), counts)


def _most(limit: int | None) -> int:
    return MAX_RUNNING if limit is None else limit
