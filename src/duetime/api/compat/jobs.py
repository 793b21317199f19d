"""/jobs and /job/executions: submit, watch, cancel and list jobs, once or periodic; and what runs on a worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Body, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Caller, Manager, Reader, Scope, Submitter, admitted
from duetime.api.compat import job_words as words
from duetime.api.compat.job_bodies import PlainExecutionsOut, PlainJobIn, PlainJobOut, PlainJobsOut, Status
from duetime.api.compat.job_pages import Page, jobs_after
from duetime.api.edge import Edge, edge_of
from duetime.api.models.fields import Name
from duetime.api.routing import IDEMPOTENCY_KEY, StrictRoute, answer, problems, with_body
from duetime.api.scheduling import drafted
from duetime.api.v1.submitting import fingerprint
from duetime.api.wanted import new_job
from duetime.app.listing import JobQuery
from duetime.app.operations import Operations
from duetime.engine.checks import check_id, check_name
from duetime.errors import InvalidInput, JobNotFound
from duetime.model.job import CancelReply, Job, State
from duetime.model.schedule import Change, Schedule

MOST = 1_000
LISTING, RUNNING = "plain-jobs", "plain-executions"
JobId = Annotated[UUID, Path(examples=["01935c2e-7b3a-7000-8000-000000000000"])]
Cursor = Annotated[str | None, Field(min_length=1, max_length=1_024, json_schema_extra={"format": "duetime-cursor"})]
router = APIRouter(tags=["jobs (compatible)"], route_class=StrictRoute)


class JobsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    status: Status | None = None
    user_id: Name | None = None
    limit: Annotated[int, Field(ge=1, le=MOST)] = 100
    cursor: Cursor = None


class ExecutionsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    worker_id: Annotated[Name | None, Field(description="A node's id or name; without it, all of them.", examples=["w001"])] = None
    limit: Annotated[int, Field(ge=1, le=MOST)] = 100
    cursor: Cursor = None


@router.post(
    "/jobs",
    status_code=201,
    response_model=PlainJobOut,
    operation_id="submit_plain_job",
    summary="Submit a job, once or periodic",
    responses=with_body(409),
    openapi_extra={"parameters": [IDEMPOTENCY_KEY]},
)
async def submit(request: Request, body: Annotated[PlainJobIn, Body()], caller: Submitter) -> Response:
    edge = edge_of(request)
    if body.frequency != words.ONCE:
        await admitted(request, Scope.MANAGE)  # as whoever creates a schedule

    async def work(view: Operations) -> Response:
        with _their_words():
            return answer(await _submit(edge, caller, view, body), 201)

    key = request.headers.get("idempotency-key")
    return await edge.memory.once(edge.view(caller), key, fingerprint(request.method, request.url.path, body), work)


@router.get("/jobs", response_model=PlainJobsOut, operation_id="list_plain_jobs", summary="Jobs by status and user", responses=problems())
async def list_all(request: Request, query: Annotated[JobsQuery, Query()], caller: Reader) -> Response:
    edge = edge_of(request)
    view = edge.view(caller)
    user = None if query.user_id is None else check_name(query.user_id, "user_id")
    filters = {"status": query.status, "user_id": user}
    position = None if query.cursor is None else edge.cursors.read(caller.tenant, LISTING, filters, query.cursor)
    page = await jobs_after(view, query.status, user, query.limit, position)
    following = None if page.next is None else edge.cursors.write(caller.tenant, LISTING, filters, page.next)
    return answer({"jobs": await _shown(view, page), "next_cursor": following})


@router.get(
    "/jobs/{job_id:uuid}", response_model=PlainJobOut, operation_id="read_plain_job", summary="How a job stands", responses=problems(404)
)
async def read(request: Request, job_id: JobId, caller: Reader) -> Response:
    return answer(await _read(edge_of(request).view(caller), job_id))


@router.delete(
    "/jobs/{job_id:uuid}",
    response_model=PlainJobOut,
    operation_id="cancel_plain_job",
    summary="Cancel a job; a periodic one runs no more",
    responses={202: {"model": PlainJobOut, "description": "It runs: its worker is asked."}, **problems(404, 409)},
)
async def cancel(request: Request, job_id: JobId, caller: Manager) -> Response:
    view = edge_of(request).view(caller)
    schedule = await view.store.get_schedule_by_id(caller.tenant, job_id)
    if schedule is not None:
        await view.remove(schedule.draft.name, author=caller.author)
        return answer(await _removed(view, schedule.draft.name))
    reply = await view.cancel_job(job_id, "cancelled over the API")
    return answer(await _read(view, job_id), 202 if reply is CancelReply.REQUESTED else 200)


@router.get(
    "/job/executions",
    response_model=PlainExecutionsOut,
    operation_id="list_plain_executions",
    summary="What runs on a worker",
    responses=problems(),
)
async def executions(request: Request, query: Annotated[ExecutionsQuery, Query()], caller: Reader) -> Response:
    edge = edge_of(request)
    view = edge.view(caller)
    worker = None if query.worker_id is None else check_name(query.worker_id, "worker_id")
    bound, before = {"worker_id": worker}, None
    if query.cursor is not None:
        fire_time, last = edge.cursors.read(caller.tenant, RUNNING, bound, query.cursor)
        before = fire_time, check_id(last)
    page = await view.job_page(JobQuery(State.RUNNING, worker=worker), query.limit, before)
    following = None if page.next is None else edge.cursors.write(caller.tenant, RUNNING, bound, [page.next[0], str(page.next[1])])
    names = await _workers(view)
    return answer({"executions": [words.execution(one, names) for one in page.jobs], "next_cursor": following})


async def _submit(edge: Edge, caller: Caller, view: Operations, body: PlainJobIn) -> dict[str, Any]:
    if body.frequency == words.ONCE:
        done = await view.submit_target(new_job(edge, caller.tenant, words.new_job(body)))
        return await _read(view, done.id)
    draft = words.named(await drafted(edge, caller, words.new_schedule(body, "job")), view.ids.new(await view.moment()))
    return words.periodic(await view.put_schedule(draft, author=caller.author), None, {}, await view.now())


async def _read(view: Operations, job_id: UUID) -> dict[str, Any]:
    """The job; or the schedule of this id; or the last of one that was cancelled."""
    try:
        job = await view.read_job(job_id)
    except JobNotFound:
        return await _read_periodic(view, job_id)
    return words.job(job, await _workers(view))


async def _read_periodic(view: Operations, job_id: UUID) -> dict[str, Any]:
    schedule = await view.store.get_schedule_by_id(view.tenant, job_id)
    if schedule is not None:
        return words.periodic(schedule, await _last(view, schedule), await _workers(view), await view.now())
    found = await _removed(view, words.schedule_name(job_id))
    if found is None:
        raise JobNotFound(f"there is no job {job_id}: it never was, or its history has been pruned")
    return found


async def _removed(view: Operations, name: str) -> dict[str, Any] | None:
    versions = await view.store.list_versions(view.tenant, name, MOST)
    if not versions or versions[0].change is not Change.REMOVED:
        return None
    return words.gone(versions[0], versions[-1].at)


async def _shown(view: Operations, page: Page) -> list[dict[str, Any]]:
    """Periodic ones without their last execution: it would have to be looked for one by one."""
    workers, now = await _workers(view), await view.now()
    return [words.periodic(one, None, workers, now) if isinstance(one, Schedule) else words.job(one, workers) for one in page.found]


async def _last(view: Operations, schedule: Schedule) -> Job | None:
    """The latest execution that has begun or could have."""
    now = await view.now() + 1, UUID(int=0)
    page = await view.job_page(JobQuery(schedule=schedule.draft.name), 1, now)
    return next((job for job in page.jobs if job.schedule_id == schedule.id), None)


async def _workers(view: Operations) -> dict[int, str]:
    return {node.id: node.name for node in await view.nodes()}


@contextmanager
def _their_words() -> Iterator[None]:
    try:
        yield
    except InvalidInput as problem:
        raise words.in_their_words(problem) from None
