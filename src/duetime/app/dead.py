"""Dead letters in groups: those of one target that went wrong in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from duetime.app.client import Client
from duetime.app.listing import position
from duetime.model.instant import SECOND, to_datetime
from duetime.model.job import Job, JobFilter, error_line

PAGE = 500
MOST_READ = 10_000
LONGEST = SECOND


@dataclass(frozen=True, slots=True)
class DeadGroup:
    error: str  # what JobQuery.error finds them by
    target: str
    count: int
    oldest: datetime  # when the first of them gave up, and the last
    newest: datetime
    sample: UUID  # the newest


class DeadGroups(NamedTuple):
    groups: list[DeadGroup]  # largest first
    complete: bool  # False: there are more dead letters than were counted, older ones


class DeadLetters(Client):
    async def dead_groups(self) -> DeadGroups:
        """Dead letters nobody has retried or discarded."""
        self._require_open()
        wanted = JobFilter(self._tenant, undisposed=True)
        deadline = self._clock.monotonic() + LONGEST
        groups: dict[tuple[str, str], DeadGroup] = {}
        read, before = 0, None
        while page := await self._store.list_jobs(wanted, PAGE, before):
            for job in page:
                key = (error_line(job.error or ""), job.target)
                groups[key] = _with(groups.get(key), key, job)
            read, before = read + len(page), position(page[-1])
            if len(page) < PAGE:
                break
            if read >= MOST_READ or self._clock.monotonic() > deadline:
                return DeadGroups(_ordered(groups), complete=False)
        return DeadGroups(_ordered(groups), complete=True)


def _with(known: DeadGroup | None, key: tuple[str, str], job: Job) -> DeadGroup:
    ended = to_datetime(job.finished_at or job.fire_time)
    if known is None:
        return DeadGroup(*key, 1, ended, ended, job.id)
    sample = job.id if ended > known.newest else known.sample
    return DeadGroup(*key, known.count + 1, min(known.oldest, ended), max(known.newest, ended), sample)


def _ordered(groups: dict[tuple[str, str], DeadGroup]) -> list[DeadGroup]:
    return sorted(groups.values(), key=lambda group: (-group.count, group.target, group.error))
