"""Jobs as callers see them: stored, looked up, cancelled, moved, revived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from duetime.errors import Conflict, StoreUnavailable
from duetime.model.attempt import Attempt
from duetime.model.hint import CancelHint, DoneHint, JobHint
from duetime.model.instant import Micros
from duetime.model.job import CancelReply, Job, JobDraft, JobFilter
from duetime.model.lease import NodeId
from duetime.store import QueueCount
from duetime.stores.postgres import listing
from duetime.stores.postgres.bell import Bell, encode
from duetime.stores.postgres.copying import in_pieces
from duetime.stores.postgres.line import PATIENCE, Work
from duetime.stores.postgres.lines import SQL, Lines
from duetime.stores.postgres.outside import Outside
from duetime.stores.postgres.queues import Queues
from duetime.stores.postgres.rows import attempt_of, job_of
from duetime.stores.postgres.together import Answers, Part, Subject, Together, by_statement

COPY_FROM = 40  # drafts: fewer are stored quicker by one INSERT
COPY_AT_ONCE = 20_000
INSERT_AT_ONCE = 5_000  # the server looks at each of them: so many are done long before a statement has to be
RATE = 10_000  # drafts a second which even a slow server takes
MOST_RIVALS = 10


class Jobs:
    def __init__(self, lines: Lines, bell: Bell, queues: Queues, outside: Outside) -> None:
        self._lines = lines
        self._finding = Together(lines.read, by_statement(listing.BY_ID, "id", listing.ONE))
        self._cancelling = Together(lines.submit, by_statement(SQL["cancel_jobs"], "id"))
        self._changing = Together(lines.submit, by_statement(SQL["change_jobs"], "id"))
        self._disposing = Together(lines.submit, by_statement(SQL["dispose_jobs"], "id"))
        self._reviving = Together(lines.submit, _reviving, atomic=True)
        self._bell = bell
        self._queues = queues
        self._outside = outside

    # -- storing ------------------------------------------------------------------------------------------------------
    async def add(self, drafts: Sequence[JobDraft], again: bool) -> list[UUID]:
        if not drafts:
            return []
        await self._queues.record({draft.queue for draft in drafts})
        if len(drafts) == 1:
            return [await self._add_one(drafts[0], again)]
        keyed = [draft for draft in drafts if draft.unique_key is not None]
        if keyed:
            ids = await self._add_keyed(drafts, keyed, again)
        else:
            await (self._copy(drafts) if len(drafts) >= COPY_FROM and not again else self._insert(drafts, again))
            ids = [draft.id for draft in drafts]
        self._bell.ring(lane_hints(drafts))
        return ids

    async def _add_one(self, draft: JobDraft, again: bool) -> UUID:
        return draft.id if await self.store(draft, again) else (await self._add_keyed([draft], [draft], again))[0]

    async def store(self, draft: JobDraft, again: bool) -> bool:
        """False when its id is known or its key is taken."""
        hint = JobHint(draft.queue, draft.priority, draft.due_at, draft.overlap is not None)
        told = self._bell.take_turn(hint)
        message = None if told is None else encode(told)

        first = SQL["add_job" if draft.unique_key is None else "add_keyed_job"]

        async def work(connection: Any) -> Any:
            """Run a second time, the line lost the reply of the first."""
            nonlocal again
            if not again:
                again = True
                return await connection.fetchrow(first, *draft, message)
            return next(iter(await self._add_again(connection, SQL["add_job_again"], *draft, message)), None)

        try:
            stored = await self._lines.submit.run(work)
        except asyncpg.UniqueViolationError:
            return False
        if stored is not None and stored["soon"]:
            if told is None:
                self._bell.ring_soon(hint)
            else:
                self._bell.told(told)
        return stored is not None

    async def _insert(self, drafts: Sequence[JobDraft], again: bool) -> None:
        async def work(connection: Any) -> None:
            """Run a second time, the line lost the reply of the first."""
            nonlocal again
            again, sent_before = True, again
            for part in _parts(drafts, INSERT_AT_ONCE):
                if sent_before:
                    await self._add_again(connection, SQL["add_jobs"], *columns(part))
                else:
                    await connection.execute(SQL["add_jobs"], *columns(part))

        await self._lines.submit.run(work, atomic=len(drafts) > INSERT_AT_ONCE, patience=_patience(drafts))

    async def _add_again(self, connection: Any, statement: str, *values: Any) -> list[Any]:
        async def work(connection: Any) -> list[Any]:
            return await _without_finished(connection, await connection.fetch(statement, *values))

        return await self._lines.submit.atomically(connection, work)

    async def _copy(self, drafts: Sequence[JobDraft]) -> None:
        """COPY cannot leave out what is stored already, so it is for batches of which nothing is: all of them, normally."""
        tried = False

        async def work(connection: Any) -> bool:
            nonlocal tried
            tried_before, tried = tried, True
            if tried_before or await connection.fetchval(SQL["any_finished"], *_id_range(drafts)):
                return False
            for part in _parts(drafts, COPY_AT_ONCE):
                rows = in_pieces(part)
                await connection.copy_to_table("jobs", schema_name="duetime", columns=JobDraft._fields, source=rows, format="binary")
            return True

        try:
            done = await self._lines.submit.run(work, atomic=len(drafts) > COPY_AT_ONCE, patience=_patience(drafts))
        except asyncpg.UniqueViolationError:
            done = False
        if not done:
            await self._insert(drafts, again=True)

    async def _add_keyed(self, drafts: Sequence[JobDraft], keyed: Sequence[JobDraft], again: bool) -> list[UUID]:
        """Stores what may be stored, then asks which job answers for each draft that may be held off by its key."""

        async def work(connection: Any) -> dict[UUID, UUID]:
            """Run a second time, the line lost the reply of the first."""
            nonlocal again
            again, sent_before = True, again
            todo = drafts
            answers: dict[UUID, UUID] = {}
            for _ in range(MOST_RIVALS):
                for part in _parts(todo, INSERT_AT_ONCE):
                    stored = await connection.fetch(SQL["add_jobs"], *columns(part))
                    if sent_before:
                        await _without_finished(connection, stored)
                asked = [draft for draft in keyed if draft.id not in answers]
                for part in _parts(asked, INSERT_AT_ONCE):
                    keys = [draft.id for draft in part], [draft.tenant for draft in part], [draft.unique_key for draft in part]
                    answers |= {row["id"]: row["answer"] for row in await connection.fetch(SQL["resolve_jobs"], *keys) if row["answer"]}
                todo = [draft for draft in asked if draft.id not in answers]
                if not todo:
                    return answers
            # Each time the job that held the key finished between our two looks.
            raise StoreUnavailable("a unique key changed hands too often: repeat")

        answers = await self._lines.submit.run(work, atomic=True, patience=_patience(drafts))
        return [answers.get(draft.id, draft.id) for draft in drafts]

    # -- looking ------------------------------------------------------------------------------------------------------
    async def get(self, tenant: str, job_id: UUID) -> Job | None:
        row = await self._finding.ask((tenant, job_id))
        return None if row is None else job_of(row)

    async def page(self, wanted: JobFilter, limit: int, before: tuple[Micros, UUID] | None) -> list[Job]:
        query = listing.query(wanted, limit, before)
        if query is None:
            return []
        return [job_of(row) for row in await self._lines.read.fetch(query.text, *query.arguments)]

    async def matching(self, wanted: JobFilter, most: int) -> int:
        query = listing.count(wanted, most)
        counted: int = 0 if query is None else await self._lines.read.value(query.text, *query.arguments)
        return counted

    async def attempts(self, job_id: UUID) -> list[Attempt]:
        return [attempt_of(row) for row in await self._lines.read.fetch(SQL["list_attempts"], job_id)]

    async def count(self) -> list[QueueCount]:
        return [QueueCount(*row) for row in await self._lines.read.fetch(SQL["count_jobs"])]

    # -- changing -----------------------------------------------------------------------------------------------------
    async def cancel(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        for _ in range(MOST_RIVALS):
            row = await self._cancelling.ask((tenant, job_id), reason)
            if row is not None and row["reply"] == "outside":
                if await self._outside.cancel(tenant, job_id, reason):
                    return CancelReply.CANCELLED
                continue
            if row is not None:
                reply = CancelReply(row["reply"])
                if row["awaited"]:
                    self._bell.ring([DoneHint(job_id)])
                if reply is CancelReply.REQUESTED:
                    self._bell.ring([CancelHint(NodeId(row["node"]), job_id)])
                return reply
            if await self.get(tenant, job_id) is None:
                return CancelReply.MISSING
        raise StoreUnavailable(f"job {job_id} changes too fast to be cancelled: repeat")

    async def change(self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None) -> bool:
        row = await self._changing.ask((tenant, job_id), due_at, priority)
        if row is not None:
            self._bell.ring([JobHint(row["queue"], row["priority"], row["due_at"])])
        return row is not None

    async def revive(self, tenant: str, job_id: UUID, draft: JobDraft) -> bool:
        await self._queues.record({draft.queue})
        revived: bool = await self._reviving.ask((tenant, job_id), draft)
        if revived:
            self._bell.ring(lane_hints([draft]))
        return revived

    async def discard(self, tenant: str, job_id: UUID) -> bool:
        return await self._disposing.ask((tenant, job_id), "discarded") is not None


async def _without_finished(connection: Any, stored: list[Any]) -> list[Any]:
    """For drafts sent again, in the transaction that has just stored these rows: the statement may have waited for the end of such a job
    without seeing that it has finished. A later one sees it."""
    if not stored:
        return stored
    finished = {row["id"] for row in await connection.fetch(SQL["withdraw_finished"], [row["id"] for row in stored])}
    return [row for row in stored if row["id"] not in finished]


def _reviving(part: Part) -> Work[Answers]:
    async def work(connection: Any) -> Answers:
        drafts: dict[Subject, JobDraft] = {asked.subject: asked.values[0] for asked in part}
        tenants, ids = zip(*drafts, strict=True)
        rows = await connection.fetch(SQL["dispose_jobs"], tenants, ids, ["retried"] * len(ids))
        ours = {(row["tenant"], row["id"]) for row in rows}
        refused = await _add_revived(connection, {subject: drafts[subject] for subject in drafts if subject in ours})
        if refused:
            await connection.execute(SQL["undispose_jobs"], [job_id for _, job_id in refused])
        others = [subject for subject in drafts if subject not in ours]
        before = {subject: await connection.fetchval(SQL["revived_before"], *subject, drafts[subject].id) for subject in others}
        return {**dict.fromkeys(ours, True), **refused, **before}

    return work


async def _add_revived(connection: Any, drafts: dict[Subject, JobDraft]) -> dict[Subject, Conflict]:
    """Answers those whose unique key is taken."""
    if not drafts:
        return {}
    stored = {row["id"] for row in await connection.fetch(SQL["add_jobs"], *columns([*drafts.values()]))}
    rest = {draft.id: (subject, draft) for subject, draft in drafts.items() if draft.id not in stored}
    if not rest:
        return {}
    keys = [draft.tenant for _, draft in rest.values()], [draft.unique_key for _, draft in rest.values()]
    rows = await connection.fetch(SQL["resolve_jobs"], [*rest], *keys)
    return {rest[row["id"]][0]: _key_held(rest[row["id"]][1], row["answer"]) for row in rows if row["answer"] != row["id"]}


def _key_held(draft: JobDraft, holder: UUID | None) -> Conflict:
    return Conflict(f"job {holder} holds the unique key {draft.unique_key!r}: wait for it to finish, or cancel it")


def lane_hints(drafts: Iterable[JobDraft]) -> list[JobHint]:
    """One per lane, with its earliest due time."""
    earliest: dict[tuple[str, int], Micros] = {}
    for draft in drafts:
        lane = (draft.queue, draft.priority)
        if draft.due_at < earliest.get(lane, 1 << 62):
            earliest[lane] = draft.due_at
    return [JobHint(queue, priority, due_at) for (queue, priority), due_at in earliest.items()]


def columns(drafts: Sequence[JobDraft]) -> list[Any]:
    return [*zip(*drafts, strict=True), *_id_range(drafts)]


def _parts(drafts: Sequence[JobDraft], most: int) -> Iterator[Sequence[JobDraft]]:
    if len(drafts) <= most:
        yield drafts
        return
    for at in range(0, len(drafts), most):
        yield drafts[at : at + most]


def _patience(drafts: Sequence[JobDraft]) -> float:
    return PATIENCE + len(drafts) / RATE


def _id_range(drafts: Sequence[JobDraft]) -> tuple[UUID, UUID]:
    numbers = [draft.id.int for draft in drafts]
    return UUID(int=min(numbers)), UUID(int=max(numbers))
