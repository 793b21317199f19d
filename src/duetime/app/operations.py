"""Operations: what the HTTP API asks of an app beyond a program's daily calls, so that the library and the command line can do it, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed
from typing import NamedTuple
from uuid import UUID

from duetime.app import reporting
from duetime.app.backfilling import Backfilling
from duetime.app.bulk import BulkOperations
from duetime.app.calendar import CalendarOperations
from duetime.app.client import Client
from duetime.app.dead import DeadLetters
from duetime.app.finding import find_schedule
from duetime.app.keys import Keys
from duetime.app.known import KnownTasks
from duetime.app.listing import JobPage, JobQuery, page_of
from duetime.app.planning import Planning
from duetime.app.stats import Watching
from duetime.app.versions import Versions
from duetime.app.why import WhyOperations
from duetime.engine.checks import check_count, check_id
from duetime.engine.drafts import NO_DEFAULTS, Defaults, NewJob, job_draft, job_drafts, refuse_rule, rule_of
from duetime.engine.reaper import OUTSIDE
from duetime.errors import InvalidInput, InvalidPayload
from duetime.invoker import Policies
from duetime.model.codec import encode_payload
from duetime.model.ids import Ids
from duetime.model.instant import Micros
from duetime.model.job import Job, JobDraft
from duetime.model.lease import Lease
from duetime.model.schedule import Schedule, ScheduleDraft, ScheduleFilter
from duetime.store import QueueCount

HTTP_TARGET = "@http"
NULL = b"null"


class NewTarget(NamedTuple):
    """A job to submit whose target may be another than a task: then `spec` says which, and `new.task` is its kind, such as "@http"."""

    new: NewJob
    spec: bytes | None = None
    null_payload: bool = False  # the payload is JSON's null, not left out


class Submitted(NamedTuple):
    draft: JobDraft
    id: UUID
    conflict: str | None  # as JobHandle.conflict


class Operations(
    Planning, Versions, Backfilling, BulkOperations, WhyOperations, CalendarOperations, DeadLetters, Keys, KnownTasks, Watching, Client
):
    # -- jobs ---------------------------------------------------------------------------------------------------------
    async def submit_target(self, wanted: NewTarget) -> Submitted:
        """Store one job; when this returns it is durable."""
        self._require_open()
        defaults = await self._defaults_for(wanted)
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
                defaults = await self._defaults_for(one)
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

    async def report_job(self, job_id: UUID, report: reporting.Report, policies: Policies = OUTSIDE) -> Job:
        """What somebody outside says about the attempt that was handed over to it. `policies` are those of its target."""
        job = await self.read_job(job_id)
        await self._commands.now()  # a client that has been quiet for a while asks the store for its time
        await reporting.write(self._store, self._clock, job, report, self._observers, policies)
        return await self.read_job(job_id)

    # -- schedules ----------------------------------------------------------------------------------------------------
    async def find_schedule(self, reference: str) -> Schedule:
        """By id or by name."""
        self._require_open()
        return await find_schedule(self._store, self._tenant, reference)

    async def schedule_page(self, wanted: ScheduleFilter, limit: int, after: str | None = None) -> list[Schedule]:
        """By name; `after` is the last name already seen."""
        self._require_open()
        return await self._store.list_schedules(changed(wanted, tenant=self._tenant), check_count(limit, "limit"), after)

    async def put_schedule(
        self, draft: ScheduleDraft, expect_version: int | None = None, *, replace: bool = False, author: str | None = None
    ) -> Schedule:
        self._require_open()
        return await self._commands.put_schedule(draft, replace, expect_version, author=author)

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

    async def moment(self) -> Micros:
        """The same, except that a request which comes again is asked for when it came first."""
        self._require_open()
        return await self._commands.moment()

    # -- inside -------------------------------------------------------------------------------------------------------
    @property
    def ids(self) -> Ids:
        return self._ids

    async def _defaults_for(self, wanted: NewTarget) -> Defaults:
        if wanted.spec is not None:
            return NO_DEFAULTS
        name = self._resolve(wanted.new.task)[0]
        if wanted.null_payload or not (wanted.new.payload is None or isinstance(wanted.new.payload, dict)):
            raise InvalidPayload("payload", "a task takes named arguments: give an object")
        return await self._defaults_of(name)


def _finished(draft: JobDraft, wanted: NewTarget) -> JobDraft:
    if wanted.spec is None:
        return draft
    payload = NULL if wanted.null_payload else draft.payload if wanted.new.payload is not None else encode_payload({})
    return draft._replace(target=HTTP_TARGET, target_spec=wanted.spec, payload=payload)
