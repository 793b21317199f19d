"""Backfill: jobs for fires of a past range that no job stands for. Bounded, spread over time, and safe to repeat.

A filled-in fire has an id made of (schedule, fire time) like any fire, from a name of its own: the row of a fire that was skipped stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from uuid import UUID, uuid5

from duetime.app.client import Client
from duetime.app.finding import find_schedule
from duetime.app.planning import fires_after
from duetime.engine.checks import check_count
from duetime.errors import Conflict, InvalidInput
from duetime.model import instant
from duetime.model.codec import decode, encode
from duetime.model.ids import fire_id
from duetime.model.instant import Micros
from duetime.model.job import JobDraft, JobFilter, State
from duetime.model.limit import Rate, parse_rate
from duetime.model.schedule import Schedule
from duetime.store import Store

MOST_FIRES = 1_000  # in one call; the answer says where to go on
PAGE = 1_000
NOT_RUN = frozenset({State.SKIPPED, State.CANCELLED})
KIND = "backfill"
TRIES = 20  # others may backfill the same schedule at the same time


@dataclass(frozen=True, slots=True)
class Backfilled:
    jobs: tuple[UUID, ...]  # one for each fire that had none, oldest first
    existing: int  # fires that have a job already
    next_from: datetime | None  # where the next call goes on; None: the range is done


class Backfilling(Client):
    async def backfill(
        self, reference: str, start: datetime, end: datetime | None = None, *, rate: str | None = None, limit: int = MOST_FIRES
    ) -> Backfilled:
        """Jobs for the fires of a past range (`start` included, `end` not; without it, until now) that no job stands for, oldest first.
        They fall due at once, or spread by `rate` ("10/1s"), also over several calls. At most `limit` fires a call: go on at `next_from`.
        Whatever is repeated is there only once."""
        self._require_open()
        schedule = await find_schedule(self._store, self._tenant, reference)
        pace = None if rate is None else parse_rate(rate, "rate")
        if check_count(limit, "limit") > MOST_FIRES:
            raise InvalidInput("limit", f"{limit} must be at most {MOST_FIRES:,}: call again where the answer says")
        now = await self._commands.now()
        first, last = _range(start, end, now)
        draft = schedule.draft
        begin = first - 1 if draft.start_at is None else max(first, draft.start_at) - 1
        bound = last - 1 if draft.end_at is None else min(last - 1, draft.end_at)
        moments = list(islice(fires_after(draft.when, begin, None, bound), limit + 1))
        rest = moments.pop() if len(moments) > limit else None
        present = await _present(self._store, schedule, moments)
        wanted = [moment for moment in moments if moment not in present]
        jobs = await self._fill(schedule, wanted, pace, now) if wanted else ()
        return Backfilled(jobs, len(moments) - len(wanted), None if rest is None else instant.to_datetime(rest))

    async def _fill(self, schedule: Schedule, moments: Sequence[Micros], pace: Rate | None, now: Micros) -> tuple[UUID, ...]:
        begin = now if pace is None else await _reserve(self._store, schedule, len(moments), pace, now)
        interval = 0 if pace is None else pace.interval
        drafts = [_draft(schedule, moment, begin + number * interval) for number, moment in enumerate(moments)]
        return tuple(await self._commands.submit_again(drafts))


def _range(start: datetime, end: datetime | None, now: Micros) -> tuple[Micros, Micros]:
    first, last = instant.read(start, "from"), now if end is None else instant.read(end, "to")
    if last > now:
        raise InvalidInput("to", "lies in the future: fires to come are planned by the schedule itself; leave it out to say now")
    if first >= last:
        raise InvalidInput("from", "must be before `to`")
    return first, last


async def _reserve(store: Store, schedule: Schedule, count: int, pace: Rate, now: Micros) -> Micros:
    """Where these may begin, so that they keep the pace together with those of other calls that are still to come."""
    tenant, key = schedule.draft.tenant, str(schedule.id)
    for _ in range(TRIES):
        known = await store.get_record(KIND, tenant, key)
        begin = now if known is None else max(now, decode(known.value))
        until = begin + count * pace.interval
        if await store.put_record(KIND, tenant, key, encode(until), 0 if known is None else known.version, until):
            return begin
    raise Conflict(f"schedule {schedule.draft.name!r} is backfilled by many at once: repeat the call later")


async def _present(store: Store, schedule: Schedule, moments: Sequence[Micros]) -> set[Micros]:
    """Those of the fire times that a job stands for: one that ran, runs or waits, or was filled in before, whatever became of it."""
    if not moments:
        return set()
    draft = schedule.draft
    wanted = JobFilter(draft.tenant, schedule=draft.name, fire_after=moments[0], fire_before=moments[-1] + 1)
    present: set[Micros] = set()
    before: tuple[Micros, UUID] | None = None
    while found := await store.list_jobs(wanted, PAGE, before):
        own = [job for job in found if job.schedule_id == schedule.id]
        present.update(job.fire_time for job in own if job.state not in NOT_RUN or job.id == _identity(schedule, job.fire_time))
        before = found[-1].fire_time, found[-1].id
    return present


def _identity(schedule: Schedule, moment: Micros) -> UUID:
    return fire_id(uuid5(schedule.id, KIND), moment)


def _draft(schedule: Schedule, moment: Micros, due_at: Micros) -> JobDraft:
    draft = schedule.draft
    return JobDraft(
        _identity(schedule, moment), draft.tenant, schedule.id, draft.name, moment, due_at, draft.queue, draft.priority, draft.overlap,
        draft.target, draft.target_spec, draft.payload, draft.policies, draft.owner, draft.labels, None, None, draft.gate,
    )  # fmt: skip
