"""The settler: writes decisions in batches. What finished while the last batch was on its way goes next; no timer, no minimum."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from duetime.engine.failpoint import failpoint
from duetime.engine.worker import Worker
from duetime.errors import StoreFull, StoreUnavailable
from duetime.model.attempt import error_text
from duetime.model.events import AttemptsSettled, SettlementsRefused
from duetime.model.hint import JobHint
from duetime.model.instant import Micros
from duetime.model.job import Claimed
from duetime.model.settle import Settlement
from duetime.observer import Observers
from duetime.store import Store

BATCH = 2_000


class Settler:
    name = "settler"

    def __init__(self, store: Store, worker: Worker, observers: Observers, on_settled: Callable[[list[UUID]], None]) -> None:
        self._store = store
        self._worker = worker
        self._observers = observers
        self._on_settled = on_settled
        self._ready = False

    async def run_once(self) -> Micros | None:
        if not self._ready:
            await self._store.settle([])  # connects, so that the first results need not wait for it
            self._ready = True
        batch = self._worker.done[:BATCH]
        if not batch:
            return None
        failpoint("worker.before_settle")
        began = self._worker.monotonic()
        refused = await self._write(batch)
        lapse = self._worker.monotonic() - began
        failpoint("worker.after_settle")
        # Only now: a turn that failed is repeated with the same settlements, which the store takes once.
        jobs = self._worker.ended[: len(batch)]
        del self._worker.done[: len(batch)], self._worker.ended[: len(batch)]
        self._worker.held -= len(batch)
        self._report(batch, jobs, refused, lapse)
        await self._hint()
        return 0 if self._worker.done else None

    async def _write(self, batch: list[Settlement]) -> list[UUID]:
        """Answers those that were refused. What the store cannot write at all must not hold up the others: it is found by halving, and
        written without what its task gave us."""
        try:
            return await self._store.settle(batch)
        except (StoreUnavailable, StoreFull):
            raise
        except Exception as problem:
            if len(batch) == 1:
                return await self._store.settle([_in_our_words(batch[0], problem)])
            middle = len(batch) // 2
            return await self._write(batch[:middle]) + await self._write(batch[middle:])

    def _report(self, batch: list[Settlement], jobs: list[Claimed], refused: list[UUID], lapse: Micros) -> None:
        settled = [settlement.id for settlement in batch]
        if refused:
            self._observers(SettlementsRefused(tuple(refused)))
            late = set(refused)
            jobs = [job for job, one in zip(jobs, batch, strict=True) if one.id not in late]
            batch = [one for one in batch if one.id not in late]
        self._observers(AttemptsSettled(batch, jobs, lapse))
        self._on_settled(settled)

    async def _hint(self) -> None:
        """After the settlements are written, whichever they were: a hint too many is only a look too many."""
        if self._worker.hints:
            hints, self._worker.hints = self._worker.hints, {}
            await self._store.hint([JobHint(queue, priority, due_at) for (queue, priority), due_at in hints.items()])


def _in_our_words(settlement: Settlement, problem: Exception) -> Settlement:
    error = f"it ended as {settlement.ending}, but what it said cannot be stored ({error_text(repr(problem))})"
    return settlement._replace(result=None, error=error)
