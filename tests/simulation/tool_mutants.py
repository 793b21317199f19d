"""Deliberately broken variants of limits, queues, unique jobs, checkpoints, once-marks and transactions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch
from uuid import UUID

from duetime.engine.run.checkpoints import CheckpointWriter
from duetime.engine.run.permit_chains import PermitChains
from duetime.model.job import JobDraft, State
from duetime.model.permits import KeyUse, Usage
from duetime.model.settle import Settlement
from duetime.model.unique import Admission
from duetime.store import AttemptUpdate, OnceReply
from duetime.stores.memory import checkpoints, unique
from duetime.stores.memory.claim import MemoryClaim
from duetime.stores.memory.jobs import MemoryJobs
from duetime.stores.memory.lanes import Lanes
from duetime.stores.memory.limits import Limits
from duetime.stores.memory.row import Row
from duetime.stores.memory.settle import MemorySettle
from duetime.testing.simulation.effects import Write
from duetime.testing.simulation.invariants.verdict import Invariant
from duetime.testing.simulation.store import SimulatedStore
from tests.simulation.mutants import mutant


# -- limits ----------------------------------------------------------------------------------------------
@mutant(Invariant.LIMITS)
def limit_count_ignores_other_nodes() -> AbstractContextManager[Any]:
    original = MemoryClaim._decide

    def decide(self: MemoryClaim, rows: list[Row], usage: Usage) -> None:
        limits = self._jobs.limits
        all_nodes, limits._permits = limits._permits, {}
        _count(limits._permits, self._jobs.of_node(self._request.node))
        original(self, rows, usage)
        limits._permits = all_nodes
        _count(all_nodes, self.taken)

    return patch.object(MemoryClaim, "_decide", decide)


def _count(permits: dict[str, Counter[UUID | None]], rows: Iterable[Row]) -> None:
    for row in rows:
        if row.draft.limit_key is not None:
            permits.setdefault(row.draft.limit_key, Counter())[row.permit] += 1


@mutant(Invariant.LIMITS)
def worker_starts_all_jobs_of_a_permit() -> AbstractContextManager[Any]:
    return patch.object(PermitChains, "admit", lambda self, jobs: list(jobs))


@mutant(Invariant.LIMITS)
def each_successor_has_its_own_permit() -> AbstractContextManager[Any]:
    original = MemorySettle.pass_on

    def pass_on(self: MemorySettle, name: str, permit: UUID | None, number: int) -> None:
        for _ in range(number):
            original(self, name, None if permit is None else self._jobs.new_permit(), 1)

    return patch.object(MemorySettle, "pass_on", pass_on)


@mutant(Invariant.LIMITS)
def successors_are_not_counted() -> AbstractContextManager[Any]:
    """The permit counts as free, and the next claim gives it to another job."""
    original = Limits.key_use

    def pass_on(self: MemorySettle, name: str, permit: UUID | None, number: int) -> None:
        begun = len(self.successors)
        original_pass_on(self, name, permit, number)
        uncounted.update(row.permit for row in self.successors[begun:])

    def key_use(self: Limits, key: str) -> KeyUse:
        permits = self._permits.get(key, Counter())
        return original(self, key)._replace(permits=len(permits.keys() - uncounted))

    uncounted = set[UUID | None]()
    original_pass_on = MemorySettle.pass_on
    return _both(patch.object(MemorySettle, "pass_on", pass_on), patch.object(Limits, "key_use", key_use))


@mutant(Invariant.LIMITS, first_seed=480)
def successors_ignore_paused_queues() -> AbstractContextManager[Any]:
    original = MemorySettle._takes

    def takes(self: MemorySettle, row: Row, name: str) -> bool:
        with patch.object(Limits, "paused", lambda self, queue: False):
            return original(self, row, name)

    return patch.object(MemorySettle, "_takes", takes)


@mutant(Invariant.LIVENESS)
def permits_are_never_released() -> AbstractContextManager[Any]:
    def end(self: Limits, row: Row) -> None:
        self._running[row.draft.queue] -= 1

    return patch.object(Limits, "end", end)


@mutant(Invariant.LIVENESS, Invariant.PUNCTUALITY)
def waiting_jobs_are_never_promoted() -> AbstractContextManager[Any]:
    return _both(
        patch.object(Lanes, "promote", lambda self, name, number: []),
        patch.object(MemorySettle, "pass_on", lambda self, name, permit, number: None),
    )


@mutant(Invariant.LIMITS, first_seed=88)
def rates_are_not_counted() -> AbstractContextManager[Any]:
    return patch.object(Limits, "spend", lambda self, keys, queues: None)


@mutant(Invariant.LIMITS, first_seed=17)
def paused_queues_are_claimed() -> AbstractContextManager[Any]:
    return patch.object(Limits, "paused", lambda self, queue: False)


@contextmanager
def _both(first: AbstractContextManager[Any], second: AbstractContextManager[Any]) -> Iterator[None]:
    with first, second:
        yield


# -- unique jobs -----------------------------------------------------------------------------------------
@mutant(Invariant.UNIQUE_KEYS, Invariant.FENCING, first_seed=5)
def running_jobs_are_replaced() -> AbstractContextManager[Any]:
    def settle_conflict(
        jobs: MemoryJobs, earlier: Row, draft: JobDraft, on_conflict: Any, now: int
    ) -> Admission:
        jobs.finish(earlier, State.CANCELLED, now, f"replaced by job {draft.id}")
        return Admission(jobs.add(draft, now), "replaced")

    return patch.object(unique, "_settle_conflict", settle_conflict)


# -- checkpoints and marks -------------------------------------------------------------------------------
@mutant(Invariant.FENCING, first_seed=17)
def save_without_attempt_check() -> AbstractContextManager[Any]:
    def save(jobs: MemoryJobs, updates: Sequence[AttemptUpdate]) -> list[UUID]:
        for update in updates:
            if (row := jobs.live.get(update.id)) is not None:
                row.checkpoint = update.checkpoint or row.checkpoint
                row.begun = row.begun or update.started
        return []

    return patch.object(checkpoints, "save", save)


@mutant(Invariant.DURABILITY)
def checkpoint_confirmed_before_it_is_written() -> AbstractContextManager[Any]:
    async def save(self: CheckpointWriter, update: AttemptUpdate) -> None:
        asyncio.get_running_loop().create_task(_later(self, update))

    return patch.object(CheckpointWriter, "save", save)


async def _later(writer: CheckpointWriter, update: AttemptUpdate) -> None:
    await asyncio.wait([writer._send(update)])


@mutant(Invariant.FENCING, first_seed=313)
def marks_are_not_fenced() -> AbstractContextManager[Any]:
    def take_once(jobs: MemoryJobs, job_id: UUID, attempt: int, key: str, nonce: UUID) -> OnceReply:
        taken_by = jobs.markers.setdefault(job_id, {}).setdefault(key, nonce)
        return OnceReply.TAKEN if taken_by == nonce else OnceReply.KNOWN

    return patch.object(checkpoints, "take_once", take_once)


@mutant(Invariant.SINGLE_EFFECTS)
def marks_are_forgotten_with_the_attempt() -> AbstractContextManager[Any]:
    original = MemoryJobs.put_back

    def put_back(self: MemoryJobs, row: Row, decision: Settlement) -> None:
        self.markers.pop(row.draft.id, None)
        original(self, row, decision)

    return patch.object(MemoryJobs, "put_back", put_back)


# -- transactions ----------------------------------------------------------------------------------------
@mutant(Invariant.FENCING, Invariant.SINGLE_OUTCOME, Invariant.SINGLE_EFFECTS, first_seed=30)
def commit_without_attempt_check() -> AbstractContextManager[Any]:
    async def commit(self: SimulatedStore, settlement: Settlement, writes: tuple[Write, ...]) -> bool:
        row = self._jobs.live.get(settlement.id)
        if row is not None:
            MemorySettle(self._jobs, None, self._clock())._end(row, settlement)
        self.effects[settlement.id] += len(writes)
        return True

    return patch.object(SimulatedStore, "commit", commit)


@mutant(Invariant.SINGLE_EFFECTS, first_seed=30)
def writes_are_committed_before_the_settlement() -> AbstractContextManager[Any]:
    original = SimulatedStore.commit

    async def commit(self: SimulatedStore, settlement: Settlement, writes: tuple[Write, ...]) -> bool:
        self.effects[settlement.id] += len(writes)
        return await original(self, settlement, ())

    return patch.object(SimulatedStore, "commit", commit)


__all__ = [
    "checkpoint_confirmed_before_it_is_written",
    "commit_without_attempt_check",
    "each_successor_has_its_own_permit",
    "limit_count_ignores_other_nodes",
    "marks_are_forgotten_with_the_attempt",
    "marks_are_not_fenced",
    "paused_queues_are_claimed",
    "permits_are_never_released",
    "rates_are_not_counted",
    "running_jobs_are_replaced",
    "save_without_attempt_check",
    "successors_are_not_counted",
    "successors_ignore_paused_queues",
    "waiting_jobs_are_never_promoted",
    "worker_starts_all_jobs_of_a_permit",
    "writes_are_committed_before_the_settlement",
]
