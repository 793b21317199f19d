"""Dead letters: jobs that used up their retries, grouped by target and cause."""

from __future__ import annotations

from dataclasses import dataclass, replace

from duetime.app.context import AppContext
from duetime.app.listing import JobQuery, filter_of
from duetime.model.instant import SECOND, to_datetime
from duetime.model.job import Job
from duetime.model.search import error_group
from duetime.model.target import shown_name
from duetime.model.views import DeadGroup, DeadGroups

PAGE = 500
MAX_READ = 10_000
READ_TIMEOUT = SECOND
EVERYTHING = JobQuery()


@dataclass(frozen=True, slots=True)
class DeadLetters:
    context: AppContext

    async def groups(self, query: JobQuery = EVERYTHING) -> DeadGroups:
        """Dead letters that were neither retried nor discarded."""
        wanted = replace(filter_of(self.context.tenant, query), undisposed=True)
        deadline = self.context.clock.monotonic() + READ_TIMEOUT
        groups: dict[tuple[str, str], DeadGroup] = {}
        read, before = 0, None
        while page := await self.context.reads.list_jobs(wanted, PAGE, before):
            for job in page:
                key = (error_group(job.error or ""), shown_name(job.target))
                groups[key] = _with(groups.get(key), key, job)
            read, before = read + len(page), page[-1].id
            if len(page) < PAGE:
                break
            if read >= MAX_READ or self.context.clock.monotonic() > deadline:
                return DeadGroups(items=_ordered(groups), complete=False)
        return DeadGroups(items=_ordered(groups))


def _with(known: DeadGroup | None, key: tuple[str, str], job: Job) -> DeadGroup:
    ended = to_datetime(job.finished_at or job.fire_time)
    if known is None:
        return DeadGroup(error=key[0], target=key[1], count=1, oldest=ended, newest=ended, sample=job.id)
    return replace(
        known,
        count=known.count + 1,
        oldest=min(known.oldest, ended),
        newest=max(known.newest, ended),
        sample=job.id if ended > known.newest else known.sample,
    )


def _ordered(groups: dict[tuple[str, str], DeadGroup]) -> list[DeadGroup]:
    return sorted(groups.values(), key=lambda group: (-group.count, group.target, group.error))
