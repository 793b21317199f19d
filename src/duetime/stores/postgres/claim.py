"""Claims. Jobs that need no permit are claimed by one statement; where others are due, `model.permits`
decides, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import Any
from uuid import UUID

from duetime.clock import monotonic_micros
from duetime.model.hint import CancelHint, DoneHint, Hint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.model.lease import NodeId
from duetime.model.permits import READY_PER_KEY, SUPERSEDED, Decision, decide, schedule_permit
from duetime.store import ClaimRequest, Claims, Due, DueJob
from duetime.stores.postgres.connection import PostgresConnection
from duetime.stores.postgres.connections import SQL, PostgresConnections
from duetime.stores.postgres.limits import (
    FreePermits,
    arguments_of,
    candidates_of,
    needs_decision,
    rate_of,
    usage_of,
)
from duetime.stores.postgres.notifier import Notifier, hint_of
from duetime.stores.postgres.rows import claimed_of

DEPTH = 8 * READY_PER_KEY  # jobs that a claim looks at beyond its room: keys that take turns
SPARE = 4  # candidates that it locks beyond its room, in place of those that cannot start
FLOOD_DEPTH = 1_000  # after a claim that made jobs wait: a flood must be set aside soon
PERMITS_EXPECTED_FOR = SECOND  # after a claim or settlement that met some
_due_at, _lane = itemgetter(4), itemgetter(5, 6, 17)  # of a claimed row


class ClaimPath:
    """What the last claim of a kind found. Claims and sweeps read different lanes."""

    def __init__(self) -> None:
        self.permits_until: Micros = (
            0  # jobs that need a permit were due: until then ask for candidates first
        )
        self.set_aside = False  # some jobs were made to wait: there may be many more


class PostgresClaims:
    def __init__(self, connections: PostgresConnections, notifier: Notifier) -> None:
        self._connections = connections
        self._notifier = notifier
        self._paths = {False: ClaimPath(), True: ClaimPath()}
        self._free_permits = FreePermits()

    async def claim(self, request: ClaimRequest) -> Claims:
        if request.tickets and request.room > 0:
            return await self._claim_named(request)
        if not request.lanes or request.room <= 0:
            return Claims([])
        connection = self._connections.sweep if request.sweep else self._connections.claim
        path = self._paths[request.sweep]
        promoted = (
            await self._free_permits.promote(connection) if request.sweep and not request.urgent else []
        )
        if promoted:
            self._notifier.notify([hint_of(row) for row in promoted])
        if monotonic_micros() >= path.permits_until:
            rows = await self._claim_plain(connection, request)
            if rows or not await self._needs_permits(connection, request):
                return Claims(in_order(request, rows), bool(promoted))
        jobs, more = await self._claim_with_permits(connection, request, path)
        return Claims(jobs, more or bool(promoted))

    async def next_due(self, request: ClaimRequest) -> Micros | None:
        queues, priorities, _, tenants = _lane_columns(request)
        rows = await self._connections.claim.fetch(
            SQL["next_due"], queues, priorities, tenants, request.prefetch, request.targets
        )
        found = [rows[0]["due_at"]]
        for row in rows[1:]:
            rate = rate_of(row["rate_count"], row["rate_period"])
            if rate is not None and not rate.allowed(row["spent_until"], row["now"]):
                found.append(rate.free_at(row["spent_until"]))
        return min((instant for instant in found if instant is not None), default=None)

    async def due_jobs(self, request: ClaimRequest) -> Due:
        rows = await self._connections.claim.fetch(
            SQL["due_jobs"], *_lane_columns(request), request.segments, request.prefetch, request.room
        )
        due = [DueJob(*row[1:]) for row in rows if row["is_due"]]
        return Due(due, min((row["due_at"] for row in rows if not row["is_due"]), default=None))

    async def _claim_named(self, request: ClaimRequest) -> Claims:
        """Nearly all need no permit. The others, and those of queues with limits, are decided about."""
        tickets = dict.fromkeys(request.tickets)
        connection = self._connections.claim
        values = (request.room, request.node, *zip(*tickets, strict=True), request.prefetch, request.targets)
        rows = await connection.fetch(SQL["claim_named"], *values, repeat=False)
        jobs, more = [claimed_of(row) for row in rows], False
        if len(jobs) < min(len(tickets), request.room):
            started = {job.id for job in jobs}
            others = tuple(ticket for ticket in tickets if ticket.id not in started)
            rest = replace(request, tickets=others, room=request.room - len(jobs))
            found, more = await self._claim_with_permits(connection, rest, ClaimPath())
            jobs += found
        place = {ticket.id: number for number, ticket in reversed([*enumerate(tickets)])}
        return Claims(sorted(jobs, key=lambda job: place[job.id]), more)

    async def _claim_plain(self, connection: PostgresConnection, request: ClaimRequest) -> list[Any]:
        statement, lanes = (
            ("claim_lane", request.lanes[0]) if len(request.lanes) == 1 else ("claim", _lane_columns(request))
        )
        values = (request.room, request.node, *lanes, request.prefetch, request.targets)
        # Not repeated after a lost reply: it would be unknown what the first try has claimed.
        return await connection.fetch(SQL[statement], *values, repeat=False)

    async def _needs_permits(self, connection: PostgresConnection, request: ClaimRequest) -> bool:
        queues, priorities, _, tenants = _lane_columns(request)
        needed: bool = await connection.value(
            SQL["needs_permits"], queues, priorities, tenants, request.prefetch
        )
        return needed

    async def _claim_with_permits(
        self, connection: PostgresConnection, request: ClaimRequest, path: ClaimPath
    ) -> Claims:
        depth, width = (
            (FLOOD_DEPTH, FLOOD_DEPTH) if path.set_aside else (request.room + DEPTH, request.room + SPARE)
        )
        permits = request.room if request.permits is None else request.permits
        asked = (
            request.node,
            request.room,
            depth,
            width,
            permits > 0,
            *_lane_columns(request),
            request.prefetch,
            request.targets,
        )

        async def work(connection: Any, _is_retry: bool) -> tuple[list[Any], Decision, list[Any], bool]:
            rows = await (
                self._named_candidates(connection, request, permits > 0)
                if request.tickets
                else connection.fetch(SQL["claim_candidates"], *asked)
            )
            decision = (
                decide(candidates_of(rows), usage_of(rows), request.room, permits, request.keyed_first)
                if rows
                else Decision()
            )
            news = await self._execute(connection, request.node, decision) if rows else []
            passed_over = bool(decision.cancel) and await self._ask_again(connection, decision.cancel)
            return rows, decision, news, passed_over

        rows, decision, news, passed_over = await connection.run(work, atomic=True, repeat=False)
        path.set_aside = decision.set_aside
        if any(map(needs_decision, rows)):
            path.permits_until = monotonic_micros() + PERMITS_EXPECTED_FOR
        # Other claims passed over the rows that this one had locked and left.
        left = set(decision.left)
        lanes = [hint_of(row) for row in rows if row["id"] in left]
        self._notifier.notify([*lanes, *hints_of(news)])
        more = not passed_over and (decision.set_aside or any(row["kind"] == "claimable" for row in news))
        return Claims(in_order(request, [row[2:] for row in news if row["kind"] == "started"]), more)

    async def _named_candidates(
        self, connection: Any, request: ClaimRequest, with_limit_key: bool
    ) -> list[Any]:
        tickets = zip(*request.tickets, strict=True)
        found: list[Any] = await connection.fetch(
            SQL["lock_named"], request.node, *tickets, request.prefetch, request.targets, with_limit_key
        )
        if not found:
            return []
        ids, queues = zip(*found, strict=True)
        values = (request.node, request.room, 0, 0, with_limit_key, queues, (), (), (), 0, (), ids)
        rows: list[Any] = await connection.fetch(SQL["named_candidates"], *values)
        return rows

    async def _execute(self, connection: Any, node: NodeId, decision: Decision) -> list[Any]:
        """Jobs that begin to wait can be promoted only by a later statement."""
        waiting = set(decision.wait.values())
        later = {name: number for name, number in decision.promote.items() if name in waiting}
        for name in later:
            del decision.promote[name]
        news: list[Any] = await connection.fetch(
            SQL["execute_decision"], node, *arguments_of(decision), SUPERSEDED
        )
        for row in await connection.fetch(SQL["promote"], [*later], [*later.values()]) if later else ():
            news.append({"kind": "claimable", **row})
        return news

    async def _ask_again(self, connection: Any, cancelled: set[UUID]) -> bool:
        """A job to cancel whose row was locked was passed over. The job that waits for it does not wait: a
        later claim, at the latest that of a sweep, decides about it again. Returns whether there is one."""
        passed_over = await connection.fetch(SQL["passed_over"], [*cancelled])
        if passed_over:
            names = [schedule_permit(row["schedule_id"]) for row in passed_over]
            await connection.fetch(SQL["promote"], names, [1] * len(names))
        return bool(passed_over)


def hints_of(news: Iterable[Any]) -> list[Hint]:
    """From rows of the type job_news."""
    hints: list[Hint] = []
    for row in news:
        match row["kind"]:
            case "claimable":
                hints.append(hint_of(row))
            case "done":
                hints.append(DoneHint(row["id"]))
            case "cancel":
                hints.append(CancelHint(NodeId(row["node"]), row["id"]))
    return hints


def _lane_columns(
    request: ClaimRequest,
) -> tuple[tuple[str, ...], tuple[int, ...], tuple[Micros, ...], tuple[str, ...]]:
    queues, priorities, lows, tenants = zip(*request.lanes, strict=True) if request.lanes else ((),) * 4
    return queues, priorities, lows, tenants


def in_order(request: ClaimRequest, rows: list[Any]) -> list[Claimed]:
    """Lanes in the order of the request, each by due_at: the server returns rows in any order. Most claims
    have rows of one lane only."""
    rows.sort(key=_due_at)
    if request.lanes and len(set(map(_lane, rows))) > 1:
        by_lane: dict[tuple[str, int, str], list[Any]] = {
            (lane.queue, lane.priority, lane.tenant): [] for lane in request.lanes
        }
        for row in rows:
            by_lane[_lane(row)].append(row)
        rows = list(chain.from_iterable(by_lane.values()))
    return [claimed_of(row) for row in rows]
