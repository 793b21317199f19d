"""Jobs: storing them, and what callers ask about them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from duetime.errors import Conflict
from duetime.model.hint import CancelHint, lane_hints
from duetime.model.instant import Micros
from duetime.model.job import Attempt, CancelReply, Claimed, Job, JobDraft
from duetime.model.lease import NodeId
from duetime.model.permits import READY_PER_KEY, waiting_when_stored
from duetime.store import OfDeadNodes, OfNode, PastDeadline
from duetime.stores.external import cancellation
from duetime.stores.redis.connection import Argument, RedisConnection
from duetime.stores.redis.job_rows import attempt_of, job_of
from duetime.stores.redis.notifier import RedisNotifier, lane_hints_of
from duetime.stores.redis.rows import LiveRow, lane_name, needs_permit, row_rest, running_of, uuid_of
from duetime.stores.redis.settle import RedisSettlements


class RedisJobs:
    def __init__(
        self, connection: RedisConnection, notifier: RedisNotifier, settlements: RedisSettlements
    ) -> None:
        self._connection = connection
        self._notifier = notifier
        self._settlements = settlements

    async def add(self, drafts: Sequence[JobDraft], is_retry: bool = False) -> list[UUID]:
        if not drafts:
            return []
        waiting = await self._waiting(drafts)
        arguments, others = _add_arguments(drafts, waiting)
        hints = lane_hints(drafts)
        texts = self._notifier.send_along(hints)
        started, *stored = await self._connection.run(
            "add", len(texts), *texts, *arguments, publishes=bool(texts)
        )
        if not texts and not started:
            self._notifier.notify(hints)
        ids = [draft.id for draft in drafts]
        for place, job_id in zip(others, stored, strict=True):
            ids[place] = uuid_of(job_id)
        return ids

    async def _waiting(self, drafts: Sequence[JobDraft]) -> dict[UUID, str]:
        if (
            len(drafts) <= READY_PER_KEY
            or sum(draft.limit_key is not None for draft in drafts) <= READY_PER_KEY
        ):
            return {}
        return waiting_when_stored(drafts, await self._connection.time())

    async def get(self, tenant: str, job_id: UUID, announce: bool = False) -> Job | None:
        found = await self._connection.run("get_job", job_id.bytes, int(announce))
        job = None if found is None else job_of(found)
        return job if job is not None and job.tenant == tenant else None

    async def attempts(self, job_id: UUID) -> list[Attempt]:
        rows = await self._connection.run("list_attempts", job_id.bytes)
        return [attempt_of(job_id, row) for row in rows]

    async def cancel(self, tenant: str, job_id: UUID, reason: str) -> CancelReply:
        while True:
            match await self._connection.run("cancel", job_id.bytes, tenant, reason):
                case [b"requested", node]:
                    self._notifier.notify([CancelHint(NodeId(node), job_id)])
                    return CancelReply.REQUESTED
                case [b"external", row, attempt]:
                    if await self._cancel_external(job_id, LiveRow(row), attempt, reason):
                        return CancelReply.CANCELLED
                case [b"cancelled", lanes]:
                    self._notifier.notify(lane_hints_of(lanes, 0))
                    return CancelReply.CANCELLED
                case [outcome]:
                    return CancelReply(outcome.decode())

    async def _cancel_external(self, job_id: UUID, job: LiveRow, attempt: int, reason: str) -> bool:
        """False: a report came first."""
        now = await self._connection.time()
        ending = cancellation(job_id, attempt, job.due_at, job.failures, job.losses, now, reason)
        return not (await self._settlements.settle([ending], None)).refused

    async def reschedule(
        self, tenant: str, job_id: UUID, due_at: Micros | None, priority: int | None
    ) -> bool:
        found = await self._connection.run(
            "reschedule",
            job_id.bytes,
            tenant,
            "" if due_at is None else due_at,
            "" if priority is None else priority,
        )
        if found is None:
            return False
        moved, lanes = found
        self._notifier.notify(lane_hints_of(lanes, int(moved)))
        return True

    async def resolve_dead(self, tenant: str, job_id: UUID, retry: JobDraft | None) -> bool:
        arguments: list[Argument] = [] if retry is None else [retry.id.bytes, row_rest(retry)]
        reply = await self._connection.run("resolve_dead", job_id.bytes, tenant, *arguments)
        if isinstance(reply, bytes):
            assert retry is not None
            raise Conflict(
                f"job {uuid_of(reply)} holds the unique key {retry.unique_key!r}: wait for it to finish, or "
                "cancel it"
            )
        if reply and retry is not None:
            self._notifier.notify(lane_hints([retry]))
        return bool(reply)

    async def running_jobs(self, selection: OfNode | OfDeadNodes | PastDeadline, limit: int) -> list[Claimed]:
        match selection:
            case OfNode(node):
                which: tuple[Argument, ...] = ("node", limit, node)
            case OfDeadNodes():
                which = ("dead", limit)
            case _:
                which = ("deadline", limit)
        return [running_of(row) for row in await self._connection.run("running_jobs", *which)]


def _add_arguments(drafts: Sequence[JobDraft], waiting: dict[UUID, str]) -> tuple[list[Argument], list[int]]:
    """For `add.lua`; and the places of the drafts for which it returns an id."""
    groups: dict[tuple[str, int, str, str], list[tuple[Micros, bytes, bytes]]] = {}
    others: list[Argument] = []
    places: list[int] = []
    for place, draft in enumerate(drafts):
        if (
            draft.unique_key is None
            and draft.schedule is None
            and draft.due_at == draft.fire_time
            and draft.limit_key is None
        ):
            part = f"{int(needs_permit(draft))}{draft.target}"
            group = groups.setdefault((draft.queue, draft.priority, draft.tenant, part), [])
            group.append((draft.due_at, draft.id.bytes, row_rest(draft)))
        else:
            others += (draft.id.bytes, row_rest(draft), waiting.get(draft.id, ""))
            places.append(place)
    arguments: list[Argument] = [len(groups)]
    for (queue, priority, tenant, part), group in groups.items():
        arguments += (lane_name(queue, priority, tenant), f"{queue}\0{tenant}", part, len(group))
        group.sort()  # the server lists jobs by fire time, and sorts more slowly
        for due_at, job_id, row in group:
            arguments += (job_id, due_at, row)
    return [*arguments, len(places), *others], places
