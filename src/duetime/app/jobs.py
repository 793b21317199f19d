"""Jobs: submitting, reading and changing them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from duetime.app import reports
from duetime.app.context import AppContext
from duetime.app.listing import JobPage, JobQuery, page_of
from duetime.engine.node.loop import without_collecting
from duetime.engine.node.reaper import DEFAULT_POLICIES
from duetime.engine.run.output import stored_output
from duetime.engine.submit.build import JOB_OPTIONS, Defaults, NewJob, fire_time_of, refuse_rule
from duetime.engine.submit.submission import JobRequest, SubmittedJob
from duetime.engine.submit.validate import (
    check_count,
    check_id,
    check_list,
    check_name,
    check_priority,
    check_state,
)
from duetime.errors import InvalidInput, JobNotFound
from duetime.handle import AttemptView, JobApi, JobHandle
from duetime.invoker import Policies
from duetime.model.duration import Duration
from duetime.model.job import CancelReply, Job, JobDraft, JobFilter, State
from duetime.model.output import read_output
from duetime.model.views import OutputView
from duetime.task import Task


class AppJobs:
    """Calling it lists jobs. Handles make their calls through `api`."""

    def __init__(self, context: AppContext, api: JobApi) -> None:
        self._context = context
        self._api = api

    # -- submitting
    async def submit(
        self, task: Task[..., Any] | str, arguments: dict[str, Any], connection: Any = None
    ) -> JobHandle:
        """Store one job. `arguments` are those of the task, and options."""
        new, defaults = self._new(task, arguments)
        _, job_id, conflict = await self._context.submission.submit(new, defaults, connection)
        return JobHandle(self._api, job_id, None, conflict)

    async def submit_many(self, jobs: Iterable[NewJob], *, connection: Any = None) -> list[JobHandle]:
        """Store all of them or none, in bulk."""
        return self.handles(await self._context.submission.submit_many(list_of(jobs), connection))

    async def submit_request(self, request: JobRequest) -> SubmittedJob:
        """Store one job of any target."""
        return await self._context.submission.submit(request)

    async def submit_requests(self, requests: Sequence[JobRequest]) -> list[SubmittedJob]:
        """Store jobs of any target, all or none."""
        return await self._context.submission.submit_many(requests)

    async def build(self, task: Task[..., Any] | str, arguments: dict[str, Any]) -> list[JobDraft]:
        """As `submit`, for a transaction of the caller's: the row is not stored."""
        draft, rule = await self._context.submission.build(*self._new(task, arguments))
        refuse_rule(rule)
        return [draft]

    async def build_many(self, jobs: Iterable[NewJob]) -> list[JobDraft]:
        return await self._context.submission.build_many(list_of(jobs))

    def handles(self, submitted: Sequence[SubmittedJob]) -> list[JobHandle]:
        with without_collecting():
            return [JobHandle(self._api, job_id, None, conflict) for _, job_id, conflict in submitted]

    def _new(self, task: Task[..., Any] | str, arguments: dict[str, Any]) -> tuple[NewJob, Defaults | None]:
        name, known = self._context.resolve(task)
        options: dict[str, Any] = {}
        if known is None:
            _refuse_payload(name, arguments)
        if known is None or arguments.keys() != known.signature.names:
            options = {option: arguments.pop(option) for option in JOB_OPTIONS if option in arguments}
            if known is not None:
                known.signature.check(arguments, JOB_OPTIONS)
        return NewJob(name, arguments, **options), None if known is None else known.defaults

    # -- reading
    async def __call__(
        self,
        *,
        state: str | None = None,
        queue: str | None = None,
        schedule: str | None = None,
        limit: int = 100,
    ) -> list[JobHandle]:
        """The newest jobs that match, live and finished."""
        states = None if state is None else frozenset({check_state(state)})
        queue = None if queue is None else check_name(queue, "queue")
        schedule = None if schedule is None else check_name(schedule, "schedule")
        wanted = JobFilter(self._context.tenant, states=states, queue=queue, schedule=schedule)
        return [
            JobHandle(self._api, job.id, job)
            for job in await self._context.reads.list_jobs(wanted, check_count(limit, "limit"))
        ]

    async def page(self, query: JobQuery, limit: int, before: UUID | None = None) -> JobPage:
        """Newest fire time first; `before` is the `next` of the previous page. A page may be short without
        being the last."""
        return await page_of(
            self._context.reads, self._context.tenant, query, check_count(limit, "limit"), before
        )

    async def get(self, job_id: UUID | str) -> JobHandle:
        job = await self.read(job_id)
        return JobHandle(self._api, job.id, job)

    async def read(self, job_id: UUID | str) -> Job:
        """The row."""
        return await self._context.commands.get_job(self._context.tenant, check_id(job_id))

    async def attempts(self, job_id: UUID | str) -> list[AttemptView]:
        """The attempts of a job that did not succeed, oldest first."""
        job = await self.read(job_id)
        return [AttemptView.of(attempt) for attempt in await self._context.store.list_attempts(job.id)]

    async def output(self, job_id: UUID | str, *, attempt: int | None = None, after: int = 0) -> OutputView:
        """What an attempt of a job has logged and printed: the latest attempt unless another one is named;
        lines after this number only."""
        after = check_whole(after, 0, "after")
        wanted = None if attempt is None else check_whole(attempt, 1, "attempt")
        job = await self.read(job_id)  # first: output is stored before the end of its attempt is
        number = job.attempt if wanted is None else wanted
        if number > max(job.attempt, 1):
            raise JobNotFound(f"attempt {number} not found: job {job.id} has had {job.attempt} attempts")
        records = await stored_output(self._context.store, self._context.tenant, job.id, number)
        ended = job.state.final or number < job.attempt or (job.attempt > 0 and job.state is State.PENDING)
        return OutputView.of(read_output(records), number, after, ended)

    async def wait(self, job_id: UUID | str, timeout: Duration | None = None) -> Job:
        """The row once it is final."""
        return await self._context.shared.waiter.wait_for(check_id(job_id), self.read, timeout)

    # -- changing
    async def cancel(
        self, job_id: UUID | str, reason: str = "cancelled by the caller", *, connection: Any = None
    ) -> CancelReply:
        """Cancel it before it starts, or ask its worker to stop it. With a `connection` of your own, when you
        commit."""
        here = await self._within(connection)
        return await here.commands.cancel_job(here.tenant, check_id(job_id), reason)

    async def reschedule(
        self,
        job_id: UUID | str,
        *,
        at: datetime | None = None,
        delay: Duration | None = None,
        priority: int | None = None,
        connection: Any = None,
    ) -> JobHandle:
        """Change the due time or priority of a pending job. With a `connection` of your own, when you
        commit."""
        due_at = None if at is None and delay is None else fire_time_of(at, delay, await self._context.now())
        wanted = None if priority is None else check_priority(priority)
        here = await self._within(connection)
        await here.commands.reschedule_job(here.tenant, check_id(job_id), due_at, wanted)
        job = await here.commands.get_job(here.tenant, check_id(job_id))
        return JobHandle(self._api, job.id, job)

    async def _within(self, connection: Any) -> AppContext:
        """That of the caller's transaction, if there is one."""
        return self._context if connection is None else await self._context.within(connection)

    async def run(self, job_id: UUID | str) -> Job:
        """Make a pending job due now."""
        found = check_id(job_id)
        await self._context.commands.reschedule_job(
            self._context.tenant, found, await self._context.now(), None
        )
        return await self.read(found)

    async def retry(self, job_id: UUID | str, payload: Any = None) -> JobHandle:
        """Run a dead letter or a skipped job again as a new job linked to it, with its payload unless another
        one is given."""
        context = self._context
        new_id = await context.commands.retry_job(
            context.tenant, check_id(job_id), payload, context.defaults_of
        )
        return JobHandle(self._api, new_id)

    async def discard(self, job_id: UUID | str) -> None:
        """Remove a dead letter from the list; its record stays."""
        await self._context.commands.discard_job(self._context.tenant, check_id(job_id))

    async def report(
        self,
        job_id: UUID,
        report: reports.Report,
        policies: Policies = DEFAULT_POLICIES,
        output: reports.ReportedOutput | None = None,
    ) -> Job:
        """The result or heartbeat of an attempt that an external worker runs. `policies` are those of its
        target."""
        job = await self.read(job_id)
        await self._context.now()  # samples the store's clock if the last sample is old
        await self._context.shared.reports.report(job, report, policies, output)
        return await self.read(job_id)


def _refuse_payload(name: str, arguments: dict[str, Any]) -> None:
    """The clients and `schedule` take the payload as a whole; here it would become an argument of that name,
    and no signature is known that says so."""
    if "payload" in arguments:
        raise InvalidInput(
            "payload",
            f"task {name!r} is not registered in this process: write its arguments as keywords, like "
            f"submit({name!r}, customer=...), or as one value: submit_many([dt.NewJob({name!r}, {{...}})])",
        )


def check_whole(value: Any, least: int, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInput(field, f"{value!r} must be a whole number of at least {least}")
    return value


def list_of(jobs: Iterable[NewJob]) -> list[NewJob]:
    with without_collecting():
        return check_list(jobs, NewJob, "jobs", "dt.NewJob(task, payload), ...")
