"""Claims: which pending jobs become running under a node.

Nearly all jobs need no permit and are in a queue without limits: one script reads and starts them. Where
there are others, the script returns the candidates instead, `permits.decide` chooses among them, and a second
script executes the decision, unless something that it depended on has changed in between: then all is
repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

from duetime.model.hint import CancelHint
from duetime.model.ids import SEGMENTS, random_bytes
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.model.lease import NodeId
from duetime.model.limit import UNLIMITED
from duetime.model.permits import (
    READY_PER_KEY,
    SUPERSEDED,
    Candidate,
    Decision,
    KeyUse,
    QueueUse,
    Usage,
    decide,
    promotable,
    skip_reason,
)
from duetime.store import ClaimRequest, Claims, Due, DueJob, Lane
from duetime.stores.redis.connection import Argument, RedisConnection
from duetime.stores.redis.notifier import RedisNotifier, lane_hints_of
from duetime.stores.redis.offers import RedisOffers
from duetime.stores.redis.queues import restricted_of
from duetime.stores.redis.rows import candidate_of, claimed_of_all, lane_name, limit_of, started_of, uuid_of

WINDOW = 16 * READY_PER_KEY  # candidates beyond the room: keys that take turns
MAX_SWEPT = 500  # names of permits that one sweep looks at
MAX_STALE = 5  # decisions in a row that others overtook
JUST_NOW = SECOND // 20  # a start allowed within this time may have come too late for the last claim
KEY_USE = Struct(">qqq")  # spent_until, asks_at, served_at


class _Question(NamedTuple):
    """What `claim.lua` returns when there is something to decide."""

    candidates: dict[bytes, Candidate]
    usage: Usage
    limits: list[list[bytes]]
    keys: list[tuple[Argument, ...]]
    rivals: list[list[bytes]]
    queues: list[tuple[str, bytes, bytes]]


class RedisClaims:
    def __init__(self, connection: RedisConnection, notifier: RedisNotifier, offers: RedisOffers) -> None:
        self._connection = connection
        self._notifier = notifier
        self._offers = offers
        self._swept = b""

    async def claim(self, request: ClaimRequest) -> Claims:
        if not (request.lanes or request.tickets) or request.room <= 0:
            return Claims([])
        is_plain = not (request.sweep or request.tickets)
        if is_plain and (assigned := self._offers.take(request)):
            return Claims(assigned, more=True)  # the next claim asks the server
        if request.sweep and not request.urgent:
            await self._find_free_permits()
        arguments = _claim_arguments(request)
        for _ in range(MAX_STALE):
            reply = await self._connection.run("claim", *arguments, repeat=False)
            if reply[0] == b"taken":
                jobs = _taken(reply)
                if is_plain and len(jobs) < request.room:
                    self._offers.make(request)
                return Claims(jobs)
            if not reply[2]:
                return Claims([])
            claims = await self._decide(request, _question(reply))
            if claims is not None:
                return claims
        return Claims([], more=True)

    async def next_due(self, request: ClaimRequest) -> Micros | None:
        arguments: list[Argument] = [request.prefetch, len(request.targets), *request.targets]
        for lane in request.lanes:
            arguments += (lane_name(lane.queue, lane.priority, lane.tenant), lane.queue)
        now, due_at, held_up = await self._connection.run("next_due", *arguments)
        instants = [] if due_at is None else [int(due_at)]
        for row, spent in held_up:
            free_at = _free_at(QueueUse(restricted_of("", row), 0, int(spent)), int(now))
            instants += [] if free_at is None else [free_at]
        return min(instants, default=None)

    async def due_jobs(self, request: ClaimRequest) -> Due:
        segments = "".join(str(int(number in request.segments)) for number in range(SEGMENTS))
        arguments: list[Argument] = [request.prefetch, request.room, segments]
        for lane in request.lanes:
            arguments += (lane_name(lane.queue, lane.priority, lane.tenant), lane.queue, lane.low)
        end, lanes = await self._connection.run("due_jobs", *arguments)
        until = int(end)
        due: list[DueJob] = []
        later: list[Micros] = []
        for lane, kinds in zip(request.lanes, lanes, strict=True):
            found: list[DueJob] = []
            for bound, rows in enumerate(kinds):
                jobs = [_due_job(lane, row, bool(bound)) for row in rows]
                later += [job.due_at for job in jobs if job.due_at > until][:1]
                found += [job for job in jobs[: request.room] if job.due_at <= until]
            due += sorted(found, key=lambda job: job.due_at)
        return Due(due, min(later, default=None))

    async def _decide(self, request: ClaimRequest, question: _Question) -> Claims | None:
        """None: something that the decision depended on has changed."""
        permits = request.room if request.permits is None else request.permits
        candidates = list(question.candidates.values())
        decision = decide(candidates, question.usage, request.room, permits, request.keyed_first)
        plan = _plan(question, decision)
        reply = await self._connection.run("start", request.node, SUPERSEDED, *plan, repeat=False)
        if reply[0] == b"stale":
            return None
        started, promoted, stopped, hurried = reply[1:]
        self._notifier.notify(
            [
                *(CancelHint(NodeId(node), uuid_of(job_id)) for job_id, node in stopped),
                *lane_hints_of(hurried, question.usage.now),
                # For other nodes: this one has no room for them
                *(lane_hints_of(promoted, question.usage.now) if len(started) >= request.room else ()),
            ]
        )
        return Claims([started_of(row) for row in started], decision.set_aside or bool(promoted))

    async def _find_free_permits(self) -> None:
        """Jobs that wait although a permit is free: a limit was raised, or the settlement or claim that
        should have passed it on is lost."""
        now, rows = await self._connection.run("waited", self._swept, MAX_SWEPT)
        self._swept = rows[-1][0] if len(rows) == MAX_SWEPT else b""
        free: list[Argument] = []
        for name, is_key, target, limit_row, in_use, use in rows:
            if is_key == b"1":
                limit = limit_of(target.decode(), limit_row) if limit_row else UNLIMITED
                number = promotable(limit, _key_use(in_use, use), int(now))
            else:
                number = int(in_use == 0)
            free += (name, number) if number else ()
        if free:
            await self._connection.run("promote", *free)


def _claim_arguments(request: ClaimRequest) -> list[Argument]:
    arguments: list[Argument] = [request.node, request.room, request.prefetch, WINDOW]
    arguments += (len(request.targets), *request.targets, len(request.lanes))
    for lane in request.lanes:
        arguments += (lane_name(lane.queue, lane.priority, lane.tenant), lane.queue, lane.low)
    for ticket in request.tickets:
        arguments += (ticket.id.bytes, ticket.attempt)
    return arguments


def _taken(reply: list[Any]) -> list[Claimed]:
    if len(reply) == 1:
        return []
    return claimed_of_all(reply[1], reply[2], dict(reply[3]))


def _question(reply: list[Any]) -> _Question:
    _, now, rows, limits, keys, rivals, queues = reply
    candidates = {job_id: candidate_of(job_id, row) for job_id, row in rows}
    in_use = {
        name.decode(): QueueUse(restricted_of(name.decode(), row), running, int(spent))
        for name, row, running, spent in queues
    }
    usage = Usage(
        int(now),
        {target.decode(): limit_of(target.decode(), row) for target, row in limits},
        {key.decode(): _key_use(permits, use) for key, permits, use in keys},
        {uuid_of(job_id): uuid_of(rival) for job_id, rival in rivals if rival},
        in_use,
    )
    return _Question(
        candidates,
        usage,
        limits,
        [(name, permits, use) for name, permits, use in keys],
        rivals,
        [(name.decode(), row, spent) for name, row, _, spent in queues],
    )


def _plan(question: _Question, decision: Decision) -> list[Argument]:
    """For `start.lua`."""
    by_id = {job.id: job for job in question.candidates.values()}
    starts = Counter(by_id[job_id].queue for job_id in decision.start)
    in_use = question.usage.queues
    kinds: list[list[tuple[Argument, ...]]] = [
        [(target, row) for target, row in question.limits],
        question.keys,
        [
            (_bytes(question.candidates[job_id].schedule_id), job_id, rival)
            for job_id, rival in question.rivals
        ],
        [
            (name, row, spent, starts[name], in_use[name].queue.max_running or 0)
            for name, row, spent in question.queues
        ],
        [
            (job_id.bytes, random_bytes(16) if by_id[job_id].limit_key is not None else b"")
            for job_id in decision.start
        ],
        [(job_id.bytes, name) for job_id, name in decision.wait.items()],
        [(job_id.bytes, due_at) for job_id, due_at in decision.ask_at.items()],
        [(job_id.bytes, skip_reason(rival)) for job_id, rival in decision.skip.items()],
        [(job_id.bytes,) for job_id in decision.cancel],
        [(name, KEY_USE.pack(*use[1:])) for name, use in decision.keys.items()],
        [*decision.queues.items()],
        [*decision.promote.items()],
    ]
    plan: list[Argument] = []
    for rows in kinds:
        plan.append(len(rows))
        for row in rows:
            plan += row
    return plan


def _bytes(value: UUID | None) -> bytes:
    return b"" if value is None else value.bytes


def _key_use(permits: int, use: bytes) -> KeyUse:
    return KeyUse(permits, *(KEY_USE.unpack(use) if use else ()))


def _free_at(use: QueueUse, now: Micros) -> Micros | None:
    """When its rate allows the next start, if that is later, or so recent that the last claim came too
    early."""
    rate = use.queue.rate
    if rate is None:
        return None
    instant = rate.free_at(use.spent_until)
    return instant if instant > now - (JUST_NOW if rate.allowed(use.spent_until, now) else 0) else None


def _due_job(lane: Lane, row: Sequence[Any], bound: bool) -> DueJob:
    job_id, due_at, attempt = row
    return DueJob(uuid_of(job_id), attempt, lane.queue, lane.priority, lane.tenant, int(due_at), bound)
