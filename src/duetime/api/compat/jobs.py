"""/jobs and /job/executions: submit, read, cancel and list plain jobs; and the running jobs of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Body, Path, Query
from pydantic import Field
from starlette.responses import Response

from duetime.api.auth import Manager, Reader, RequestContext, Submitter, require_scope
from duetime.api.compat import job_views as mapping
from duetime.api.compat.job_views import (
    PlainExecutionsOut,
    PlainJobIn,
    PlainJobOut,
    PlainJobPage,
    PlainJobsOut,
    Status,
    jobs_after,
)
from duetime.api.models.targets import Name
from duetime.api.paging import PageQuery
from duetime.api.requests import new_job, new_schedule, read_name
from duetime.api.routing import ONCE, StrictRoute, answer, problems, with_body
from duetime.app.listing import JobQuery
from duetime.app.services import Services
from duetime.errors import InvalidInput, JobNotFound
from duetime.model.api_key import Scope
from duetime.model.ids import first_id
from duetime.model.job import CancelReply, Job, State
from duetime.model.schedule import Change, Schedule

MAX_VERSIONS = 1_000  # read to find when a removed job was created
JobId = Annotated[UUID, Path(examples=["01935c2e-7b3a-7000-8000-000000000000"])]
router = APIRouter(tags=["jobs (compatible)"], route_class=StrictRoute)


class JobsQuery(PageQuery):
    status: Status | None = None
    user_id: Name | None = None


class ExecutionsQuery(PageQuery):
    worker_id: Annotated[
        Name | None, Field(description="The id or name of a node. Default: all.", examples=["w001"])
    ] = None


@router.post(
    "/jobs",
    status_code=201,
    response_model=PlainJobOut,
    operation_id="submit_plain_job",
    summary="Submit a one-time or periodic job",
    responses=with_body(409),
    openapi_extra=ONCE,
)
async def submit(body: Annotated[PlainJobIn, Body()], context: Submitter) -> Response:
    if body.frequency != mapping.ONCE:
        require_scope(context, Scope.MANAGE)  # it creates a schedule

    async def work(view: Services) -> Response:
        with _original_fields():
            return answer(await _submit(context, view, body), 201)

    return await context.once(work, body)


@router.get(
    "/jobs",
    response_model=PlainJobsOut,
    operation_id="list_plain_jobs",
    summary="Jobs by status and user",
    responses=problems(),
)
async def list_all(query: Annotated[JobsQuery, Query()], context: Reader) -> Response:
    user, listing = read_name(query.user_id, "user_id"), await context.listing("plain jobs", query)
    page = await jobs_after(context.view, query.status, user, listing.limit, listing.position)
    return answer({"jobs": await _listed(context.view, page), "next_cursor": listing.cursor(page.next)})


@router.get(
    "/jobs/{job_id:uuid}",
    response_model=PlainJobOut,
    operation_id="read_plain_job",
    summary="Read a job",
    responses=problems(404),
)
async def read(job_id: JobId, context: Reader) -> Response:
    return answer(await _read(context.view, job_id))


@router.delete(
    "/jobs/{job_id:uuid}",
    response_model=PlainJobOut,
    operation_id="cancel_plain_job",
    summary="Cancel a job; a periodic job is removed",
    responses={
        202: {"model": PlainJobOut, "description": "The job is running: its worker is asked to stop it."},
        **problems(404, 409),
    },
)
async def cancel(job_id: JobId, context: Manager) -> Response:
    view = context.view
    schedule = await view.store.get_schedule(context.caller.tenant, job_id)
    if schedule is not None:
        await view.remove(schedule.draft.name, author=context.caller.author)
        return answer(await _removed(view, schedule.draft.name))
    reply = await view.cancel_job(job_id, "cancelled over the API")
    return answer(await _read(view, job_id), 202 if reply is CancelReply.REQUESTED else 200)


@router.get(
    "/job/executions",
    response_model=PlainExecutionsOut,
    operation_id="list_plain_executions",
    summary="The running jobs of a worker",
    responses=problems(),
)
async def executions(query: Annotated[ExecutionsQuery, Query()], context: Reader) -> Response:
    worker, listing = (
        read_name(query.worker_id, "worker_id"),
        await context.listing("plain executions", query),
    )
    page = await context.view.jobs.page(
        JobQuery(State.RUNNING, worker=worker), listing.limit, listing.before_job
    )
    names = await _workers(context.view)
    found = [mapping.execution(one, names) for one in page.jobs]
    return answer({"executions": found, "next_cursor": listing.cursor_after(page.next)})


async def _submit(context: RequestContext, view: Services, body: PlainJobIn) -> dict[str, Any]:
    if body.frequency == mapping.ONCE:
        done = await view.jobs.submit_request(new_job(context, mapping.new_job(body)))
        return await _read(view, done.id)
    draft = await new_schedule(context, mapping.new_schedule(body, "job"))
    renamed = mapping.named(draft, view.context.ids.new(await view.context.moment()))
    stored = await view.schedules.put(renamed, author=context.caller.author)
    return mapping.periodic(stored, None, {}, await view.now())


async def _read(view: Services, job_id: UUID) -> dict[str, Any]:
    """A job, a schedule, or the last version of a removed schedule with this id."""
    try:
        job = await view.read_job(job_id)
    except JobNotFound:
        return await _read_periodic(view, job_id)
    return mapping.job(job, await _workers(view))


async def _read_periodic(view: Services, job_id: UUID) -> dict[str, Any]:
    schedule = await view.store.get_schedule(view.tenant, job_id)
    if schedule is not None:
        return mapping.periodic(schedule, await _last(view, schedule), await _workers(view), await view.now())
    found = await _removed(view, mapping.schedule_name(job_id))
    if found is None:
        raise JobNotFound(f"job {job_id} not found: it never existed or has been pruned")
    return found


async def _removed(view: Services, name: str) -> dict[str, Any] | None:
    versions = await view.store.list_versions(view.tenant, name, MAX_VERSIONS)
    if not versions or versions[0].change is not Change.REMOVED:
        return None
    return mapping.removed(versions[0], versions[-1].at)


async def _listed(view: Services, page: PlainJobPage) -> list[dict[str, Any]]:
    """Periodic jobs without their last execution, which would need one read for each."""
    workers, now = await _workers(view), await view.now()
    return [
        mapping.periodic(one, None, workers, now) if isinstance(one, Schedule) else mapping.job(one, workers)
        for one in page.found
    ]


async def _last(view: Services, schedule: Schedule) -> Job | None:
    """The latest job of the schedule whose fire time has come."""
    coming = first_id(await view.now() + 1)
    page = await view.jobs.page(JobQuery(schedule=schedule.draft.name), 1, coming)
    return next((job for job in page.jobs if job.schedule_id == schedule.id), None)


async def _workers(view: Services) -> dict[int, str]:
    return {node.id: node.name for node in await view.nodes()}


@contextmanager
def _original_fields() -> Iterator[None]:
    try:
        yield
    except InvalidInput as problem:
        raise mapping.original_field(problem) from None
