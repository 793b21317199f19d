"""Jobs as callers see them: stored, looked up, cancelled, rescheduled, retried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from duetime.clock import wall_micros
from duetime.errors import Conflict, StoreUnavailable
from duetime.model.hint import CancelHint, DoneHint, JobHint, lane_hints
from duetime.model.instant import Micros
from duetime.model.job import Attempt, CancelReply, Job, JobDraft, JobFilter
from duetime.model.lease import NodeId
from duetime.model.permits import waiting_when_stored
from duetime.stores.hint_text import encode
from duetime.stores.postgres import listing
from duetime.stores.postgres.batching import Batch, Batcher, Replies, Subject, by_statement
from duetime.stores.postgres.connection import CALL_TIMEOUT, PostgresConnection, Work
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.postgres.copy_encoder import COLUMNS, encode_in_chunks
from duetime.stores.postgres.external import ExternalJobs
from duetime.stores.postgres.notifier import Notifier
from duetime.stores.postgres.queues import PostgresQueues
from duetime.stores.postgres.rows import attempt_of, job_of

MIN_COPY = 40  # drafts: fewer are stored faster by one INSERT
COPY_CHUNK = 20_000
INSERT_CHUNK = 5_000  # the server checks each draft: so many are done long before the statement timeout
MIN_DRAFTS_PER_SECOND = 10_000  # of a slow server
MAX_RACES = 10
NO_ONE_WAITS: Mapping[UUID, str] = {}


class PostgresJobs:
    def __init__(
        self,
        connections: PostgresConnections,
        notifier: Notifier,
        queues: PostgresQueues,
        external: ExternalJobs,
    ) -> None:
        self._connections = connections
        self._get = Batcher(connections.read, by_statement(listing.BY_ID, "id", listing.ONE))
        self._cancel = Batcher(connections.submit, by_statement(SQL["cancel_jobs"], "id"))
        self._reschedule = Batcher(connections.submit, by_statement(SQL["reschedule_jobs"], "id"))
        self._resolve = Batcher(connections.submit, _resolve_dead_jobs, atomic=True)
        self._notifier = notifier
        self._queues = queues
        self._external = external

    # -- storing
    async def add(self, drafts: Sequence[JobDraft], is_retry: bool = False) -> list[UUID]:
        if not drafts:
            return []
        await self._queues.record(drafts)
        if len(drafts) == 1 and await self.add_one(drafts[0], is_retry):
            return [drafts[0].id]
        keyed = [draft for draft in drafts if draft.unique_key is not None]
        waiting = waiting_when_stored(drafts, wall_micros())
        if keyed or len(drafts) == 1:
            ids = await self._add_keyed(drafts, keyed, waiting, is_retry)
        else:
            copied = len(drafts) >= MIN_COPY and not is_retry and await self._copy(drafts, waiting)
            if not copied:
                await self._insert(drafts, waiting, is_retry or len(drafts) >= MIN_COPY)
            ids = [draft.id for draft in drafts]
        self._notifier.notify(lane_hints(drafts))
        return ids

    async def add_one(self, draft: JobDraft, is_retry: bool) -> bool:
        """False when its id is known or its key is taken."""
        hint = JobHint(draft.queue, draft.priority, draft.due_at, draft.tenant)
        sent = self._notifier.piggyback(hint)
        statement = SQL["add_job" if draft.unique_key is None else "add_keyed_job"]

        async def work(connection: Any, repeated: bool) -> Any:
            if repeated or is_retry:
                stored = await self._connections.submit.in_transaction(
                    connection, _add_again([draft], NO_ONE_WAITS)
                )
                return {"soon": True, "sent": False} if stored else None
            row = await connection.fetchrow(statement, *draft, None if sent is None else encode(sent))
            return None if row is None else {"soon": row["soon"], "sent": sent is not None}

        try:
            stored = await self._connections.submit.run(work)
        except asyncpg.UniqueViolationError:
            return False
        if stored is not None and stored["soon"]:
            if sent is None or not stored["sent"]:
                self._notifier.notify_job(hint)
            else:
                self._notifier.sent(sent)
        return stored is not None

    async def _insert(self, drafts: Sequence[JobDraft], waiting: Mapping[UUID, str], is_retry: bool) -> None:
        submit = self._connections.submit

        async def work(connection: Any, repeated: bool) -> None:
            for chunk in _chunks(drafts, INSERT_CHUNK):
                if repeated or is_retry:
                    await submit.in_transaction(connection, _add_again(chunk, waiting))
                else:
                    await connection.execute(SQL["add_jobs"], *columns(chunk, waiting))

        await submit.run(work, atomic=len(drafts) > INSERT_CHUNK, timeout=_timeout(drafts))

    async def _copy(self, drafts: Sequence[JobDraft], waiting: Mapping[UUID, str]) -> bool:
        """COPY cannot leave out jobs that are stored already. False when it may have met some."""

        async def work(connection: Any, repeated: bool) -> bool:
            if repeated or await connection.fetchval(SQL["any_finished"], *_id_range(drafts)):
                return False
            for chunk in _chunks(drafts, COPY_CHUNK):
                rows = encode_in_chunks(chunk, waiting)
                await connection.copy_to_table(
                    "jobs", schema_name="duetime", columns=COLUMNS, source=rows, format="binary"
                )
            return True

        try:
            return await self._connections.submit.run(
                work, atomic=len(drafts) > COPY_CHUNK, timeout=_timeout(drafts)
            )
        except asyncpg.UniqueViolationError:
            return False

    async def _add_keyed(
        self,
        drafts: Sequence[JobDraft],
        keyed: Sequence[JobDraft],
        waiting: Mapping[UUID, str],
        is_retry: bool,
    ) -> list[UUID]:
        """Stores what can be stored, then finds for each other draft the job that holds its key."""

        async def work(connection: Any, repeated: bool) -> dict[UUID, UUID]:
            missing, holders = drafts, dict[UUID, UUID]()
            for _ in range(MAX_RACES):
                for chunk in _chunks(missing, INSERT_CHUNK):
                    if repeated or is_retry:
                        await _add_again(chunk, waiting)(connection, True)
                    else:
                        await connection.execute(SQL["add_jobs"], *columns(chunk, waiting))
                unknown = [draft for draft in keyed if draft.id not in holders]
                for chunk in _chunks(unknown, INSERT_CHUNK):
                    holders |= await _holders(connection, chunk)
                missing = [draft for draft in unknown if draft.id not in holders]
                if not missing:
                    return holders
            # Each time the job that held the key finished between the two statements.
            raise StoreUnavailable("a unique key changed hands too often: repeat")

        holders = await self._connections.submit.run(work, atomic=True, timeout=_timeout(drafts))
        return [holders.get(draft.id, draft.id) for draft in drafts]

    # -- reading
    async def get(self, tenant: str, job_id: UUID, announce: bool = False) -> Job | None:
        if announce:
            row = await self._connections.submit.row(SQL["await_job"], tenant, job_id)
            if row is not None and row["claimable"]:
                self._notifier.notify([JobHint(row["queue"], row["priority"], row["due_at"], tenant)])
        row = await self._get.submit((tenant, job_id))
        return None if row is None else job_of(row)

    async def page(self, wanted: JobFilter, limit: int, before: UUID | None = None) -> list[Job]:
        query = listing.query(wanted, limit, before)
        if query is None:
            return []
        reader = self._reader(wanted)
        return [job_of(row) for row in await reader.fetch(query.text, *query.arguments)]

    async def count(self, wanted: JobFilter, limit: int) -> int:
        query = listing.count(wanted, limit)
        if query is None:
            return 0
        counted: int = await self._reader(wanted).value(query.text, *query.arguments)
        return counted

    def _reader(self, wanted: JobFilter) -> PostgresConnection:
        return self._connections.search if wanted.is_search else self._connections.read

    async def attempts(self, job_id: UUID) -> list[Attempt]:
        return [attempt_of(row) for row in await self._connections.read.fetch(SQL["list_attempts"], job_id)]

    # -- changing
    async def cancel(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        for _ in range(MAX_RACES):
            row = await self._cancel.submit((tenant, job_id), reason)
            if row is None:
                if await self.get(tenant, job_id) is None:
                    return CancelReply.MISSING
            elif row["reply"] != "external":
                return await self._cancelled(row)
            elif await self._external.cancel(tenant, job_id, reason):
                return CancelReply.CANCELLED
        raise StoreUnavailable(f"job {job_id} changes too fast to be cancelled: repeat")

    async def _cancelled(self, row: Any) -> CancelReply:
        reply = CancelReply(row["reply"])
        if row["awaited"]:
            self._notifier.notify([DoneHint(row["id"])])
        if reply is CancelReply.REQUESTED:
            self._notifier.notify([CancelHint(NodeId(row["node"]), row["id"])])
        if row["names"]:
            promoted = await self._connections.submit.fetch(
                SQL["promote"], row["names"], [1] * len(row["names"])
            )
            self._notifier.notify([JobHint(*job) for job in promoted])
        return reply

    async def reschedule(
        self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None
    ) -> bool:
        row = await self._reschedule.submit((tenant, job_id), due_at, priority)
        if row is not None:
            self._notifier.notify([JobHint(row["queue"], row["priority"], row["due_at"], tenant)])
        return row is not None

    async def resolve_dead(self, tenant: str, job_id: UUID, retry: JobDraft | None) -> bool:
        if retry is not None:
            await self._queues.record([retry])
        resolved = bool(await self._resolve.submit((tenant, job_id), retry))
        if resolved and retry is not None:
            self._notifier.notify(lane_hints([retry]))
        return resolved


def _add_again(drafts: Sequence[JobDraft], waiting: Mapping[UUID, str]) -> Work[int]:
    """For repeated drafts, in a transaction. The statement may have waited for the end of such a job without
    seeing that it has finished; a later statement sees it. Returns how many were stored."""

    async def work(connection: Any, _is_retry: bool) -> int:
        stored = await connection.fetch(SQL["add_jobs"], *columns(drafts, waiting))
        finished = (
            await connection.fetch(SQL["withdraw_finished"], [row["id"] for row in stored]) if stored else []
        )
        return len(stored) - len(finished)

    return work


async def _holders(connection: Any, drafts: Sequence[JobDraft]) -> dict[UUID, UUID]:
    """For each draft the job that stands for it: itself, or the job that holds its unique key."""
    keys = (
        [draft.id for draft in drafts],
        [draft.tenant for draft in drafts],
        [draft.unique_key for draft in drafts],
    )
    return {
        row["id"]: row["holder"]
        for row in await connection.fetch(SQL["holders_of_keys"], *keys)
        if row["holder"]
    }


def _resolve_dead_jobs(batch: Batch) -> Work[Replies]:
    async def work(connection: Any, _is_retry: bool) -> Replies:
        retries: dict[Subject, JobDraft | None] = {request.subject: request.values[0] for request in batch}
        tenants, ids = zip(*retries, strict=True)
        dispositions = ["discarded" if retry is None else "retried" for retry in retries.values()]
        rows = await connection.fetch(SQL["resolve_dead_jobs"], tenants, ids, dispositions)
        resolved = {(row["tenant"], row["id"]) for row in rows}
        conflicts = await _store_retries(
            connection, {subject: retry for subject in resolved if (retry := retries[subject]) is not None}
        )
        if conflicts:
            await connection.execute(SQL["reopen_dead_jobs"], [job_id for _, job_id in conflicts])
        earlier = {
            subject: await connection.fetchval(SQL["retried_before"], *subject, retry.id)
            for subject, retry in retries.items()
            if subject not in resolved and retry is not None
        }
        return {**dict.fromkeys(resolved, True), **conflicts, **earlier}

    return work


async def _store_retries(connection: Any, retries: dict[Subject, JobDraft]) -> dict[Subject, Conflict]:
    """Returns those whose unique key is taken."""
    if not retries:
        return {}
    stored = {
        row["id"]
        for row in await connection.fetch(SQL["add_jobs"], *columns([*retries.values()], NO_ONE_WAITS))
    }
    missing = {subject: draft for subject, draft in retries.items() if draft.id not in stored}
    holders = await _holders(connection, [*missing.values()]) if missing else {}
    return {
        subject: _key_held(draft, holders.get(draft.id))
        for subject, draft in missing.items()
        if holders.get(draft.id) != draft.id
    }


def _key_held(draft: JobDraft, holder: UUID | None) -> Conflict:
    return Conflict(
        f"job {holder} holds the unique key {draft.unique_key!r}: wait for it to finish, or cancel it"
    )


def columns(drafts: Sequence[JobDraft], waiting: Mapping[UUID, str]) -> list[Any]:
    return [*zip(*drafts, strict=True), [waiting.get(draft.id) for draft in drafts], *_id_range(drafts)]


def _chunks(drafts: Sequence[JobDraft], size: int) -> Iterator[Sequence[JobDraft]]:
    if len(drafts) <= size:
        yield drafts
        return
    for at in range(0, len(drafts), size):
        yield drafts[at : at + size]


def _timeout(drafts: Sequence[JobDraft]) -> float:
    return CALL_TIMEOUT + len(drafts) / MIN_DRAFTS_PER_SECOND


def _id_range(drafts: Sequence[JobDraft]) -> tuple[UUID, UUID]:
    numbers = [draft.id.int for draft in drafts]
    return UUID(int=min(numbers)), UUID(int=max(numbers))
