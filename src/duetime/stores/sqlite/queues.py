"""Queues: their settings, and how many more of their jobs may start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.limit import MAX_RUNNING, Queue, QueueCounts, QueueFilter, with_lanes
from duetime.model.permits import QueueUse
from duetime.store import ClaimRequest
from duetime.stores.sqlite.rows import rate_of, text_of
from duetime.stores.sqlite.session import Row, SqliteSession, SqliteTransaction

RESTRICTED = QueueFilter(restricted=True)
JUST_NOW = SECOND // 20  # a start allowed within this time may have come too late for the last claim


def known(session: SqliteSession, now: Micros, counted: bool, wanted: QueueFilter) -> list[Queue]:
    if wanted.for_workers:
        return with_lanes(known(session, now, False, RESTRICTED), lanes(session, wanted.after, wanted.limit))
    counts = (
        {queue: QueueCounts(*numbers) for queue, *numbers in session.all("count_jobs", (now, wanted.tenant))}
        if counted
        else {}
    )
    return [
        _queue_of(row, counts.get(row[0], QueueCounts()) if counted else None)
        for row in session.all("queues", wanted[:-1])
    ]


def lanes(session: SqliteSession, after: str, limit: int | None) -> list[Row]:
    """Queue, priority and tenant of pending jobs, of so many queues."""
    found = session.all("lanes", (after, MAX_RUNNING if limit is None else limit))
    names = sorted({row[0] for row in found})[:limit]
    return [row for row in found if names and row[0] <= names[-1]]


def add_queues(transaction: SqliteTransaction, used: Iterable[tuple[str, str]]) -> None:
    """`used`: each queue with a tenant that stores jobs under it."""
    pairs = set(used)
    transaction.change_many("add_queues", [(queue,) for queue in {queue for queue, _ in pairs}])
    transaction.change_many("add_queue_tenants", [(tenant, queue) for queue, tenant in pairs])


def set_queue(transaction: SqliteTransaction, queue: Queue) -> None:
    count, period = (None, None) if queue.rate is None else queue.rate
    transaction.change(
        "set_queue",
        (queue.name, queue.paused, queue.pause_note, queue.paused_at, queue.max_running, count, period),
    )
    transaction.tell([JobHint("*", 0, 0)])


class QueueLimits:
    """Queues that are paused or limited, and how much of them is in use."""

    def __init__(self, session: SqliteSession, now: Micros) -> None:
        self._now = now
        uses = [
            QueueUse(_queue_of(row[:7]), running, spent)
            for *row, spent, running in session.all("restricted_queues")
        ]
        self.paused = {use.queue.name for use in uses if use.queue.paused}
        self.in_use = {use.queue.name: use for use in uses if not use.queue.paused}
        self.vacancies = {name: use.vacancies(now) or 0 for name, use in self.in_use.items()}

    def next_start(self, session: SqliteSession, request: ClaimRequest) -> Micros | None:
        """When a rate allows the next start of a job that is due."""
        instants = ((name, self._free_at(use)) for name, use in self.in_use.items())
        held_up = [
            instant
            for name, instant in instants
            if instant is not None and self._any_due(session, request, name)
        ]
        return min(held_up, default=None)

    def _free_at(self, use: QueueUse) -> Micros | None:
        """When its rate allows the next start, if that is later, or so recent that the last claim came too
        early."""
        if use.queue.rate is None:
            return None
        instant = use.queue.rate.free_at(use.spent_until)
        return instant if instant > self._now - (JUST_NOW if self.vacancies[use.queue.name] else 0) else None

    def _any_due(self, session: SqliteSession, request: ClaimRequest, queue: str) -> bool:
        lanes = [lane for lane in request.lanes if lane.queue == queue]
        due_at: Micros | None = session.value("next_due", (text_of(lanes), text_of(request.targets), -1, -1))
        return due_at is not None and due_at <= self._now


def _queue_of(row: Sequence[Any], counts: QueueCounts | None = None) -> Queue:
    name, paused, note, paused_at, max_running, count, period = row
    return Queue(name, paused == 1, note, paused_at, max_running, rate_of(count, period), counts)
