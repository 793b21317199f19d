"""Claims where gates or limited queues play a part: a function of the server locks, counts and takes, all in one round trip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from duetime.clock import monotonic_micros, noise, pause
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.store import ClaimRequest
from duetime.stores.postgres.line import Line
from duetime.stores.postgres.lines import SQL
from duetime.stores.postgres.rows import claimed_of

Gates = tuple[Sequence[str], Sequence[int], Sequence[str], Sequence[str]]  # queue, priority, target and name of each
WIDTH = len(Claimed._fields)
START = ("", "")
MOST_WALKS = 10  # of five hundred gates each, before a claim gives up for now
WALK_EVERY = SECOND // 10  # a gate that is new may be hidden behind the flood of others for so long, if there is anything else to do
LONGEST_REST = SECOND // 100
NO_GATES: Gates = ((), (), (), ())


class Answer(NamedTuple):
    rows: list[Any]
    busy: bool  # somebody else was at a gate or queue


class Turns:
    def __init__(self) -> None:
        self.wanted = False  # the last look found gates or limited queues: go this way first
        self.exclusive_due = False  # and jobs that run one at a time
        self._position = START  # target and gate up to which the last walk came
        self._known = NO_GATES  # what it met
        self._walked_at: Micros = 0
        self._rest_until: Micros = 0

    async def take(self, line: Line, request: ClaimRequest, exclusive: bool) -> list[Claimed]:
        """A claim that leaves room has taken all there was: the next one rests first, about as long as this one took, so that what becomes
        free meanwhile is taken together."""
        rest = self._rest_until - monotonic_micros()
        if rest > 0:
            await pause(rest / SECOND)
        began = monotonic_micros()
        jobs = await self._search(line, request, exclusive)
        if len(jobs) < request.room:
            ended = monotonic_micros()
            self._rest_until = ended + min(ended - began, LONGEST_REST)
        return jobs

    async def _search(self, line: Line, request: ClaimRequest, exclusive: bool) -> list[Claimed]:
        """One walk may see a part of the gates only: while nothing is found, it goes on until it has come round."""
        began, came_round, walk = self._position, False, monotonic_micros() - self._walked_at > WALK_EVERY
        for _ in range(MOST_WALKS):
            rows = await self._look(line, request, exclusive, walk)
            if rows or (self._position == START and (began == START or came_round)):
                return in_order(request, [claimed_of(row[:WIDTH]) for row in rows])
            came_round, walk = came_round or self._position == START, True
        return []

    async def _look(self, line: Line, request: ClaimRequest, exclusive: bool, walk: bool) -> list[Any]:
        rows, busy = await self._ask(line, request, exclusive, walk, patient=False)
        if busy and not rows:
            # Whoever was there before may leave something, and nobody else would come to look for it.
            rows, _ = await self._ask(line, request, exclusive, walk=False, patient=True)
        return rows

    async def _ask(self, line: Line, request: ClaimRequest, exclusive: bool, walk: bool, patient: bool) -> Answer:
        queues, priorities, lows = zip(*request.lanes, strict=True)
        bounds = [(bound.target, bound.most, bound.ahead, *(bound.rate or (None, None))) for bound in request.bounds if any(bound[1:3])]
        by_target = zip(*bounds, strict=True) if bounds else ((), (), (), (), ())
        chance = int(noise() * (1 << 62))  # who goes first where not everybody can
        asked = (request.room, request.node, queues, priorities, lows, request.prefetch, request.targets, exclusive, *by_target)
        values = (*asked, request.fresh, patient, walk, *self._position, chance, *self._known)
        # Not repeated after a lost reply: nobody would know what the first try has claimed.
        rows: list[Any] = await line.run(lambda connection: connection.fetch(SQL["claim_in_turns"], *values), repeat=False)
        if not rows:  # a node without a lease
            self._position = START
            return Answer([], False)
        last = rows.pop()
        self.wanted, self.exclusive_due = last["begun"], last["overlap"] is not None
        if last["attempt"]:
            self._remember(request, last)
        return Answer(rows, last["cancel_requested"])

    def _remember(self, request: ClaimRequest, walked: Any) -> None:
        self._position, self._walked_at = (walked["target"], walked["gate"]), monotonic_micros()
        lanes = [request.lanes[place - 1] for place in walked["seen_lanes"] or ()]
        queues, priorities = [lane.queue for lane in lanes], [lane.priority for lane in lanes]
        self._known = (queues, priorities, walked["seen_targets"] or (), walked["seen_gates"] or ())


def in_order(request: ClaimRequest, jobs: list[Claimed]) -> list[Claimed]:
    """Lanes as they were asked for; within a lane one job of each gate, then the second of each, and so on."""
    rank = {(lane.queue, lane.priority): place for place, lane in enumerate(request.lanes)}
    jobs.sort(key=lambda job: job.due_at)
    turns: Counter[tuple[int, str | None]] = Counter()
    places: list[tuple[int, int]] = []
    for job in jobs:
        lane = rank[job.queue, job.priority]
        turns[lane, job.gate] += 1
        places.append((lane, turns[lane, job.gate]))
    return [jobs[at] for at in sorted(range(len(jobs)), key=places.__getitem__)]


def rates(request: ClaimRequest) -> tuple[list[str], list[int], list[int]]:
    """The bounds that have one: targets, counts and periods."""
    limited = [(bound.target, *bound.rate) for bound in request.bounds if bound.rate is not None]
    targets, counts, periods = zip(*limited, strict=True) if limited else ((), (), ())
    return list(targets), list(counts), list(periods)
