"""A memory store that also records submissions in their order and injects the faults that a test planned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from duetime.errors import StoreUnavailable
from duetime.model.instant import Micros
from duetime.model.job import Job, JobDraft, State
from duetime.model.limit import QueueFilter
from duetime.model.settle import Settlement
from duetime.model.unique import Admission, Rule
from duetime.store import (
    AttemptUpdate,
    CallerStore,
    CallerTransaction,
    ClaimRequest,
    Claims,
    Lane,
    OnceReply,
    RunOnOwner,
    Settled,
    Successors,
)
from duetime.stores.memory import MemoryStore
from duetime.stores.memory.row import Row
from duetime.testing.kit.caller_transaction import (
    DjangoWatch,
    SqlalchemyWatch,
    is_async,
    watch,
    watch_async,
)
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
        self._watched: list[tuple[frozenset[UUID], SqlalchemyWatch | DjangoWatch]] = []

    def lanes_with_jobs(self) -> tuple[Lane, ...]:
        queues = run_in_one_step(super().queues(wanted=QueueFilter(for_workers=True)))
        return tuple(
            Lane(queue.name, priority, 0, tenant) for queue in queues for priority, tenant in queue.lanes
        )

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
        """Jobs are stored immediately, because there is no database here. A rollback removes them again, if
        the kit can see it."""
        return _WatchedTransaction(self, connection)

    def watch(self, ids: Sequence[UUID], transaction: SqlalchemyWatch | DjangoWatch | None) -> None:
        if transaction is not None:
            self._watched.append((frozenset(ids), transaction))

    def forget_rolled_back(self) -> None:
        gone = frozenset(one for ids, transaction in self._watched if transaction.rolled_back for one in ids)
        if not gone:
            return
        self._watched = [pair for pair in self._watched if not pair[1].rolled_back]
        self.submissions = [entry for entry in self.submissions if entry.draft.id not in gone]
        for row in [row for row in self.live() if row.draft.id in gone and row.state is State.PENDING]:
            self._jobs.remove(row)

    async def get_job(self, tenant: str, job_id: UUID, announce: bool = False) -> Job | None:
        self.forget_rolled_back()
        return await super().get_job(tenant, job_id, announce)

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
        self.forget_rolled_back()
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


class _WatchedTransaction:
    def __init__(self, store: RecordingStore, connection: Any) -> None:
        self.blocking = not is_async(connection)
        self._store = store
        self._connection = connection

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        self._store.watch([draft.id for draft in drafts], await watch_async(self._connection))
        return await self._store.add_jobs(drafts)

    def verbs(self, run: RunOnOwner) -> CallerStore:
        """A rollback is not seen by them."""
        return self._store

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        self._store.watch([draft.id for draft in drafts], watch(self._connection))
        return run_in_one_step(self._store.add_jobs(drafts))
