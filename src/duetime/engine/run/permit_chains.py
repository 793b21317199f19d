"""Jobs under one permit run one after the other: a node may hold the next job before the one before has
ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import ceil
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import Claimed

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
