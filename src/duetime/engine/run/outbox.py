"""Settlements that are decided and not yet written, each with its job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from duetime.model.hint import JobHint
from duetime.model.instant import Micros
from duetime.model.job import Claimed, State
from duetime.model.settle import Settlement

_PENDING = State.PENDING


class Outbox:
    def __init__(self, on_first: Callable[[], None]) -> None:
        self._on_first = on_first
        self._settlements: list[Settlement] = []
        self._jobs: list[Claimed] = []
        self._hints: dict[
            tuple[str, int, str], Micros
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
        return [
            JobHint(queue, priority, due_at, tenant) for (queue, priority, tenant), due_at in hints.items()
        ]

    def _hint(self, job: Claimed, due_at: Micros) -> None:
        lane = (job.queue, job.priority, job.tenant)
        self._hints[lane] = min(due_at, self._hints.get(lane, due_at))
