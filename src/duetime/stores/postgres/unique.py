"""Unique jobs: of two that are the same by the caller's rule, one is stored, and stands for the other.

The draft is stored first and the past read afterwards, with a later snapshot: a job that finishes meanwhile
is seen by one of the two."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from duetime.errors import StoreUnavailable
from duetime.model.hint import DoneHint, Hint, JobHint, lane_hints
from duetime.model.job import FINAL, JobDraft, State
from duetime.model.unique import Admission, OnConflict, Rule
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.postgres.jobs import NO_ONE_WAITS, PostgresJobs, columns
from duetime.stores.postgres.notifier import Notifier
from duetime.stores.postgres.queues import PostgresQueues

MAX_RACES = 50


class UniqueJobs:
    def __init__(
        self, connections: PostgresConnections, notifier: Notifier, jobs: PostgresJobs, queues: PostgresQueues
    ) -> None:
        self._connections = connections
        self._notifier = notifier
        self._jobs = jobs
        self._queues = queues

    async def add(self, draft: JobDraft, rule: Rule, is_retry: bool = False) -> Admission:
        await self._queues.record([draft])
        # If no finished job matches the rule, storing the draft is enough, unless its key is taken.
        if not rule.states & FINAL and await self._jobs.add_one(draft, is_retry):
            return Admission(draft.id)

        async def work(connection: Any, repeated: bool) -> tuple[Admission, list[Hint]]:
            insert = UniqueInsert(connection, draft, rule)
            known = await insert.known() if repeated or is_retry else None
            return known or await insert.run(), insert.hints

        admission, hints = await self._connections.submit.run(work, atomic=True)
        self._notifier.notify(hints)
        return admission


class UniqueInsert:
    """Of one draft, in one transaction."""

    def __init__(self, connection: Any, draft: JobDraft, rule: Rule) -> None:
        self._connection = connection
        self._draft = draft
        self._on_conflict = rule.on_conflict
        self._finished_match = bool(rule.states & FINAL)
        self._rule = (draft.tenant, draft.unique_key, [str(state) for state in rule.states], rule.within)
        self.hints: list[Hint] = []

    async def known(self) -> Admission | None:
        """The result of an earlier try, if that stored the draft."""
        draft = self._draft
        row = await self._connection.fetchrow(
            SQL["known_job"], draft.id, draft.tenant, draft.unique_key, _reason(draft.id)
        )
        return None if row is None else Admission(draft.id, "replaced" if row["replaced"] else None)

    async def run(self) -> Admission:
        replaced = False
        for _ in range(MAX_RACES):
            if await self._connection.fetch(SQL["add_jobs"], *columns([self._draft], NO_ONE_WAITS)):
                return await self._stored(replaced)
            holder = await self._connection.fetchrow(SQL["holder"], *self._rule)
            if holder is None:
                # It has just finished, or the draft is known and has no key any more.
                if (known := await self.known()) is not None:
                    return known
            elif holder["id"] == self._draft.id:
                return Admission(holder["id"])
            elif (admission := await self._resolve(holder)) is not None:
                return admission
            else:
                replaced = replaced or holder["matches"]
        raise StoreUnavailable("a unique key changed hands too often: repeat")

    async def _stored(self, replaced: bool) -> Admission:
        if not replaced and (earlier := await self._finished()) is not None:
            await self._connection.execute(SQL["delete_draft"], self._draft.id)
            return Admission(earlier, "skipped")
        self.hints += lane_hints([self._draft])
        return Admission(self._draft.id, "replaced" if replaced else None)

    async def _resolve(self, holder: Any) -> Admission | None:
        """The result of a conflict with the live job that holds the key; None when it has given up the
        key."""
        if not holder["matches"]:
            earlier = await self._finished()
            if earlier is None:
                await self._connection.execute(SQL["drop_key"], holder["id"])
            return None if earlier is None else Admission(earlier, "skipped")
        if self._on_conflict is OnConflict.SKIP or holder["state"] == State.RUNNING:
            return Admission(holder["id"], "skipped")
        if self._on_conflict is OnConflict.RESCHEDULE:
            await self._connection.execute(SQL["reschedule_holder"], holder["id"], self._draft.due_at)
            self.hints.append(
                JobHint(holder["queue"], holder["priority"], self._draft.due_at, self._draft.tenant)
            )
            return Admission(holder["id"], "rescheduled")
        if await self._connection.fetchval(SQL["replace_holder"], holder["id"], _reason(self._draft.id)):
            self.hints.append(DoneHint(holder["id"]))
        return None

    async def _finished(self) -> UUID | None:
        """The finished job that matches the rule, if any."""
        found: UUID | None = (
            await self._connection.fetchval(SQL["finished_holder"], *self._rule)
            if self._finished_match
            else None
        )
        return found


def _reason(job_id: UUID) -> str:
    return f"replaced by job {job_id}"
