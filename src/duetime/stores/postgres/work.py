"""Claiming and settling: what workers ask of the store, thousands of jobs at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from duetime.clock import monotonic_micros
from duetime.model.attempt import Ending
from duetime.model.hint import CancelHint, DoneHint, Hint, JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.model.settle import Settlement
from duetime.store import ClaimRequest
from duetime.stores.postgres.bell import Bell
from duetime.stores.postgres.line import Line
from duetime.stores.postgres.lines import SQL, Lines
from duetime.stores.postgres.rows import claimed_of
from duetime.stores.postgres.turns import Turns, rates

_due_at, _lane = itemgetter(4), itemgetter(5, 6)  # of a row
_id, _kind = itemgetter(0), itemgetter(1, 6)  # of a settlement
WORTH_A_STATEMENT = 200  # settlements
SLOW = SECOND // 5  # a claim that takes longer looks at thousands that cannot start, and all others wait for it
BACKLOG_LASTS = 60 * SECOND


class Batch(NamedTuple):
    alike: Sequence[Settlement]  # successes, all of the same attempt number
    others: Sequence[Settlement]


class Work:
    def __init__(self, lines: Lines, bell: Bell) -> None:
        self._lines = lines
        self._bell = bell
        self._turns = {False: Turns(), True: Turns()}  # claims and sweeps ask for different lanes
        self._backlog_until: Micros = 0  # until then so many wait behind jobs of their schedules that claims go another way

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        if not request.lanes or request.room <= 0:
            return []
        line = self._lines.sweep if request.sweep else self._lines.claim
        turns = self._turns[request.sweep]
        in_turns = turns.wanted
        jobs = await (self._take_in_turns(line, request) if in_turns else self._take(line, request))
        # What was claimed shall not wait for this: the sweep comes by every second.
        looks_around = request.sweep and not request.urgent
        if (looks_around or not jobs) and (turns.exclusive_due or not in_turns):
            must_go_in_turns = await self._hold_back(line, request)
            if must_go_in_turns and not jobs and not in_turns:
                jobs = await self._take_in_turns(line, request)
        return jobs

    async def next_due(self, request: ClaimRequest) -> Micros | None:
        queues, priorities, _ = _columns(request)
        asked = (queues, priorities, request.prefetch, request.targets, *rates(request))
        due_at: Micros | None = await self._lines.claim.value(SQL["next_due"], *asked)
        return due_at

    async def begin(self, job_id: UUID, attempt: int) -> bool:
        return await self._lines.claim.count(SQL["begin"], job_id, attempt) == 1

    async def settle(self, settlements: Sequence[Settlement]) -> list[UUID]:
        if not settlements:  # the first ones need not wait until all that the statement concerns is known to the server
            await self._lines.settle.count(SQL["settle_successes"], (), 0, (), (), (), None)
            return []
        batch = _split(_each_attempt_once(settlements))
        written = await self._write_batch(batch)
        if written < len(batch.alike) + len(batch.others):
            # A row that was touched (asked to stop, say) between the statement's snapshot and its lock may escape it once.
            written += await self._write_batch(batch)
        return [] if written == len(settlements) else await self._refused(settlements)

    async def _take(self, line: Line, request: ClaimRequest) -> list[Claimed]:
        if not request.exclusive:
            statement = "claim_lane" if len(request.lanes) == 1 else "claim"
            return _in_order(request, await _run_claim(line, statement, request))
        began = monotonic_micros()
        try:
            rows = await _run_claim(line, "claim_past_backlog" if began < self._backlog_until else "claim_with_exclusive", request)
        except asyncpg.UniqueViolationError:
            # Another node started a job of the same schedule in this very moment. The next claim sees it.
            rows = await _run_claim(line, "claim", request)
        finally:
            # Also one that took so long that the server ended it.
            if (now := monotonic_micros()) - began > SLOW:
                self._backlog_until = now + BACKLOG_LASTS
        return _in_order(request, rows)

    async def _take_in_turns(self, line: Line, request: ClaimRequest) -> list[Claimed]:
        turns = self._turns[request.sweep]
        try:
            return await turns.take(line, request, exclusive=True)  # nothing is saved by leaving them out here
        except asyncpg.UniqueViolationError:
            return await turns.take(line, request, exclusive=False)

    async def _hold_back(self, line: Line, request: ClaimRequest) -> bool:
        """Whether a claim must go in turns. Jobs that run one at a time are judged on the way."""
        queues, priorities, _ = _columns(request)
        targets = request.targets if request.exclusive else ()
        rows = await line.fetch(SQL["hold_back"], request.node, queues, priorities, targets, request.prefetch)
        hints: list[Hint] = [
            DoneHint(row["id"]) if row["node"] is None else CancelHint(row["node"], row["id"]) for row in rows if row["id"] is not None
        ]
        if hints:
            self._bell.ring(hints)
        return any(row["id"] is None for row in rows)

    async def _write_batch(self, batch: Batch) -> int:
        written = await self._write_successes(batch.alike) if batch.alike else 0
        return written + (await self._write(batch.others) if batch.others else 0)

    async def _write_successes(self, alike: Sequence[Settlement]) -> int:
        columns = list(zip(*alike, strict=True))
        ids, results = columns[0], columns[9]
        # Mostly there are none, and an array is the dearest thing to send.
        of_each, of_all = ((), results[0]) if results.count(results[0]) == len(results) else (results, None)
        values = (ids, alike[0].attempt, columns[7], columns[8], of_each, of_all)
        written = await self._lines.settle.count(SQL["settle_successes"], *values)
        if self._lines.ended:
            ended, self._lines.ended = self._lines.ended, []
            self._bell.ring([DoneHint(job_id) for job_id in ended])
        return written

    async def _write(self, settlements: Sequence[Settlement]) -> int:
        rows = await self._lines.settle.fetch(SQL["settle"], *zip(*settlements, strict=True))
        self._bell.ring(hints_of(rows))
        return len(rows)

    async def _refused(self, settlements: Sequence[Settlement]) -> list[UUID]:
        ids, attempts, states, due, *_ = zip(*settlements, strict=True)
        return [row["id"] for row in await self._lines.settle.fetch(SQL["refused"], ids, attempts, states, due)]


def hints_of(settled: Iterable[Any]) -> list[Hint]:
    """Of those pending again the lane, of those that ended and are waited for the id."""
    hints: list[Hint] = []
    for row in settled:
        if row["queue"] is not None:
            hints.append(JobHint(row["queue"], row["priority"], row["due_at"]))
        elif row["awaited"]:
            hints.append(DoneHint(row["id"]))
    return hints


async def _run_claim(line: Line, statement: str, request: ClaimRequest) -> list[Any]:
    # Not repeated after a lost reply: nobody would know what the first try has claimed.
    lanes = request.lanes[0] if statement == "claim_lane" else _columns(request)
    values = (request.room, request.node, *lanes, request.prefetch, request.targets)
    rows: list[Any] = await line.run(lambda connection: connection.fetch(SQL[statement], *values), repeat=False)
    return rows


def _split(settlements: Sequence[Settlement]) -> Batch:
    """Successes take half the time if they are written by themselves; a few are not worth another wait for the disk."""
    kind, count = Counter(map(_kind, settlements)).most_common(1)[0]
    if kind[1] is not Ending.SUCCEEDED or count < min(WORTH_A_STATEMENT, len(settlements)):
        return Batch((), settlements)
    if count == len(settlements):
        return Batch(settlements, ())
    return Batch([one for one in settlements if _kind(one) == kind], [one for one in settlements if _kind(one) != kind])


def _each_attempt_once(settlements: Sequence[Settlement]) -> Sequence[Settlement]:
    """The first decision about each: one statement would write them all, since none sees what the others do."""
    if len(set(map(_id, settlements))) == len(settlements):
        return settlements
    return list({settlement[:2]: settlement for settlement in reversed(settlements)}.values())


def _columns(request: ClaimRequest) -> tuple[tuple[str, ...], tuple[int, ...], tuple[Micros, ...]]:
    queues, priorities, lows = zip(*request.lanes, strict=True) if request.lanes else ((), (), ())
    return queues, priorities, lows


def _in_order(request: ClaimRequest, rows: list[Any]) -> list[Claimed]:
    """The server answers in the order of the heap. Most claims meet one lane only."""
    rows.sort(key=_due_at)
    if len(set(map(_lane, rows))) > 1:
        by_lane: dict[tuple[str, int], list[Any]] = {(lane.queue, lane.priority): [] for lane in request.lanes}
        for row in rows:
            by_lane[_lane(row)].append(row)
        rows = list(chain.from_iterable(by_lane.values()))
    return [claimed_of(row) for row in rows]
