"""Jobs under one permit run one after the other: a node may hold the next job before the one before has
ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import ceil
from uuid import UUID

from duetime.model.hint import JobHint
from duetime.model.instant import Micros
from duetime.model.job import Claimed, State
from duetime.model.settle import Settlement

# Settlements that are decided and not yet written, each with its job.


_PENDING = State.PENDING


class Outbox:
    def __init__(self, on_first: Callable[[], None]) -> None:
        self._on_first = on_first
        self._settlements: list[Settlement] = []
        self._jobs: list[Claimed] = []
        self._hints: dict[
            tuple[str, int], Micros
        ] = {}  # lane -> from when on a settlement leaves something to claim there
        self.limited_queues: frozenset[str] = (
            frozenset()
        )  # where the end of any job may let the next one start

    def __len__(self) -> int:
        return len(self._settlements)

    def add(self, job: Claimed, settlement: Settlement) -> None:
        if self.limited_queues and job.queue in self.limited_queues:
            self._hint(job, 0)
        elif settlement.state is _PENDING:
            self._hint(job, settlement.due_at)
        self._settlements.append(settlement)
        self._jobs.append(job)
        if len(self._settlements) == 1:
            self._on_first()

    def batch(self, limit: int) -> tuple[list[Settlement], list[Claimed]]:
        return self._settlements[:limit], self._jobs[:limit]

    def written(self, number: int) -> None:
        """The first so many are in the store."""
        del self._settlements[:number], self._jobs[:number]

    def attempts(self) -> set[tuple[UUID, int]]:
        return {(settlement.id, settlement.attempt) for settlement in self._settlements}

    def with_limit_key(self) -> int:
        return sum(job.limit_key is not None for job in self._jobs)

    def unwritten(self) -> list[tuple[Settlement, Claimed]]:
        return list(zip(self._settlements, self._jobs, strict=True))

    def restore(self, unwritten: Sequence[tuple[Settlement, Claimed]]) -> None:
        """What an earlier session of this node could not write."""
        for settlement, job in unwritten:
            self.add(job, settlement)

    def take_hints(self) -> list[JobHint]:
        hints, self._hints = self._hints, {}
        return [JobHint(queue, priority, due_at) for (queue, priority), due_at in hints.items()]

    def _hint(self, job: Claimed, due_at: Micros) -> None:
        lane = (job.queue, job.priority)
        self._hints[lane] = min(due_at, self._hints.get(lane, due_at))


MAX_PER_PERMIT = 8
MIN_SHARE = 0.1  # a settlement shorter than this share of a job is not worth holding the next one
RECENT_CHAINS = 8  # jobs that make up most of the average duration


class PermitChains:
    def __init__(self) -> None:
        self._behind: dict[
            UUID, deque[Claimed]
        ] = {}  # by permit: one job of it runs or is about to, these follow
        self._durations: dict[str, float] = {}  # by target, in microseconds: average of recent jobs

    def __len__(self) -> int:
        """Permits of limit keys that this node holds."""
        return len(self._behind)

    def admit(self, jobs: Sequence[Claimed]) -> list[Claimed]:
        """Those that may start now."""
        return [job for job in jobs if job.limit_key is None or self._enters(job, job.permit or job.id)]

    def leave(self, job: Claimed, duration: Micros | None) -> Claimed | None:
        """A job that was admitted has ended, or will not start. Returns the one that follows."""
        if duration is not None:
            known = self._durations.get(job.target, float(duration))
            self._durations[job.target] = known + (duration - known) / RECENT_CHAINS
        following = self._behind.get(permit := job.permit or job.id)
        if following:
            return following.popleft()
        self._behind.pop(permit, None)
        return None

    def waiting(self) -> list[Claimed]:
        return [job for following in self._behind.values() for job in following]

    def forget(self, gone: set[int]) -> None:
        for following in self._behind.values():
            for job in [job for job in following if id(job) in gone]:
                following.remove(job)

    def wanted(self, jobs: Sequence[Claimed], settle_time: float) -> dict[UUID, int]:
        """How many successors to ask for in place of each settled job: one, and as many as end while they are
        on their way."""
        wanted: dict[UUID, int] = {}
        coming: dict[UUID, int] = {}
        for job in jobs:
            if job.limit_key is None:
                wanted[job.id] = 1
                continue
            permit = job.permit or job.id
            held = coming.get(permit)
            if held is None:
                held = 1 + len(self._behind[permit]) if permit in self._behind else 0
            duration = max(self._durations.get(job.target, 1e9), 1.0)
            wanted[job.id] = max(
                0, min(1 + ceil(2 * settle_time / duration - MIN_SHARE), MAX_PER_PERMIT) - held
            )
            coming[permit] = held + wanted[job.id]
        return wanted

    def _enters(self, job: Claimed, permit: UUID) -> bool:
        if permit in self._behind:
            self._behind[permit].append(job)
            return False
        self._behind[permit] = deque()
        return True
