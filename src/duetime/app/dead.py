"""Dead letters: jobs that used up their retries, grouped by target and error."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from duetime.app.context import AppContext
from duetime.app.listing import position
from duetime.model.instant import SECOND, to_datetime
from duetime.model.job import Job, JobFilter, error_line

PAGE = 500
MAX_READ = 10_000
READ_TIMEOUT = SECOND


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    error: str  # what JobQuery.error finds them by
    target: str
    count: int
    oldest: datetime  # when the first of them gave up, and the last
    newest: datetime
    sample: UUID  # the newest


class ErrorGroups(NamedTuple):
    groups: list[ErrorGroup]  # largest first
    complete: bool  # False: there are more dead letters than were counted, older ones


@dataclass(frozen=True, slots=True)
class DeadLetters:
    context: AppContext

    async def groups(self) -> ErrorGroups:
        """Dead letters that were neither retried nor discarded."""
        wanted = JobFilter(self.context.tenant, undisposed=True)
        deadline = self.context.clock.monotonic() + READ_TIMEOUT
        groups: dict[tuple[str, str], ErrorGroup] = {}
        read, before = 0, None
        while page := await self.context.store.list_jobs(wanted, PAGE, before):
            for job in page:
                key = (error_line(job.error or ""), job.target)
                groups[key] = _with(groups.get(key), key, job)
            read, before = read + len(page), position(page[-1])
            if len(page) < PAGE:
                break
            if read >= MAX_READ or self.context.clock.monotonic() > deadline:
                return ErrorGroups(_ordered(groups), complete=False)
        return ErrorGroups(_ordered(groups), complete=True)


def _with(known: ErrorGroup | None, key: tuple[str, str], job: Job) -> ErrorGroup:
    ended = to_datetime(job.finished_at or job.fire_time)
    if known is None:
        return ErrorGroup(*key, 1, ended, ended, job.id)
    sample = job.id if ended > known.newest else known.sample
    return ErrorGroup(*key, known.count + 1, min(known.oldest, ended), max(known.newest, ended), sample)


def _ordered(groups: dict[tuple[str, str], ErrorGroup]) -> list[ErrorGroup]:
    return sorted(groups.values(), key=lambda group: (-group.count, group.target, group.error))
