"""The memory store, which also remembers what was submitted in which order, and breaks where a test wants it to break."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from duetime.errors import StoreUnavailable
from duetime.model.instant import Micros
from duetime.model.job import Claimed, JobDraft
from duetime.model.settle import Settlement
from duetime.model.unique import Admission, Rule
from duetime.store import ClaimRequest, Guest, MarkReply, Note
from duetime.stores.memory import MemoryStore
from duetime.stores.memory.row import Row
from duetime.testing.kit.accidents import Accidents
from duetime.testing.kit.plain import in_one_step


class Submission(NamedTuple):
    draft: JobDraft
    at: Micros


class RecordingStore(MemoryStore):
    def __init__(self, clock: Callable[[], Micros], accidents: Accidents) -> None:
        super().__init__(clock)
        self.now = clock
        self.submissions: list[Submission] = []
        self._accidents = accidents

    def queue_names(self) -> list[str]:
        return [queue.name for queue in in_one_step(super().queues())]

    def paused_queues(self) -> set[str]:
        return {queue.name for queue in in_one_step(super().queues()) if queue.paused}

    def live(self) -> list[Row]:
        return list(self._jobs.live.values())

    # -- what is remembered -------------------------------------------------------------------------------------------
    async def add_jobs(self, drafts: Sequence[JobDraft], again: bool = False) -> list[UUID]:
        ids = await super().add_jobs(drafts, again)
        self.submissions += [Submission(draft, self.now()) for draft, job_id in zip(drafts, ids, strict=True) if draft.id == job_id]
        self._lose("add_jobs")
        return ids

    async def add_unique(self, draft: JobDraft, rule: Rule, again: bool = False) -> Admission:
        admission = await super().add_unique(draft, rule, again)
        if admission.id == draft.id:
            self.submissions.append(Submission(draft, self.now()))
        self._lose("add_unique")
        return admission

    def guest(self, connection: Any) -> Guest:  # type: ignore[override]  # the memory store has no guests: it never returns
        """Whatever the connection is: there is no database here, so that its jobs are stored at once."""
        return _Guest(self)

    # -- what breaks --------------------------------------------------------------------------------------------------
    async def save(self, notes: Sequence[Note]) -> list[UUID]:
        points = [self._accidents.reach("checkpoint", self._target(note.id)) for note in notes if note.checkpoint is not None]
        for point in points:
            await point.before()
        refused = await super().save(notes)
        for point in points:
            await point.after()
        self._lose("save")
        return refused

    async def mark(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> MarkReply:
        point = self._accidents.reach("once", self._target(job_id))
        await point.before()
        reply = await super().mark(job_id, attempt, key, nonce)
        await point.after()
        self._lose("mark")
        return reply

    async def settle(self, settlements: Sequence[Settlement]) -> list[UUID]:
        refused = await super().settle(settlements)
        if settlements:
            self._lose("settle")
        return refused

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        claimed = await super().claim(request)
        if claimed:
            self._lose("claim")
        return claimed

    def _lose(self, verb: str) -> None:
        if self._accidents.loses_reply(verb):
            raise StoreUnavailable(f"the reply to {verb} was lost, as the test wanted")

    def _target(self, job_id: UUID) -> str:
        row = self._jobs.live.get(job_id)
        return "" if row is None else row.draft.target


class _Guest:
    blocking = True

    def __init__(self, store: RecordingStore) -> None:
        self._store = store

    async def add_jobs(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return await self._store.add_jobs(drafts)

    def add_jobs_now(self, drafts: Sequence[JobDraft]) -> list[UUID]:
        return in_one_step(self._store.add_jobs(drafts))
