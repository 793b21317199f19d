"""What limits are measured by: the running jobs of each limit key and queue, and until when their starts are
paid for."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from duetime.model.instant import SECOND, Micros
from duetime.model.limit import UNLIMITED, Queue, TaskLimit
from duetime.model.permits import KeyUse, QueueUse
from duetime.model.stored import LimitKeyRow, QueueRow
from duetime.stores.memory.row import Row


class Limits:
    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}  # every queue that a job was ever stored under or that was set
        self.used_by: set[tuple[str, str]] = set()  # queue and tenant
        self.by_target: dict[str, TaskLimit] = {}
        self._permits: dict[str, Counter[UUID | None]] = {}  # by limit key: the permits of its running jobs
        self._rates: dict[str, KeyUse] = {}  # by limit key
        self._running: Counter[str] = Counter()  # by queue
        self._queue_spent: dict[str, Micros] = {}

    def know(self, queue: str, tenant: str) -> None:
        if (queue, tenant) not in self.used_by:
            self.used_by.add((queue, tenant))
            self.queues.setdefault(queue, Queue(queue))

    def begin(self, row: Row) -> None:
        self._running[row.draft.queue] += 1
        if row.draft.limit_key is not None:
            self._permits.setdefault(row.draft.limit_key, Counter())[row.permit] += 1

    def end(self, row: Row) -> None:
        self._running[row.draft.queue] -= 1
        if row.draft.limit_key is not None:
            permits = self._permits[row.draft.limit_key]
            permits[row.permit] -= 1
            if not permits[row.permit]:
                del permits[row.permit]

    def queue_rows(self) -> list[QueueRow]:
        tenants: dict[str, list[str]] = {}
        for queue, tenant in sorted(self.used_by):
            tenants.setdefault(queue, []).append(tenant)
        return [
            QueueRow(queue, tuple(tenants.get(name, ())), self._queue_spent.get(name, 0))
            for name, queue in self.queues.items()
        ]

    def restore_queue(self, row: QueueRow) -> None:
        self.queues[row.queue.name] = row.queue
        self.used_by |= {(row.queue.name, tenant) for tenant in row.tenants}
        self._queue_spent[row.queue.name] = row.spent_until

    def remove_queue(self, name: str) -> None:
        del self.queues[name]
        self.used_by = {(queue, tenant) for queue, tenant in self.used_by if queue != name}

    def key_rows(self) -> list[LimitKeyRow]:
        return [LimitKeyRow(name, use._replace(permits=0)) for name, use in self._rates.items()]

    def restore_key(self, row: LimitKeyRow) -> None:
        self._rates[row.name] = row.use

    def remove_key(self, name: str) -> None:
        del self._rates[name]

    def may_pass_on(self, row: Row) -> bool:
        """Whether the permit of a job that has ended goes to the next: the limit counts jobs, and is not
        exceeded."""
        key, limit = row.draft.limit_key, self.by_target.get(row.draft.target, UNLIMITED)
        if key is None or limit.max_running is None:
            return False
        permits = self._permits.get(key, Counter())
        return row.permit in permits or len(permits) < limit.max_running

    def paused(self, queue: str) -> bool:
        return queue in self.queues and self.queues[queue].paused

    def key_use(self, key: str) -> KeyUse:
        return self._rates.get(key, KeyUse())._replace(permits=len(self._permits.get(key, ())))

    def queue_use(self, name: str) -> QueueUse | None:
        """Only of a queue with limits of its own."""
        queue = self.queues.get(name)
        if queue is None or (queue.max_running is None and queue.rate is None):
            return None
        return QueueUse(queue, self._running[name], self._queue_spent.get(name, 0))

    def spend(self, keys: dict[str, KeyUse], queues: dict[str, Micros]) -> None:
        self._rates.update(keys)
        self._queue_spent.update(queues)

    def free_at(self, name: str, now: Micros) -> Micros | None:
        """When the rate of a queue allows the next start; None when it does now."""
        use = self.queue_use(name)
        rate = None if use is None else use.queue.rate
        return (
            None
            if use is None or rate is None or rate.allowed(use.spent_until, now)
            else rate.free_at(use.spent_until)
        )

    def forget_idle(self, now: Micros) -> None:
        """Starts paid for long ago limit nothing."""
        self._rates = {
            key: use
            for key, use in self._rates.items()
            if max(use.spent_until, use.asks_at, use.served_at + SECOND) > now
        }
        self._permits = {key: permits for key, permits in self._permits.items() if permits}
