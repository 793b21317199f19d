"""Backfill: jobs for the fires of a past range that have no job. Bounded, spread over time, and safe to
repeat.

The id of a backfilled job is derived from its schedule, its fire time and a number: the rows of the skipped
fire, and of earlier backfilled jobs that were skipped, stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count, islice
from uuid import UUID, uuid5

from duetime.app.context import AppContext
from duetime.app.listing import find_schedule
from duetime.app.search import search
from duetime.engine.submit.commands import scheduled_job
from duetime.engine.submit.validate import check_count
from duetime.errors import Conflict, InvalidInput
from duetime.model import instant
from duetime.model.codec import decode, encode
from duetime.model.forecast import fires_after
from duetime.model.ids import fire_id
from duetime.model.instant import Micros
from duetime.model.job import Job, JobFilter, State, overlap_if_asked_for
from duetime.model.limit import Rate, parse_rate
from duetime.model.schedule import Schedule
from duetime.model.when import When
from duetime.store import Store

MAX_FIRES = 1_000  # in one call; the answer says where the next one continues
PAGE = 1_000
KIND = "backfill"
MAX_TRIES = 20  # others may backfill the same schedule at the same time


@dataclass(frozen=True, slots=True)
class BackfillReport:
    jobs: tuple[UUID, ...]  # one for each fire that had none, oldest first
    existing: int  # fires that have a job already
    next_from: datetime | None  # where the next call goes on; None: the range is done


@dataclass(frozen=True, slots=True)
class Backfill:
    context: AppContext

    async def __call__(
        self,
        reference: str,
        start: datetime,
        end: datetime | None = None,
        *,
        rate: str | None = None,
        limit: int = MAX_FIRES,
    ) -> BackfillReport:
        """Create jobs for the fires of a past range that have no job or were skipped, oldest first; from
        `start` until before `end`, or until now. They are due immediately, or spread by `rate` ("10/1s"),
        also over several calls. Where the schedule allows no overlap they run one after another. At most
        `limit` fires a call: continue at `next_from`. Repeating a call creates a second job for a fire only
        if the first was skipped."""
        store, commands = self.context.store, self.context.commands
        schedule = await find_schedule(store, self.context.tenant, reference)
        pace = None if rate is None else parse_rate(rate, "rate")
        if check_count(limit, "limit") > MAX_FIRES:
            raise InvalidInput(
                "limit", f"{limit} must be at most {MAX_FIRES:,}: repeat the call from next_from"
            )
        now = await commands.now()
        first, last = _range(start, end, now)
        draft = schedule.draft
        begin = first - 1 if draft.start_at is None else max(first, draft.start_at) - 1
        bound = last - 1 if draft.end_at is None else min(last - 1, draft.end_at)
        moments = await search(_fires, draft.when, begin, bound, limit + 1)
        rest = moments.pop() if len(moments) > limit else None
        known = await _known(store, schedule, moments)
        fires = [
            (_new_id(schedule, moment, known[moment]), moment)
            for moment in moments
            if not any(_stands(job, schedule) for job in known[moment])
        ]
        jobs = await self._fill(schedule, fires, pace, now) if fires else ()
        return BackfillReport(
            jobs, len(moments) - len(fires), None if rest is None else instant.to_datetime(rest)
        )

    async def _fill(
        self, schedule: Schedule, fires: Sequence[tuple[UUID, Micros]], pace: Rate | None, now: Micros
    ) -> tuple[UUID, ...]:
        begin = now if pace is None else await _reserve(self.context.store, schedule, len(fires), pace, now)
        interval = 0 if pace is None else pace.interval
        overlap = overlap_if_asked_for(schedule.draft.overlap)
        drafts = [
            scheduled_job(schedule, job_id, at, begin + number * interval)._replace(overlap=overlap)
            for number, (job_id, at) in enumerate(fires)
        ]
        return tuple(await self.context.commands.submit_again(drafts))


def _fires(when: When, after: Micros, end: Micros, count: int) -> list[Micros]:
    return list(islice(fires_after(when, after, end), count))


def _range(start: datetime, end: datetime | None, now: Micros) -> tuple[Micros, Micros]:
    first, last = instant.read(start, "from"), now if end is None else instant.read(end, "to")
    if last > now:
        raise InvalidInput(
            "to", "is in the future: the schedule itself plans future fires; leave it out for now"
        )
    if first >= last:
        raise InvalidInput("from", "must be before `to`")
    return first, last


async def _reserve(store: Store, schedule: Schedule, count: int, pace: Rate, now: Micros) -> Micros:
    """When the first of these jobs is due, so that all calls together keep the rate."""
    tenant, key = schedule.draft.tenant, str(schedule.id)
    for _ in range(MAX_TRIES):
        known = await store.get_record(KIND, tenant, key)
        begin = now if known is None else max(now, decode(known.value))
        until = begin + count * pace.interval
        if await store.put_record(
            KIND, tenant, key, encode(until), 0 if known is None else known.version, until
        ):
            return begin
    raise Conflict(
        f"schedule {schedule.draft.name!r} is being backfilled by many callers: repeat the call later"
    )


async def _known(store: Store, schedule: Schedule, moments: Sequence[Micros]) -> dict[Micros, list[Job]]:
    """The jobs of these fires."""
    known: dict[Micros, list[Job]] = {moment: [] for moment in moments}
    if not moments:
        return known
    draft = schedule.draft
    wanted = JobFilter(draft.tenant, schedule=draft.name, fire_after=moments[0], fire_before=moments[-1] + 1)
    before: UUID | None = None
    while found := await store.list_jobs(wanted, PAGE, before):
        for job in found:
            if job.schedule_id == schedule.id and job.fire_time in known:
                known[job.fire_time].append(job)
        before = found[-1].id
    return known


def _stands(job: Job, schedule: Schedule) -> bool:
    """Whether its fire needs no other job: it ran, runs or is pending. An edit cancels fires; a person
    cancels a job that was asked for, and does not want it again."""
    if job.state is State.CANCELLED:
        return job.id != fire_id(schedule.id, job.fire_time)
    return job.state is not State.SKIPPED


def _new_id(schedule: Schedule, moment: Micros, known: Sequence[Job]) -> UUID:
    """The first id of this fire that no job has, so that calls at the same time choose the same."""
    taken = {job.id for job in known}
    ids = (fire_id(uuid5(schedule.id, f"{KIND} {number}"), moment) for number in count())
    return next(one for one in ids if one not in taken)
