"""The settler: writes settlements in batches. What ended while the last batch was under way goes next; no
timer, no minimum."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from duetime.engine.failpoint import failpoint
from duetime.engine.run.outbox import Outbox
from duetime.engine.run.worker import Worker, needs_permit
from duetime.errors import StoreFull, StoreUnavailable
from duetime.model.events import AttemptsSettled, SettlementsRefused
from duetime.model.instant import Micros
from duetime.model.job import Claimed, error_text
from duetime.model.settle import Settlement
from duetime.observer import Observers
from duetime.store import Settled, Store, Successors

BATCH = 2_000
RECENT = 8  # settlements that make up most of the average


class Settler:
    name = "settler"

    def __init__(
        self,
        store: Store,
        worker: Worker,
        outbox: Outbox,
        observers: Observers,
        on_settled: Callable[[list[UUID]], None],
        takes: Callable[[], Successors],
    ) -> None:
        self._store = store
        self._worker = worker
        self._capacity = worker.capacity
        self._outbox = outbox
        self._observers = observers
        self._on_settled = on_settled
        self._takes = takes  # what this node can run
        self._connected = False
        self._settle_time = 0.0  # microseconds, average of recent ones

    async def run_once(self) -> Micros | None:
        if not self._connected:
            await self._store.settle([])  # connects, so that the first results need not wait for it
            self._connected = True
        batch, jobs = self._outbox.batch(BATCH)
        if not batch:
            return None
        failpoint("worker.before_settle")
        began = self._capacity.monotonic()
        wanted = self._successors(jobs)
        self._capacity.passing_on = wanted is not None and wanted.room > 0
        try:
            refused, successors = await self._write(batch, wanted)
        finally:
            self._capacity.passing_on = False
        lapse = self._capacity.monotonic() - began
        self._settle_time += (lapse - self._settle_time) / RECENT
        failpoint("worker.after_settle")
        # Only now: a turn that failed is repeated with the same settlements, which the store takes once.
        self._outbox.written(len(batch))
        self._capacity.release(jobs)
        self._worker.take_successors(successors)
        self._report(batch, jobs, refused, lapse)
        if hints := self._outbox.take_hints():
            await self._store.hint(
                hints
            )  # after the settlements are written: one hint too many is only a look too many
        return 0 if len(self._outbox) else None

    def _successors(self, jobs: list[Claimed]) -> Successors | None:
        """This node takes the next jobs, unless it closes or more are due than it has room for: then any node
        claims them."""
        if not any(map(needs_permit, jobs)):
            return None
        takes = self._takes()
        if self._worker.gives_way():
            return Successors(takes.node, 0, takes.queues, takes.targets)
        wanted = self._worker.chains.wanted(jobs, self._settle_time)
        return Successors(takes.node, sum(wanted.values()), takes.queues, takes.targets, wanted)

    async def _write(self, batch: list[Settlement], successors: Successors | None) -> Settled:
        """What the store cannot write at all must not hold up the others: it is found by halving, and written
        without the task's result."""
        try:
            return await self._store.settle(batch, successors)
        except (StoreUnavailable, StoreFull):
            if successors is not None and successors.room:
                self._capacity.lost_reply_at = (
                    self._capacity.monotonic()
                )  # successors may have been in the reply
            raise
        except Exception as problem:
            if len(batch) == 1:
                return await self._store.settle([_without_result(batch[0], problem)], successors)
            middle = len(batch) // 2
            first, second = (
                await self._write(batch[:middle], successors),
                await self._write(batch[middle:], None),
            )
            return Settled(first.refused + second.refused, first.successors + second.successors)

    def _report(
        self, batch: list[Settlement], jobs: list[Claimed], refused: list[UUID], lapse: Micros
    ) -> None:
        settled = [settlement.id for settlement in batch]
        if refused:
            self._observers(SettlementsRefused(tuple(refused)))
            late = set(refused)
            jobs = [job for job, one in zip(jobs, batch, strict=True) if one.id not in late]
            batch = [one for one in batch if one.id not in late]
        self._observers(AttemptsSettled(batch, jobs, lapse))
        self._on_settled(settled)


def _without_result(settlement: Settlement, problem: Exception) -> Settlement:
    error = f"it ended as {settlement.ending}, but its result cannot be stored ({error_text(repr(problem))})"
    return settlement._replace(result=None, error=error)
