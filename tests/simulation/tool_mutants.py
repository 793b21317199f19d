"""Deliberately broken variants of what task authors use: gates, queues, unique jobs, checkpoints, marks, transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch
from uuid import UUID

from duetime.engine.desk import WritingDesk
from duetime.engine.places import Places
from duetime.model.job import JobDraft, State
from duetime.model.lease import NodeId
from duetime.model.limit import Bound, Queue
from duetime.model.settle import Settlement
from duetime.model.unique import Admission
from duetime.store import MarkReply, Note
from duetime.stores.memory import admitting, noting
from duetime.stores.memory.claiming import Claiming
from duetime.stores.memory.jobs import Jobs
from duetime.stores.memory.quotas import Quotas
from duetime.stores.memory.row import Row
from duetime.stores.memory.settling import write
from duetime.testing.simulation.effects import Write
from duetime.testing.simulation.journal import SimulatedStore
from tests.simulation.mutants import mutant


# -- limits -----------------------------------------------------------------------------------------------------------
@mutant("I19")
def gate_count_ignores_other_nodes() -> AbstractContextManager[Any]:
    honest = Claiming.run

    def run(self: Claiming) -> None:
        quotas, everybody = self._jobs.quotas, self._jobs.quotas._of_gate
        quotas._of_gate = {}
        for row in self._jobs.of_node(self._request.node):
            _count(quotas._of_gate, row)
        honest(self)
        quotas._of_gate = everybody
        for row in self.taken:
            _count(everybody, row)

    return patch.object(Claiming, "run", run)


def _count(running: dict[str, int], row: Row) -> None:
    if row.draft.gate is not None:
        running[row.draft.gate] = running.get(row.draft.gate, 0) + 1


@mutant("I19")
def workers_start_all_they_have_claimed_ahead() -> AbstractContextManager[Any]:
    return patch.multiple(Places, admit=lambda self, jobs: jobs, leave=lambda self, job: None)


@mutant("I19")
def gates_give_ahead_beside_others() -> AbstractContextManager[Any]:
    honest = Quotas.full

    def full(self: Quotas, gate: str, bound: Bound | None, node: NodeId, due: bool) -> bool:
        return honest(
            self, gate, bound if bound is None or bound.most is None else bound._replace(most=bound.most + bound.ahead), node, due
        )

    return patch.object(Quotas, "full", full)


@mutant("I8")
def gate_places_are_never_given_back() -> AbstractContextManager[Any]:
    honest = Quotas.end
    return patch.object(Quotas, "end", lambda self, draft, node: honest(self, draft._replace(gate=None), node))


@mutant("I8", "I2")
def full_gates_are_never_looked_at_again() -> AbstractContextManager[Any]:
    return patch("duetime.stores.memory.lanes.Lanes.freed", lambda self, gate: [])


@mutant("I19")
def rates_are_not_counted() -> AbstractContextManager[Any]:
    return patch.object(Quotas, "spend", lambda self, gate, bound, now: None)


@mutant("I19")
def paused_queues_are_claimed() -> AbstractContextManager[Any]:
    honest = Quotas.room_in

    def room_in(self: Quotas, queue: str, now: int) -> int:
        with patch.dict(self.queues, {queue: Queue(queue)}):
            return honest(self, queue, now)

    return patch.object(Quotas, "room_in", room_in)


# -- unique jobs ------------------------------------------------------------------------------------------------------
@mutant("I15", "I6")
def running_jobs_are_replaced() -> AbstractContextManager[Any]:
    def settle_conflict(jobs: Jobs, earlier: Row, draft: JobDraft, on_conflict: Any, now: int) -> Admission:
        jobs.finish(earlier, State.CANCELLED, now, f"replaced by job {draft.id}")
        return Admission(jobs.add(draft, now), "replaced")

    return patch.object(admitting, "_settle_conflict", settle_conflict)


# -- checkpoints and marks --------------------------------------------------------------------------------------------
@mutant("I6")
def save_without_attempt_check() -> AbstractContextManager[Any]:
    def save(jobs: Jobs, notes: Sequence[Note]) -> list[UUID]:
        for note in notes:
            if (row := jobs.live.get(note.id)) is not None:
                row.checkpoint = note.checkpoint or row.checkpoint
        return []

    return patch.object(noting, "save", save)


@mutant("I1")
def checkpoint_promised_before_it_is_written() -> AbstractContextManager[Any]:
    async def save(self: WritingDesk, note: Note) -> None:
        asyncio.get_running_loop().create_task(_later(self, note))

    return patch.object(WritingDesk, "save", save)


async def _later(desk: WritingDesk, note: Note) -> None:
    await asyncio.wait([desk._send(note)])


@mutant("I6")
def marks_are_not_fenced() -> AbstractContextManager[Any]:
    def mark(jobs: Jobs, job_id: UUID, attempt: int, key: str, nonce: UUID) -> MarkReply:
        taken_by = jobs.marks.setdefault(job_id, {}).setdefault(key, nonce)
        return MarkReply.TAKEN if taken_by == nonce else MarkReply.KNOWN

    return patch.object(noting, "mark", mark)


@mutant("I17")
def marks_are_forgotten_with_the_attempt() -> AbstractContextManager[Any]:
    honest = Jobs.put_back

    def put_back(self: Jobs, row: Row, decision: Settlement) -> None:
        self.marks.pop(row.draft.id, None)
        honest(self, row, decision)

    return patch.object(Jobs, "put_back", put_back)


# -- transactions -----------------------------------------------------------------------------------------------------
@mutant("I6", "I3", "I17")
def commit_without_attempt_check() -> AbstractContextManager[Any]:
    async def commit(self: SimulatedStore, settlement: Settlement, writes: tuple[Write, ...]) -> bool:
        row = self._jobs.live.get(settlement.id)
        if row is not None:
            write(self._jobs, row, settlement)
        self.effects[settlement.id] += len(writes)
        return True

    return patch.object(SimulatedStore, "commit", commit)


@mutant("I17")
def writes_are_committed_before_the_settlement() -> AbstractContextManager[Any]:
    honest = SimulatedStore.commit

    async def commit(self: SimulatedStore, settlement: Settlement, writes: tuple[Write, ...]) -> bool:
        self.effects[settlement.id] += len(writes)
        return await honest(self, settlement, ())

    return patch.object(SimulatedStore, "commit", commit)


__all__ = [
    "checkpoint_promised_before_it_is_written",
    "commit_without_attempt_check",
    "full_gates_are_never_looked_at_again",
    "gate_count_ignores_other_nodes",
    "gate_places_are_never_given_back",
    "marks_are_forgotten_with_the_attempt",
    "marks_are_not_fenced",
    "paused_queues_are_claimed",
    "rates_are_not_counted",
    "running_jobs_are_replaced",
    "save_without_attempt_check",
    "writes_are_committed_before_the_settlement",
]
