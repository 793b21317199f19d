"""A memory store that also records submissions in their order and injects the faults that a test planned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from duetime.errors import StoreUnavailable
from duetime.model.instant import Micros
from duetime.model.job import JobDraft
from duetime.model.settle import Settlement
from duetime.model.unique import Admission, Rule
from duetime.store import (
    AttemptUpdate,
    CallerTransaction,
    ClaimRequest,
    Claims,
    OnceReply,
    Settled,
    Successors,
)
from duetime.stores.memory import MemoryStore
from duetime.stores.memory.row import Row
from duetime.testing.kit.faults import FaultPlan
from duetime.testing.one_step import run_in_one_step


class Submission(NamedTuple):
    draft: JobDraft
    at: Micros


class RecordingStore(MemoryStore):
    def __init__(self, clock: Callable[[], Micros], faults: FaultPlan) -> None:
        super().__init__(clock)
        self.now = clock
        self.submissions: list[Submission] = []
        self._faults = faults

    def queue_names(self) -> list[str]:
        return [queue.name for queue in run_in_one_step(super().queues())]

    def paused_queues(self) -> set[str]:
        return {queue.name for queue in run_in_one_step(super().queues()) if queue.paused}

    def live(self) -> list[Row]:
        return list(self._jobs.live.values())

    # -- recording -------------------------------------------------------------------------------------------
    async def add_jobs(self, drafts: Sequence[JobDraft], is_retry: bool = False) -> list[UUID]:
        ids = await super().add_jobs(drafts, is_retry)
        self.submissions += [
            Submission(draft, self.now())
            for draft, job_id in zip(drafts, ids, strict=True)
            if draft.id == job_id
        ]
        self._lose("add_jobs")
        return ids

    async def add_unique(self, draft: JobDraft, rule: Rule, is_retry: bool = False) -> Admission:
        admission = await super().add_unique(draft, rule, is_retry)
        if admission.id == draft.id:
            self.submissions.append(Submission(draft, self.now()))
        self._lose("add_unique")
        return admission

    def within(self, connection: Any) -> CallerTransaction:  # type: ignore[override]  # the memory store never returns one
        """Ignores the connection: there is no database here, so jobs are stored immediately."""
        return _NoTransaction(self)

    # -- faults ----------------------------------------------------------------------------------------------
    async def save_progress(self, updates: Sequence[AttemptUpdate]) -> list[UUID]:
        points = [
            self._faults.reach("checkpoint", self._target(update.id))
            for update in updates
            if update.checkpoint is not None
        ]
        for point in points:
            await point.before()
        refused = await super().save_progress(updates)
        for point in points:
            await point.after()
        self._lose("save_progress")
        return refused

    async def take_once(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> OnceReply:
        point = self._faults.reach("once", self._target(job_id))
        await point.before()
        reply = await super().take_once(job_id, attempt, key, nonce)
        await point.after()
        self._lose("take_once")
        return reply

    async def settle(
        self, settlements: Sequence[Settlement], successors: Successors | None = None
    ) -> Settled:
        settled = await super().settle(settlements, successors)
        if settlements:
            self._lose("settle")
        return settled

    async def claim(self, request: ClaimRequest) -> Claims:
        claims = await super().claim(request)
        if claims.jobs:
            self._lose("claim")
        return claims

    def _lose(self, verb: str) -> None:
        if self._faults.loses_reply(verb):
            raise StoreUnavailable(f"the test planned to lose the reply to {verb}")

    def _target(self, job_id: UUID) -> str:
        row = self._jobs.live.get(job_id)
        return "" if row is None else row.draft.target


class _NoTransaction:
    blocking = True

    def __init__(self, store: RecordingStore) -> None:
        self._store = store

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return await self._store.add_jobs(drafts)

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return run_in_one_step(self._store.add_jobs(drafts))
