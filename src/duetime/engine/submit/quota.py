"""Quotas: how many queues a tenant may use, and how many of its jobs may be pending. Checked before jobs are
stored; submissions at the same instant may exceed a bound by a few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from duetime.clock import Clock
from duetime.errors import InvalidInput, QuotaExceeded
from duetime.model.instant import SECOND, Micros
from duetime.model.job import JobDraft, JobFilter, State
from duetime.model.limit import QueueFilter, Quotas
from duetime.store import Store

Scope = tuple[str, str | None]  # a tenant, and a queue or all its queues
PENDING = frozenset({State.PENDING})
COUNT_INTERVAL = SECOND  # between two counts of pending jobs; what is submitted here meanwhile is added
MIN_COUNT_INTERVAL = SECOND // 10  # the same when the bound is reached


class QuotaCheck:
    def __init__(self, store: Store, clock: Clock) -> None:
        self.quotas = Quotas()
        self._store = store
        self._clock = clock
        self._queues: set[tuple[str, str]] = set()  # tenant and queue: known to be in use
        self._counts: dict[Scope, tuple[Micros, int]] = {}

    async def check(self, drafts: Sequence[JobDraft]) -> None:
        used = {(draft.tenant, draft.queue) for draft in drafts}
        if not used <= self._queues:
            for tenant in {tenant for tenant, _ in used - self._queues}:
                await self._check_queues(tenant, {queue for owner, queue in used if owner == tenant})
        if self.quotas.pending is not None or self.quotas.pending_per_queue is not None:
            await self._check_pending(drafts)

    async def _check_queues(self, tenant: str, names: set[str]) -> None:
        bound = self.quotas.queues
        if bound is not None:
            known = await self._store.queues(wanted=QueueFilter(tenant=tenant, limit=bound + 1))
            if len(names | {queue.name for queue in known}) > max(bound, len(known)):
                raise InvalidInput(
                    "queue", f"tenant {tenant!r} uses {len(known):,} of {bound:,} queues: use one of these"
                )
        self._queues.update((tenant, name) for name in names)

    async def _check_pending(self, drafts: Sequence[JobDraft]) -> None:
        _, per_tenant, per_queue = self.quotas
        added: Counter[Scope] = Counter()
        if per_tenant is not None:
            added.update((draft.tenant, None) for draft in drafts)
        if per_queue is not None:
            added.update((draft.tenant, draft.queue) for draft in drafts)
        for scope, number in added.items():
            bound = per_tenant if scope[1] is None else per_queue
            await self._check_scope(scope, number, bound or 0)
        for scope, number in added.items():
            counted_at, count = self._counts[scope]
            self._counts[scope] = counted_at, count + number

    async def _check_scope(self, scope: Scope, number: int, bound: int) -> None:
        tenant, queue = scope
        now = self._clock.monotonic()
        counted_at, count = self._counts.get(scope, (now - COUNT_INTERVAL, 0))
        if now - counted_at >= (MIN_COUNT_INTERVAL if count + number > bound else COUNT_INTERVAL):
            count = await self._store.count_jobs(JobFilter(tenant, PENDING, queue=queue), bound + 1)
            self._counts[scope] = now, count
        if count + number > bound:
            where = "" if queue is None else f" in queue {queue!r}"
            raise QuotaExceeded(
                f"tenant {tenant!r} may have {bound:,} pending jobs{where}: wait until some have run, "
                "or cancel some"
            )
