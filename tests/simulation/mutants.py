"""Deliberately broken variants of the engine and the store. Each is a mistake somebody could make; the checker must see every one."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import Context as Variables
from dataclasses import replace
from itertools import count
from typing import Any
from unittest.mock import patch
from uuid import UUID

from duetime.clock import Follower
from duetime.engine import claimer, planner
from duetime.engine.claimer import Claimer, Sweeper
from duetime.engine.heart import Heart, InlineHeart
from duetime.engine.loop import Loop
from duetime.engine.reaper import Reaper
from duetime.engine.settler import Settler
from duetime.engine.submitter import Submitter
from duetime.engine.worker import Worker
from duetime.errors import StoreError
from duetime.model import schedule as schedule_model
from duetime.model.attempt import Ending
from duetime.model.ids import Ids
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed, JobDraft
from duetime.model.lease import NodeDraft
from duetime.model.schedule import Firing, Schedule
from duetime.model.settle import Settlement
from duetime.stores.memory.jobs import Jobs
from duetime.stores.memory.nodes import Nodes
from duetime.stores.memory.row import Row
from duetime.stores.memory.schedules import Schedules
from duetime.stores.memory.settling import write
from duetime.stores.memory.store import MemoryStore
from duetime.testing.simulation.loop import current_process

Mutant = Callable[[], AbstractContextManager[Any]]
MUTANTS: dict[str, tuple[Mutant, set[str]]] = {}


def mutant(*invariants: str) -> Callable[[Mutant], Mutant]:
    """Registers a variant with the invariants that may be the first to break."""

    def register(make: Mutant) -> Mutant:
        MUTANTS[make.__name__] = (make, set(invariants))
        return make

    return register


# -- the store --------------------------------------------------------------------------------------------------------
def _settling_without_check(believed: Callable[[Settlement], bool]) -> AbstractContextManager[Any]:
    honest = MemoryStore.settle

    async def settle(self: MemoryStore, settlements: Sequence[Settlement]) -> list[UUID]:
        for decision in settlements:
            row = self._jobs.live.get(decision.id)
            if row is not None and believed(decision):
                write(self._jobs, row, decision)
        return await honest(self, [decision for decision in settlements if not believed(decision)])

    return patch.object(MemoryStore, "settle", settle)


@mutant("I6", "I3")
def settle_without_attempt_check() -> AbstractContextManager[Any]:
    return _settling_without_check(lambda decision: True)


@mutant("I6", "I3", "I7")
def reaper_without_compare_and_set() -> AbstractContextManager[Any]:
    return _settling_without_check(lambda decision: decision.ending is Ending.LOST)


@mutant("I5")
def attempt_not_incremented() -> AbstractContextManager[Any]:
    honest = Jobs.start

    def start(self: Jobs, row: Row, *rest: Any) -> None:
        honest(self, row, *rest)
        row.attempt = max(1, row.attempt - 1)

    return patch.object(Jobs, "start", start)


@mutant("I7")
def claim_ignores_the_node_lease() -> AbstractContextManager[Any]:
    return patch.object(Nodes, "may_claim", lambda self, node, now: True)


@mutant("I7")
def leases_are_taken_from_the_living() -> AbstractContextManager[Any]:
    def take(self: Nodes, node: Any, names: Sequence[str]) -> list[str]:
        self.drop(next(iter(self._members)), names)
        return honest(self, node, names)

    honest = Nodes.take
    return patch.object(Nodes, "take", take)


@mutant("I10")
def cursor_moved_outside_the_transaction() -> AbstractContextManager[Any]:
    """The rows follow in a second transaction, which a crash may prevent."""
    honest = MemoryStore.fire

    async def fire(self: MemoryStore, firings: Sequence[Firing]) -> int:
        return await honest(self, [replace(firing, fires=()) for firing in firings])

    return patch.object(MemoryStore, "fire", fire)


@mutant("I11", "I3", "I10", "B5")
def fire_without_cursor_check() -> AbstractContextManager[Any]:
    honest = Schedules.fire

    def fire(self: Schedules, firing: Firing, now: Micros) -> Any:
        schedule = self._by_id.get(firing.schedule_id)
        if schedule is None:
            return None
        return honest(self, replace(firing, version=schedule.version, cursor=schedule.next_fire_time), now)  # type: ignore[arg-type]  # broken

    return patch.object(Schedules, "fire", fire)


@contextmanager
def _random_fire_ids() -> Iterator[None]:
    """The planner's own guard goes too: with it, ids alone are never needed."""
    numbers, honest = count(), schedule_model.plan_fires

    def fire_id(schedule_id: UUID, fire_time: Micros) -> UUID:
        digest = hashlib.blake2b(f"{schedule_id}{next(numbers)}".encode()).digest()
        return Ids(lambda size: digest[:size]).new(fire_time)

    def plan_fires(schedule: Schedule, now: Micros, horizon: Micros) -> Firing:
        return honest(replace(schedule, last_fire_time=None), now, horizon)

    with patch.object(schedule_model, "fire_id", fire_id), patch.object(planner, "plan_fires", plan_fires):
        yield


@mutant("I3")
def fire_ids_are_random() -> AbstractContextManager[Any]:
    return _random_fire_ids()


@mutant("I-6")
def overlap_checked_in_memory_only() -> AbstractContextManager[Any]:
    return patch.object(Jobs, "in_the_way", lambda self, row: None)


@mutant("I11")
def edit_does_not_withdraw() -> AbstractContextManager[Any]:
    return patch.object(Schedules, "_withdrawn", lambda self, schedule, now: schedule)


@mutant("I9")
def retry_counter_in_memory_only() -> AbstractContextManager[Any]:
    honest = Jobs.put_back

    def put_back(self: Jobs, row: Row, decision: Settlement) -> None:
        honest(self, row, decision)
        row.failures = 0

    return patch.object(Jobs, "put_back", put_back)


@mutant("I15")
def unique_key_ignored() -> AbstractContextManager[Any]:
    return patch.object(Jobs, "holder", lambda self, tenant, unique_key: None)


@mutant("I7", "I12")
def buried_before_the_lease_ends() -> AbstractContextManager[Any]:
    honest = Nodes.bury
    return patch.object(Nodes, "bury", lambda self, me, now: honest(self, me, now + SECOND))


# -- the engine -------------------------------------------------------------------------------------------------------
@mutant("I8")
def no_reaper() -> AbstractContextManager[Any]:
    async def run_once(self: Reaper) -> Micros:
        return SECOND

    return patch.object(Reaper, "run_once", run_once)


@mutant("I7", "I12")
def no_heartbeat() -> AbstractContextManager[Any]:
    async def run_once(self: Heart) -> Micros:
        return SECOND

    return patch.object(Heart, "run_once", run_once)


@mutant("I8")
def heartbeat_outlives_its_worker() -> AbstractContextManager[Any]:
    async def start(self: InlineHeart, draft: NodeDraft, ttl: Micros, listener: Any) -> Heart:
        self._node = await self._store.join(draft, ttl)
        heart = Heart(self._store, self._clock, self._node, ttl, listener, self._clock.monotonic())
        self._loop = Loop(heart, self._clock, self._observers)
        process = current_process()
        assert process is not None
        asyncio.get_running_loop().create_task(_beat_forever(self._store, self._node, ttl), context=Variables())
        self._task = asyncio.create_task(self._loop.run())
        return heart

    return patch.object(InlineHeart, "start", start)


async def _beat_forever(store: Any, node: Any, ttl: Micros) -> None:
    wire, inner = store._wire, store._store
    while True:
        await asyncio.sleep(ttl / SECOND / 5)
        if not wire._backend.down:
            wire._backend.execute(inner.beat, None, node, ttl)


@mutant("I7")
def no_self_fencing() -> AbstractContextManager[Any]:
    return patch.object(Heart, "trusted", lambda self: True)


@mutant("I4")
def local_wall_clock_instead_of_the_store() -> AbstractContextManager[Any]:
    honest = Follower.at
    skews: dict[int, Micros] = {}

    def at(self: Follower, monotonic: Micros) -> Micros:
        return honest(self, monotonic) + skews.setdefault(id(self), (len(skews) % 3 - 1) * SECOND // 10)

    return patch.object(Follower, "at", at)


@mutant("I4")
def claimed_ahead_and_started_at_once() -> AbstractContextManager[Any]:
    honest = Worker.take

    def take(self: Worker, jobs: list[Claimed], **how: bool) -> None:
        honest(self, [job._replace(due_at=0) for job in jobs], **how)

    return patch.object(Worker, "take", take)


@mutant("I10")
def missed_fires_skipped_silently() -> AbstractContextManager[Any]:
    honest = schedule_model.plan_fires

    def plan_fires(schedule: Schedule, now: Micros, horizon: Micros) -> Firing:
        firing = honest(schedule, now, horizon)
        return replace(firing, fires=tuple(fire for fire in firing.fires if fire.fire_time > now - SECOND))

    return patch.object(planner, "plan_fires", plan_fires)


@mutant("I1")
def acknowledged_before_the_commit() -> AbstractContextManager[Any]:
    async def submit(self: Submitter, drafts: Sequence[JobDraft]) -> list[UUID]:
        self._flushing = asyncio.get_running_loop().create_task(_store_later(self._store, drafts))
        return [draft.id for draft in drafts]

    return patch.object(Submitter, "submit", submit)


async def _store_later(store: Any, drafts: Sequence[JobDraft]) -> None:
    try:
        await store.add_jobs(drafts)
    except StoreError:
        return


@mutant("I8", "I2")
def settlement_dropped_when_its_reply_is_lost() -> AbstractContextManager[Any]:
    honest = Settler.run_once

    async def run_once(self: Settler) -> Micros | None:
        batch = len(self._worker.done)
        try:
            return await honest(self)
        except StoreError:
            del self._worker.done[:batch]
            self._worker.held -= batch
            raise

    return patch.object(Settler, "run_once", run_once)


@contextmanager
def _rerunning() -> Iterator[None]:
    jobs: dict[tuple[UUID, int], Claimed] = {}
    honest_take, honest_run = Worker.take, Settler.run_once

    def take(self: Worker, claimed: list[Claimed], **how: bool) -> None:
        jobs.update({(job.id, job.attempt): job for job in claimed})
        honest_take(self, claimed, **how)

    async def run_once(self: Settler) -> Micros | None:
        batch = list(self._worker.done)
        try:
            return await honest_run(self)
        except StoreError:
            del self._worker.done[: len(batch)]
            self._worker._ready.extend(jobs[decision.id, decision.attempt] for decision in batch)
            self._worker._tick()
            raise

    with patch.object(Worker, "take", take), patch.object(Settler, "run_once", run_once):
        yield


@mutant("I5", "I8")  # in a worker that closes, what is to run again never does
def run_again_when_the_reply_to_a_settlement_is_lost() -> AbstractContextManager[Any]:
    return _rerunning()


@contextmanager
def _hints_only() -> Iterator[None]:
    async def never(self: Sweeper) -> Micros:
        return 3_600 * SECOND

    async def until_next(self: Claimer, look_at: Micros, only: object, began: Micros) -> Micros:
        self.wake_at = 1 << 62
        return 3_600 * SECOND

    with patch.object(Sweeper, "run_once", never), patch.object(Claimer, "_until_next", until_next):
        yield


@mutant("I2", "I8")
def hints_only_no_poll() -> AbstractContextManager[Any]:
    return _hints_only()


@mutant("I8", "I2")
def below_the_low_bound_never_swept() -> AbstractContextManager[Any]:
    async def run_once(self: Sweeper) -> Micros:
        return SECOND

    return patch.object(Sweeper, "run_once", run_once)


@mutant("I8")
def lost_claim_replies_forgotten() -> AbstractContextManager[Any]:
    async def recall(self: Claimer, since: int) -> None:
        self._worker.doubtful_since = None

    return patch.object(Claimer, "_recall", recall)


@mutant("I8")
def lost_claims_asked_about_once() -> AbstractContextManager[Any]:
    """The claim may be carried out after that."""
    return patch.object(claimer, "IN_DOUBT", -1)


@mutant("I8")
def slots_leak() -> AbstractContextManager[Any]:
    honest = Worker._finish_unstarted

    def finish(self: Worker, job: Claimed, outcome: Any) -> None:
        self.held += 1
        honest(self, job, outcome)

    return patch.object(Worker, "_finish_unstarted", finish)


@mutant("I4")
def prefetch_of_a_minute() -> AbstractContextManager[Any]:
    return patch.object(claimer, "PREFETCH", 60 * SECOND)


@mutant("I12", "I9")
def at_most_once_forgotten_by_the_reaper() -> AbstractContextManager[Any]:
    honest = Reaper._lost
    return patch.object(Reaper, "_lost", lambda self, job: honest(self, job._replace(policies=None)))


__all__ = ["MUTANTS"]
