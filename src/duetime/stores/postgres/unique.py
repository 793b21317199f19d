"""Unique jobs: of two that are the same by the caller's rule, one is stored, and the other is answered by it.

The newcomer is stored first and the past looked at afterwards, by a later snapshot: a job that finishes meanwhile is seen by either.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from duetime.errors import StoreUnavailable
from duetime.model.hint import DoneHint, Hint, JobHint
from duetime.model.job import FINAL, JobDraft, State
from duetime.model.unique import Admission, OnConflict, Rule
from duetime.stores.postgres.bell import Bell
from duetime.stores.postgres.jobs import Jobs, columns, lane_hints
from duetime.stores.postgres.lines import SQL, Lines
from duetime.stores.postgres.queues import Queues

MOST_RIVALS = 50


class UniqueJobs:
    def __init__(self, lines: Lines, bell: Bell, jobs: Jobs, queues: Queues) -> None:
        self._lines = lines
        self._bell = bell
        self._jobs = jobs
        self._queues = queues

    async def add(self, draft: JobDraft, rule: Rule, again: bool) -> Admission:
        await self._queues.record({draft.queue})
        # Where no finished job counts, storing it is all there is to do, unless its key is taken.
        if not rule.states & FINAL and await self._jobs.store(draft, again):
            return Admission(draft.id)
        hints: list[Hint] = []

        async def work(connection: Any) -> Admission:
            """Run a second time, the line lost the reply of the first."""
            nonlocal again
            newcomer = Newcomer(connection, draft, rule)
            known = await newcomer.known() if again else None
            again = True
            admission = known or await newcomer.admit()
            hints[:] = newcomer.hints
            return admission

        admission = await self._lines.submit.run(work, atomic=True)
        self._bell.ring(hints)
        return admission


class Newcomer:
    """A draft at the door, in one transaction."""

    def __init__(self, connection: Any, draft: JobDraft, rule: Rule) -> None:
        self._connection = connection
        self._draft = draft
        self._on_conflict = rule.on_conflict
        self._looks_back = bool(rule.states & FINAL)
        self._asked = (draft.tenant, draft.unique_key, [str(state) for state in rule.states], rule.within)
        self.hints: list[Hint] = []

    async def known(self) -> Admission | None:
        """What an earlier try of ours came to, if it stored the draft."""
        asked = (self._draft.id, self._draft.tenant, self._draft.unique_key, _reason(self._draft.id))
        row = await self._connection.fetchrow(SQL["known_job"], *asked)
        return None if row is None else Admission(self._draft.id, "replaced" if row["replaced"] else None)

    async def admit(self) -> Admission:
        replaced = False
        for _ in range(MOST_RIVALS):
            if await self._connection.fetch(SQL["add_jobs"], *columns([self._draft])):
                return await self._stored(replaced)
            holder = await self._connection.fetchrow(SQL["holder"], *self._asked)
            if holder is None:
                # It has finished in this moment, or the draft is known and has no key any more.
                if (known := await self.known()) is not None:
                    return known
            elif holder["id"] == self._draft.id:
                return Admission(holder["id"])
            elif (answer := await self._answer(holder)) is not None:
                return answer
            else:
                replaced = replaced or holder["counts"]
        raise StoreUnavailable("a unique key changed hands too often: repeat")

    async def _stored(self, replaced: bool) -> Admission:
        if not replaced and (earlier := await self._finished()) is not None:
            await self._connection.execute(SQL["withdraw_draft"], self._draft.id)
            return Admission(earlier, "skipped")
        self.hints += lane_hints([self._draft])
        return Admission(self._draft.id, "replaced" if replaced else None)

    async def _answer(self, holder: Any) -> Admission | None:
        """What the live job with the key answers; None when it has made way."""
        if not holder["counts"]:
            earlier = await self._finished()
            if earlier is None:
                await self._connection.execute(SQL["drop_key"], holder["id"])
            return None if earlier is None else Admission(earlier, "skipped")
        if self._on_conflict is OnConflict.SKIP or holder["state"] == State.RUNNING:
            return Admission(holder["id"], "skipped")
        if self._on_conflict is OnConflict.RESCHEDULE:
            await self._connection.execute(SQL["reschedule_job"], holder["id"], self._draft.due_at)
            self.hints.append(JobHint(holder["queue"], holder["priority"], self._draft.due_at))
            return Admission(holder["id"], "rescheduled")
        if await self._connection.fetchval(SQL["replace_job"], holder["id"], _reason(self._draft.id)):
            self.hints.append(DoneHint(holder["id"]))
        return None

    async def _finished(self) -> UUID | None:
        """The finished job that counts, if any."""
        if not self._looks_back:
            return None
        found: UUID | None = await self._connection.fetchval(SQL["finished_holder"], *self._asked)
        return found


def _reason(job_id: UUID) -> str:
    return f"replaced by job {job_id}"
