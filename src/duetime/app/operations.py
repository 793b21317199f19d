"""Operations: what the HTTP API asks of an app beyond a program's daily calls, so that the library and the command line can do it, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace as changed
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from duetime.app import backfilling, reporting
from duetime.app.client import Client, defaults_of
from duetime.app.listing import JobPage, JobQuery, page_of
from duetime.engine.checks import check_count, check_id
from duetime.engine.drafts import NO_DEFAULTS, Defaults, NewJob, job_draft, job_drafts, refuse_rule, rule_of
from duetime.errors import InvalidInput, InvalidPayload, ScheduleNotFound, VersionConflict
from duetime.model import instant
from duetime.model.codec import encode_payload
from duetime.model.ids import Ids
from duetime.model.instant import Micros
from duetime.model.job import Job, JobDraft
from duetime.model.lease import Lease
from duetime.model.schedule import Schedule, ScheduleDraft, ScheduleFilter
from duetime.store import QueueCount

HTTP_TARGET = "@http"
NULL = b"null"
EDITS = 5  # others' edits an edit that named no version gives way to


class NewTarget(NamedTuple):
    """A job to submit whose target may be another than a task: then `spec` says which, and `new.task` is its kind, such as "@http"."""

    new: NewJob
    spec: bytes | None = None
    null_payload: bool = False  # the payload is JSON's null, not left out


class Submitted(NamedTuple):
    draft: JobDraft
    id: UUID
    conflict: str | None  # as JobHandle.conflict


class Operations(Client):
    # -- jobs ---------------------------------------------------------------------------------------------------------
    async def submit_target(self, wanted: NewTarget) -> Submitted:
        """Store one job; when this returns it is durable."""
        self._require_open()
        defaults = self._defaults_for(wanted)
        draft = _finished(job_draft(self._ids, self._tenant, wanted.new, defaults, await self._commands.moment()), wanted)
        rule = rule_of(wanted.new, defaults)
        if rule is not None:
            admission = await self._commands.admit(draft, rule)
            return Submitted(draft, admission.id, admission.conflict)
        stored = await self._commands.submit(draft)
        return Submitted(draft, stored, None if stored == draft.id else "skipped")

    async def submit_targets(self, wanted: Sequence[NewTarget]) -> list[Submitted]:
        """Store all of them or none."""
        self._require_open()
        pairs = []
        for number, one in enumerate(wanted):
            try:
                defaults = self._defaults_for(one)
                refuse_rule(rule_of(one.new, defaults))
            except InvalidInput as problem:
                raise type(problem)(f"jobs[{number}].{problem.field}", problem.reason) from problem
            pairs.append((one.new, defaults))
        drafts = job_drafts(self._ids, self._tenant, pairs, await self._commands.moment())
        finished = [_finished(draft, one) for draft, one in zip(drafts, wanted, strict=True)]
        stored = await self._commands.submit_many(finished)
        return [Submitted(draft, job_id, None if job_id == draft.id else "skipped") for draft, job_id in zip(finished, stored, strict=True)]

    async def job_page(self, query: JobQuery, limit: int, before: tuple[Micros, UUID] | None = None) -> JobPage:
        """Newest fire time first; `before` is the position the page before gave. A page may hold fewer than `limit` and not be the last."""
        self._require_open()
        return await page_of(self._store, self._tenant, query, check_count(limit, "limit"), before)

    async def run_job(self, job_id: UUID | str) -> Job:
        """Have a pending job due now, whatever it waited for."""
        self._require_open()
        found = check_id(job_id)
        await self._commands.move_job(self._tenant, found, await self._commands.now(), None)
        return await self.read_job(found)

    async def report_job(self, job_id: UUID, report: reporting.Report) -> Job:
        """What somebody outside says about the attempt that was handed over to it."""
        job = await self.read_job(job_id)
        await self._commands.now()  # a client that has been quiet for a while asks the store for its time
        await reporting.write(self._store, self._clock, job, report)
        return await self.read_job(job_id)

    # -- schedules ----------------------------------------------------------------------------------------------------
    async def find_schedule(self, reference: str) -> Schedule:
        """By id or by name."""
        self._require_open()
        found = await self._by_id(reference) or await self._store.get_schedule(self._tenant, reference)
        if found is None:
            raise ScheduleNotFound(f"there is no schedule {reference!r}: list the schedules to see those there are")
        return found

    async def schedule_page(self, wanted: ScheduleFilter, limit: int, after: str | None = None) -> list[Schedule]:
        """By name; `after` is the last name already seen."""
        self._require_open()
        return await self._store.list_schedules(changed(wanted, tenant=self._tenant), check_count(limit, "limit"), after)

    async def put_schedule(self, draft: ScheduleDraft, expect_version: int | None = None, *, replace: bool = False) -> Schedule:
        self._require_open()
        return await self._commands.put_schedule(draft, replace, expect_version)

    async def remove_version(self, schedule: Schedule, expect_version: int | None) -> None:
        """Remove it, unless it is not the version the caller has seen."""
        if expect_version is not None and schedule.version != expect_version:
            raise VersionConflict(f"schedule {schedule.draft.name!r} is at version {schedule.version}, not {expect_version}: read it again")
        await self._commands.remove_schedule(self._tenant, schedule.draft.name)

    async def backfill(self, reference: str, plan: backfilling.Plan) -> backfilling.Backfilled:
        """Jobs for the fires of a range which no job stands for; repeating it adds nothing."""
        schedule = await self.find_schedule(reference)
        return await backfilling.carry_out(self._store, self._commands, schedule, plan)

    def preview_schedule(self, schedule: Schedule, count: int, after: Micros) -> list[datetime]:
        """The next fires, as it stands: within its start and end, and no more than its runs."""
        left = count if schedule.draft.max_runs is None else min(count, schedule.draft.max_runs - schedule.runs)
        return [instant.to_datetime(moment) for _, moment in zip(range(left), fires_after(schedule.draft, after), strict=False)]

    # -- the fleet ----------------------------------------------------------------------------------------------------
    async def count_jobs(self) -> list[QueueCount]:
        """Live jobs by queue."""
        self._require_open()
        return await self._store.count_jobs()

    async def leases(self) -> list[Lease]:
        self._require_open()
        return await self._store.leases()

    async def now(self) -> Micros:
        """The store's clock."""
        self._require_open()
        return await self._commands.now()

    # -- inside -------------------------------------------------------------------------------------------------------
    @property
    def ids(self) -> Ids:
        return self._ids

    def defaults_for(self, target: str, spec: bytes | None) -> Defaults:
        """What the target says for jobs that do not say otherwise."""
        return NO_DEFAULTS if spec is not None else defaults_of(self._resolve(target)[1])

    def _defaults_for(self, wanted: NewTarget) -> Defaults:
        if wanted.spec is not None:
            return NO_DEFAULTS
        known = self._resolve(wanted.new.task)[1]
        if wanted.null_payload or not (wanted.new.payload is None or isinstance(wanted.new.payload, dict)):
            raise InvalidPayload("payload", "a task takes named arguments: give an object")
        return defaults_of(known)

    async def _by_id(self, reference: str) -> Schedule | None:
        try:
            wanted = UUID(reference)
        except ValueError:
            return None
        return await self._store.get_schedule_by_id(self._tenant, wanted)


def fires_after(draft: ScheduleDraft, after: Micros) -> Iterator[Micros]:
    moment = draft.when.next_us(after if draft.start_at is None else max(after, draft.start_at - 1))
    while moment is not None and (draft.end_at is None or moment <= draft.end_at):
        yield moment
        moment = draft.when.next_us(moment)


def _finished(draft: JobDraft, wanted: NewTarget) -> JobDraft:
    if wanted.spec is None:
        return draft
    payload = NULL if wanted.null_payload else draft.payload if wanted.new.payload is not None else encode_payload({})
    return draft._replace(target=HTTP_TARGET, target_spec=wanted.spec, payload=payload)
