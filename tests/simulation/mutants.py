"""Deliberately broken variants of the engine and the store. Each is a plausible mistake, and the checker must
find it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import Context as Variables
from dataclasses import replace
from itertools import count
from typing import Any
from unittest.mock import patch
from uuid import UUID

from duetime.clock import Follower
from duetime.engine.fetch import claimer
from duetime.engine.fetch.claimer import Claimer
from duetime.engine.fetch.sweeper import Sweeper
from duetime.engine.group_commit import GroupCommit
from duetime.engine.node.heartbeat import Heartbeat
from duetime.engine.node.reaper import Reaper
from duetime.engine.plan import leases, planner
from duetime.engine.run.settler import Settler
from duetime.engine.run.start_check import StartCheck
from duetime.engine.run.worker import Worker
from duetime.errors import StoreError
from duetime.model import schedule as schedule_model
from duetime.model.ids import Ids
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed, Ending, JobDraft
from duetime.model.lease import NodeDraft, NodeId, share_leases
from duetime.model.schedule import Firing, Schedule
from duetime.model.settle import Settlement
from duetime.stores.memory.jobs import MemoryJobs
from duetime.stores.memory.nodes import MemoryNodes
from duetime.stores.memory.row import Row
from duetime.stores.memory.schedules import MemorySchedules
from duetime.stores.memory.settle import MemorySettle
from duetime.stores.memory.store import MemoryStore
from duetime.testing.simulation.invariants.verdict import Invariant

Mutant = Callable[[], AbstractContextManager[Any]]
MUTANTS: dict[str, tuple[Mutant, set[Invariant], int]] = {}


def mutant(*invariants: Invariant, first_seed: int = 0) -> Callable[[Mutant], Mutant]:
    """Registers a variant with the invariants that may be the first to break. `first_seed` saves the search
    for a variant that few seeds find."""

    def register(make: Mutant) -> Mutant:
        MUTANTS[make.__name__] = (make, set(invariants), first_seed)
        return make

    return register


# -- the store -------------------------------------------------------------------------------------------
def _settling_without_check(is_trusted: Callable[[Settlement], bool]) -> AbstractContextManager[Any]:
    original = MemorySettle.write

    def write(self: MemorySettle, decision: Settlement) -> None:
        row = self._jobs.live.get(decision.id)
        if is_trusted(decision) and row is not None:
            self._end(row, decision)
        else:
            original(self, decision)

    return patch.object(MemorySettle, "write", write)


@mutant(Invariant.FENCING, Invariant.SINGLE_OUTCOME)
def settle_without_attempt_check() -> AbstractContextManager[Any]:
    return _settling_without_check(lambda decision: True)


@mutant(Invariant.FENCING, Invariant.SINGLE_OUTCOME, Invariant.LEASES, first_seed=20)
def reaper_without_compare_and_set() -> AbstractContextManager[Any]:
    return _settling_without_check(lambda decision: decision.ending is Ending.LOST)


@mutant(Invariant.SINGLE_CLAIM)
def attempt_not_incremented() -> AbstractContextManager[Any]:
    original = MemoryJobs.start

    def start(self: MemoryJobs, row: Row, *rest: Any) -> None:
        original(self, row, *rest)
        row.attempt = max(1, row.attempt - 1)

    return patch.object(MemoryJobs, "start", start)


@mutant(Invariant.LEASES)
def claim_ignores_the_node_lease() -> AbstractContextManager[Any]:
    return patch.object(MemoryNodes, "may_claim", lambda self, node, now: True)


@mutant(Invariant.LEASES)
def leases_are_taken_from_living_nodes() -> AbstractContextManager[Any]:
    def share(known: Any, node: NodeId, wanted: Any, living: Any) -> Any:
        return share_leases(known, node, wanted, {node})

    return patch.object(leases, "share_leases", share)


@mutant(Invariant.FIRES_COMPLETE)
def cursor_moved_outside_the_transaction() -> AbstractContextManager[Any]:
    """The rows are added in a second transaction, which a crash may prevent."""
    original = MemoryStore.fire

    async def fire(self: MemoryStore, firings: Sequence[Firing]) -> int:
        return await original(self, [replace(firing, fires=()) for firing in firings])

    return patch.object(MemoryStore, "fire", fire)


@mutant(
    Invariant.ONLY_EXPECTED_WORK,
    Invariant.SINGLE_OUTCOME,
    Invariant.FIRES_COMPLETE,
    Invariant.FIRE_COMPARE_AND_SET,
)
def fire_without_cursor_check() -> AbstractContextManager[Any]:
    original = MemorySchedules.fire

    def fire(self: MemorySchedules, firing: Firing, now: Micros) -> Any:
        schedule = self._by_id.get(firing.schedule_id)
        if schedule is None:
            return None
        return original(self, replace(firing, version=schedule.version, cursor=schedule.next_fire_time), now)  # type: ignore[arg-type]  # broken

    return patch.object(MemorySchedules, "fire", fire)


@contextmanager
def _random_fire_ids() -> Iterator[None]:
    """Removes the planner's own guard as well, which would hide the mistake."""
    numbers, original = count(), schedule_model.plan_fires

    def fire_id(schedule_id: UUID, fire_time: Micros) -> UUID:
        digest = hashlib.blake2b(f"{schedule_id}{next(numbers)}".encode()).digest()
        return Ids(lambda size: digest[:size]).new(fire_time)

    def plan_fires(schedule: Schedule, now: Micros, horizon: Micros) -> Firing:
        return original(replace(schedule, last_fire_time=None), now, horizon)

    with patch.object(schedule_model, "fire_id", fire_id), patch.object(planner, "plan_fires", plan_fires):
        yield


# The second job of a fire may be late.
@mutant(Invariant.SINGLE_OUTCOME, Invariant.FIRES_COMPLETE, first_seed=108)
def fire_ids_are_random() -> AbstractContextManager[Any]:
    return _random_fire_ids()


@mutant(Invariant.OVERLAP)
def overlap_checked_in_memory_only() -> AbstractContextManager[Any]:
    return patch.object(MemoryJobs, "rival_of", lambda self, row: None)


@mutant(Invariant.ONLY_EXPECTED_WORK)
def edit_does_not_withdraw() -> AbstractContextManager[Any]:
    return patch.object(MemorySchedules, "_withdrawn", lambda self, schedule, now: schedule)


@mutant(Invariant.ACCOUNTING)
def retry_counter_in_memory_only() -> AbstractContextManager[Any]:
    original = MemoryJobs.put_back

    def put_back(self: MemoryJobs, row: Row, decision: Settlement) -> None:
        original(self, row, decision)
        row.failures = 0

    return patch.object(MemoryJobs, "put_back", put_back)


@mutant(Invariant.UNIQUE_KEYS, first_seed=5)
def unique_key_ignored() -> AbstractContextManager[Any]:
    return patch.object(MemoryJobs, "holder", lambda self, tenant, unique_key: None)


@mutant(Invariant.LEASES, Invariant.JUSTIFIED_EXPIRY)
def node_expired_before_its_lease() -> AbstractContextManager[Any]:
    original = MemoryNodes.expire
    return patch.object(MemoryNodes, "expire", lambda self, me, now: original(self, me, now + SECOND))


# -- the engine ------------------------------------------------------------------------------------------
@mutant(Invariant.LIVENESS)
def no_reaper() -> AbstractContextManager[Any]:
    async def run_once(self: Reaper) -> Micros:
        return SECOND

    return patch.object(Reaper, "run_once", run_once)


@mutant(Invariant.LEASES, Invariant.JUSTIFIED_EXPIRY)
def no_heartbeat() -> AbstractContextManager[Any]:
    async def run_once(self: Heartbeat) -> Micros:
        return SECOND

    return patch.object(Heartbeat, "run_once", run_once)


@mutant(Invariant.LIVENESS)
def heartbeat_outlives_its_worker() -> AbstractContextManager[Any]:
    original = Heartbeat._begin

    async def begin(self: Heartbeat, draft: NodeDraft) -> None:
        await original(self, draft)
        beating = _beat_forever(self._store, self.node, self._ttl)
        asyncio.get_running_loop().create_task(beating, context=Variables())

    return patch.object(Heartbeat, "_begin", begin)


async def _beat_forever(store: Any, node: Any, ttl: Micros) -> None:
    link, inner = store._link, store._store
    while True:
        await asyncio.sleep(ttl / SECOND / 5)
        if not link._backend.down:
            link._backend.execute(inner.beat, None, node, ttl)


@mutant(Invariant.LEASES, first_seed=17)
def no_self_fencing() -> AbstractContextManager[Any]:
    return patch.object(Heartbeat, "trusted", lambda self: True)


@mutant(Invariant.NEVER_EARLY, Invariant.FIRES_COMPLETE)  # a client whose clock is ahead misses a fire
def local_wall_clock_instead_of_the_store() -> AbstractContextManager[Any]:
    original = Follower.at
    skews: dict[int, Micros] = {}

    def at(self: Follower, monotonic: Micros) -> Micros:
        return original(self, monotonic) + skews.setdefault(id(self), (len(skews) % 3 - 1) * SECOND // 10)

    return patch.object(Follower, "at", at)


@mutant(Invariant.NEVER_EARLY)
def claimed_early_and_started_immediately() -> AbstractContextManager[Any]:
    original = Worker.take

    def take(self: Worker, jobs: list[Claimed], lapse: Micros = 0, *, passing: bool = False) -> None:
        original(self, [job._replace(due_at=0) for job in jobs], lapse, passing=passing)

    return patch.object(Worker, "take", take)


@mutant(Invariant.FIRES_COMPLETE)
def missed_fires_skipped_silently() -> AbstractContextManager[Any]:
    original = schedule_model.plan_fires

    def plan_fires(schedule: Schedule, now: Micros, horizon: Micros) -> Firing:
        firing = original(schedule, now, horizon)
        return replace(firing, fires=tuple(fire for fire in firing.fires if fire.fire_time > now - SECOND))

    return patch.object(planner, "plan_fires", plan_fires)


@mutant(Invariant.FIRES_COMPLETE, first_seed=108)
def fires_planned_ahead_run_however_late() -> AbstractContextManager[Any]:
    return patch.object(StartCheck, "needed", lambda self, job, policies: False)


@mutant(Invariant.FIRES_COMPLETE, first_seed=102)
def missed_policy_counts_only_the_fires_of_one_step() -> AbstractContextManager[Any]:
    both = ExitStack()
    both.enter_context(patch.object(schedule_model, "MAX_FIRES_PER_STEP", 2))
    both.enter_context(patch.object(schedule_model, "_missed_after", lambda schedule, moment, now: 0))
    return both


@mutant(Invariant.DURABILITY)
def acknowledged_before_the_commit() -> AbstractContextManager[Any]:
    async def write(self: GroupCommit[JobDraft, UUID], drafts: Sequence[JobDraft]) -> list[UUID]:
        self._flushing = asyncio.get_running_loop().create_task(_store_later(self._write, drafts))
        return [draft.id for draft in drafts]

    return patch.object(GroupCommit, "write", write)


async def _store_later(add_jobs: Any, drafts: Sequence[JobDraft]) -> None:
    try:
        await add_jobs(drafts)
    except StoreError:
        return


@mutant(Invariant.LIVENESS, Invariant.PUNCTUALITY, Invariant.AT_MOST_ONCE, first_seed=20)
def settlement_dropped_when_its_reply_is_lost() -> AbstractContextManager[Any]:
    original = Settler.run_once

    async def run_once(self: Settler) -> Micros | None:
        batch = self._outbox.attempts()
        try:
            return await original(self)
        except StoreError:
            unwritten = len(batch & self._outbox.attempts())
            jobs = self._outbox.batch(unwritten)[1]
            self._outbox.written(unwritten)
            self._capacity.release(jobs)
            raise

    return patch.object(Settler, "run_once", run_once)


@mutant(Invariant.SINGLE_CLAIM, Invariant.LIVENESS)  # a worker that shuts down never runs it again
def run_again_when_the_reply_to_a_settlement_is_lost() -> AbstractContextManager[Any]:
    original = Settler.run_once

    async def run_once(self: Settler) -> Micros | None:
        batch = self._outbox.attempts()
        try:
            return await original(self)
        except StoreError:
            jobs = [job for _, job in self._outbox.unwritten() if (job.id, job.attempt) in batch]
            self._outbox.written(len(jobs))
            self._worker._ready.extend(jobs)
            self._worker._tick()
            raise

    return patch.object(Settler, "run_once", run_once)


@contextmanager
def _hints_only() -> Iterator[None]:
    async def never(self: Sweeper) -> Micros:
        return 3_600 * SECOND

    async def until_next(self: Claimer, look_at: Micros, news: object, began: Micros) -> Micros:
        self._wake_at = claimer.NEVER
        return 3_600 * SECOND

    with patch.object(Sweeper, "run_once", never), patch.object(Claimer, "_until_next", until_next):
        yield


@mutant(Invariant.PUNCTUALITY, Invariant.LIVENESS)
def hints_only_no_poll() -> AbstractContextManager[Any]:
    return _hints_only()


@mutant(Invariant.LIVENESS, Invariant.PUNCTUALITY)
def below_the_low_bound_never_swept() -> AbstractContextManager[Any]:
    async def run_once(self: Sweeper) -> Micros:
        return SECOND

    return patch.object(Sweeper, "run_once", run_once)


@mutant(Invariant.LIVENESS, first_seed=34)
def lost_claim_replies_forgotten() -> AbstractContextManager[Any]:
    async def recall(self: Claimer, since: int) -> None:
        self._capacity.lost_reply_at = None

    return patch.object(Claimer, "_recall", recall)


@mutant(Invariant.LIVENESS, first_seed=5)
def slots_leak() -> AbstractContextManager[Any]:
    original = Worker._finish_unstarted

    def finish(self: Worker, job: Claimed, outcome: Any) -> None:
        self.capacity.claimed([job])
        original(self, job, outcome)

    return patch.object(Worker, "_finish_unstarted", finish)


@mutant(Invariant.NEVER_EARLY)
def prefetch_of_a_minute() -> AbstractContextManager[Any]:
    return patch.object(claimer, "PREFETCH", 60 * SECOND)


@mutant(Invariant.AT_MOST_ONCE, Invariant.ACCOUNTING, first_seed=300)
def at_most_once_forgotten_by_the_reaper() -> AbstractContextManager[Any]:
    original = Reaper._lost
    return patch.object(Reaper, "_lost", lambda self, job: original(self, job._replace(policies=None)))


__all__ = ["MUTANTS"]
