"""Places at a gate. A node that alone holds what runs of a gate may have claimed more of it than may run at once: those wait here, so that
the next one starts the moment a place is free, and not a settlement and a claim later."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from duetime.invoker import Handler
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed
from duetime.model.limit import Bound

AHEAD = SECOND // 10  # work to have at hand behind each place: more than a settlement and a claim take on a busy machine
MOST_TURNS = 15  # jobs behind one place, however short they are
MOST_AHEAD = 320  # and behind one gate
PASSED = 64  # later jobs that may go before one for each step of priority between them
LET_GO = 2  # places fewer to hold something behind, for each that is one too many
LEAST_PART = 0.01
RECENT = 8  # jobs that make up most of the average


class Gate:
    __slots__ = ("arrivals", "taken", "waiting")

    def __init__(self) -> None:
        self.taken = 0  # by jobs that run here, or will as soon as there is a slot
        self.arrivals = 0
        self.waiting: list[tuple[int, int, Claimed]] = []  # a heap


class Places:
    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        limits = {target: handler.limit for target, handler in handlers.items() if handler.limit is not None}
        self._mosts = {target: limit.most for target, limit in limits.items() if limit.most is not None}
        self._rated = {target for target, limit in limits.items() if limit.parsed_rate is not None}
        self._gates: dict[str, Gate] = {}
        self._taken = dict.fromkeys(self._mosts, 0)  # by target
        self.part = 0.0  # of the jobs that come, those that need a place
        self._takes: dict[str, float] = {}  # microseconds: how long the last jobs of a target took

    def admit(self, jobs: list[Claimed]) -> list[Claimed]:
        """Those that may start now; the others wait here."""
        return [job for job in jobs if self._enters(job)] if self._mosts else jobs

    def leave(self, job: Claimed) -> Claimed | None:
        """One that was admitted has ended, or will not start. Answers who takes its place."""
        gate = None if job.gate is None else self._gates.get(job.gate)
        if gate is None or job.gate is None:
            return None
        if gate.waiting:
            return heappop(gate.waiting)[2]
        gate.taken -= 1
        self._taken[job.target] -= 1
        if not gate.taken:
            del self._gates[job.gate]
        return None

    def came(self, jobs: list[Claimed]) -> None:
        if self._mosts:
            part = sum(job.gate is not None and job.target in self._mosts for job in jobs) / len(jobs)
            self.part = part if part > self.part else (self.part + part) / 2 if part or self.part > LEAST_PART else 0.0

    def waiting_behind(self, job: Claimed) -> int:
        gate = None if job.gate is None else self._gates.get(job.gate)
        return 0 if gate is None else len(gate.waiting)

    def waiting(self) -> list[Claimed]:
        return [job for gate in self._gates.values() for _, _, job in gate.waiting]

    def forget(self, gone: set[int]) -> None:
        """Those that wait here and will not start, each by its identity."""
        for gate in self._gates.values():
            if gate.waiting:
                gate.waiting = [entry for entry in gate.waiting if id(entry[2]) not in gone]
                heapify(gate.waiting)

    def _enters(self, job: Claimed) -> bool:
        most = None if job.gate is None else self._mosts.get(job.target)
        if most is None or job.gate is None:
            return True
        gate = self._gates.get(job.gate)
        if gate is None:
            gate = self._gates[job.gate] = Gate()
        if gate.taken < most:
            gate.taken += 1
            self._taken[job.target] += 1
            return True
        gate.arrivals += 1
        # An urgent one goes first, but nobody is passed for ever.
        heappush(gate.waiting, (gate.arrivals - PASSED * job.priority, gate.arrivals, job))
        return False

    # -- how much to claim ahead --------------------------------------------------------------------------------------
    def took(self, job: Claimed, duration: Micros) -> None:
        if job.target in self._mosts:
            known = self._takes.get(job.target, float(duration))
            self._takes[job.target] = known + (duration - known) / RECENT

    def ahead(self, target: str) -> int:
        """How many more of one gate to claim than may run at once, as long as nobody else holds any."""
        most = self._mosts.get(target, 0)
        # What a rate allows is counted when it is claimed, so it must start then.
        return 0 if target in self._rated else min(most * self._turns(target), MOST_AHEAD)

    def soon(self, slots: int) -> int:
        """How many to hold behind the places that are taken now. If that is more places than slots, so much fewer that some gates run dry
        and go to a node that has slots for them."""
        taken = sum(self._taken.values())
        behind = sum(taken * self._turns(target) for target, taken in self._taken.items() if target not in self._rated)
        return behind if taken <= slots else behind * max(0, slots - LET_GO * (taken - slots)) // taken

    def bounds(self, bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
        return tuple(bound._replace(ahead=self.ahead(bound.target)) for bound in bounds) if self._takes else bounds

    def _turns(self, target: str) -> int:
        """Jobs that one place will have within a moment, beyond the first: none where they take long."""
        takes = self._takes.get(target)
        return 0 if takes is None else min(round(AHEAD / max(takes, 1.0)), MOST_TURNS)
