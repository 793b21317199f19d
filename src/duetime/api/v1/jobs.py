"""Jobs: submit, list, read, change, cancel; and the reports of workers in other languages."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Body, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api import shown
from duetime.api.auth import Caller, Manager, Reader, Submitter, asked_by
from duetime.api.edge import Edge, edge_of
from duetime.api.holding import longest
from duetime.api.limits import LARGEST_BATCH, MOST_BATCH_KEYS
from duetime.api.models.bulk import ErrorLine, JobFilterIn, Label, TargetName
from duetime.api.models.fields import Instant, Name, Note
from duetime.api.models.jobs import BatchJobIn, BatchOut, JobBatchIn, JobOut, JobPageOut, JobPatchIn, NewJobIn, RetryJobIn, SubmittedOut
from duetime.api.problems import Refused
from duetime.api.routing import IDEMPOTENCY_KEY, StrictRoute, answer, problems, with_body
from duetime.api.v1.submitting import fingerprint
from duetime.api.v1.submitting import submit as submit_job
from duetime.api.wanted import instant, new_job
from duetime.app.listing import JobQuery
from duetime.app.operations import Operations
from duetime.engine.checks import check_id, check_name, check_note
from duetime.errors import InvalidInput
from duetime.model import instant as instants
from duetime.model.job import CancelReply, State
from duetime.model.target import HTTP

MOST_A_PAGE = 1_000
LISTING = "jobs"
LOCATION = {"Location": {"description": "Where the job can be read.", "schema": {"type": "string"}}}
JobId = Annotated[UUID, Path(examples=["01935c2e-7b3a-7000-8000-000000000000"])]

NO_CHANGE = RetryJobIn()
OPERATIONS = ("read", "change", "cancel", "run", "retry", "discard", "why")
LINKS = {name: {"operationId": f"{name}_job", "parameters": {"job_id": "$response.body#/id"}} for name in OPERATIONS}

router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=StrictRoute)


class BatchRoute(StrictRoute):
    largest_body = LARGEST_BATCH
    most_keys = MOST_BATCH_KEYS


class JobListQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    state: State | None = None
    queue: Name | None = None
    owner: Name | None = None
    schedule: Annotated[Name | None, Field(description="Its name or id.")] = None
    worker: Annotated[Name | None, Field(description="A node's id or name.")] = None
    label: Label | None = None
    due_after: Annotated[Instant | None, Field(description="Included.")] = None
    due_before: Annotated[Instant | None, Field(description="Excluded.")] = None
    target: TargetName | None = None
    error: ErrorLine | None = None
    limit: Annotated[int, Field(ge=1, le=MOST_A_PAGE)] = 100
    cursor: Annotated[str | None, Field(min_length=1, max_length=1_024, json_schema_extra={"format": "duetime-cursor"})] = None


class ReadQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    wait: Annotated[
        str,
        Field(
            description="Answer when the job is final, or after this time, up to 60s. Whoever asks must look at the state: "
            "the answer comes sooner while the service stops, or when too many wait.",
            examples=["30s"],
            min_length=1,
            max_length=32,
            json_schema_extra={"format": "duetime-wait"},
        ),
    ] = "0s"


class CancelQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    reason: Annotated[Note | None, Field(description="Kept with the job.", examples=["wrong month"])] = None


@router.post(
    "",
    status_code=201,
    response_model=SubmittedOut,
    summary="Submit a job",
    responses={
        201: {"headers": LOCATION, "description": "Stored, durably.", "links": LINKS},
        200: {"headers": LOCATION, "model": SubmittedOut, "description": "A job with this unique key is there already."},
        **with_body(409),
    },
    openapi_extra={"parameters": [IDEMPOTENCY_KEY]},
)
async def submit(request: Request, body: Annotated[NewJobIn, Body()], caller: Submitter) -> Response:
    return await submit_job(edge_of(request), caller, request.headers.get("idempotency-key"), body)


batches = APIRouter(prefix="/jobs", tags=["jobs"], route_class=BatchRoute)


@batches.post(
    "/batch",
    status_code=201,
    response_model=BatchOut,
    summary="Submit many jobs, all or none",
    responses=with_body(409),
    openapi_extra={"parameters": [IDEMPOTENCY_KEY]},
)
async def submit_batch(request: Request, body: Annotated[JobBatchIn, Body()], caller: Submitter) -> Response:
    edge = edge_of(request)
    view = edge.view(caller)

    async def work(view: Operations) -> Response:
        wanted = [_numbered(number, edge, caller, one) for number, one in enumerate(body.jobs)]
        done = await view.submit_targets(wanted)
        return answer({"ids": [str(one.id) for one in done], "created": sum(one.conflict is None for one in done)}, 201)

    key = request.headers.get("idempotency-key")
    return await edge.memory.once(view, key, fingerprint(request.method, request.url.path, body), work)


@router.get("", response_model=JobPageOut, summary="List jobs, newest fire time first", responses=problems())
async def list_jobs(request: Request, query: Annotated[JobListQuery, Query()], caller: Reader) -> Response:
    edge = edge_of(request)
    view = edge.view(caller)
    filters = query.model_dump(mode="json", exclude={"limit", "cursor"})
    before = None
    if query.cursor is not None:
        fire_time, job_id = edge.cursors.read(caller.tenant, LISTING, filters, query.cursor)
        before = fire_time, check_id(job_id)
    page = await view.job_page(await query_of(view, query), query.limit, before)
    following = None if page.next is None else edge.cursors.write(caller.tenant, LISTING, filters, [page.next[0], str(page.next[1])])
    return answer({"items": [shown.job_summary(job) for job in page.jobs], "next_cursor": following})


@router.get(
    "/{job_id:uuid}", operation_id="read_job", response_model=JobOut, summary="Read a job with its attempts", responses=problems(404)
)
async def read(request: Request, job_id: JobId, query: Annotated[ReadQuery, Query()], caller: Reader) -> Response:
    edge, micros = edge_of(request), longest(query.wait)
    if micros:
        over = edge.view(caller).wait_for(job_id, timedelta(microseconds=micros))
        await edge.held.until(over, request, (caller.tenant, caller.key_prefix))
        await edge.gate.admit(asked_by(request))  # a key may have been revoked meanwhile
    return await show(edge, caller, job_id)


@router.patch(
    "/{job_id:uuid}",
    operation_id="change_job",
    response_model=JobOut,
    summary="Move a pending job, or change its priority",
    responses=with_body(404, 409),
)
async def change(request: Request, job_id: JobId, body: Annotated[JobPatchIn, Body()], caller: Manager) -> Response:
    given = body.model_fields_set
    edge = edge_of(request)
    at = instant(body.at, "at") if "at" in given else None
    await edge.view(caller).move_job(
        job_id, at=at, delay=body.delay if "delay" in given else None, priority=body.priority if "priority" in given else None
    )
    return await show(edge, caller, job_id)


@router.delete(
    "/{job_id:uuid}",
    operation_id="cancel_job",
    response_model=JobOut,
    summary="Cancel a job",
    responses={
        200: {"description": "Cancelled."},
        202: {"model": JobOut, "description": "It runs: its worker is asked."},
        **problems(404, 409),
    },
)
async def cancel(request: Request, job_id: JobId, query: Annotated[CancelQuery, Query()], caller: Manager) -> Response:
    edge = edge_of(request)
    reply = await edge.view(caller).cancel_job(job_id, cancelled_by(caller, check_note(query.reason)))
    return await show(edge, caller, job_id, 202 if reply is CancelReply.REQUESTED else 200)


@router.post(
    "/{job_id:uuid}/retry",
    status_code=201,
    operation_id="retry_job",
    response_model=JobOut,
    summary="Run a dead letter again, as a new job",
    responses={201: {"headers": LOCATION}, **with_body(404, 409)},
    openapi_extra={"parameters": [IDEMPOTENCY_KEY]},
)
async def retry(
    request: Request, job_id: JobId, caller: Manager, body: Annotated[RetryJobIn, Body()] = NO_CHANGE
) -> Response:  # fmt: skip
    edge = edge_of(request)
    view = edge.view(caller)

    async def work(view: Operations) -> Response:
        handle = await view.retry_job(job_id, body.payload if "payload" in body.model_fields_set else None)
        made = await show(edge, caller, handle.id, 201)
        made.headers["Location"] = f"/api/v1/jobs/{handle.id}"
        return made

    key = request.headers.get("idempotency-key")
    return await edge.memory.once(view, key, fingerprint(request.method, request.url.path, body), work)


@router.post(
    "/{job_id:uuid}/run", operation_id="run_job", response_model=JobOut, summary="Have a pending job run now", responses=problems(404, 409)
)
async def run(request: Request, job_id: JobId, caller: Manager) -> Response:
    edge = edge_of(request)
    await edge.view(caller).run_job(job_id)
    return await show(edge, caller, job_id)


async def show(edge: Edge, caller: Caller, job_id: UUID, status: int = 200) -> Response:
    view = edge.view(caller)
    job = await view.read_job(job_id)
    attempts = await view.store.list_attempts(job.id)
    return answer(shown.job(job, attempts), status)


async def query_of(view: Operations, query: JobListQuery | JobFilterIn) -> JobQuery:
    key, _, value = (query.label or "").partition(":")
    return JobQuery(
        None if query.state is None else State(query.state),
        named(query.queue, "queue"),
        named(query.owner, "owner"),
        await _schedule(view, query.schedule),
        named(query.worker, "worker") if isinstance(query, JobListQuery) else None,
        None if query.label is None else (key, value),
        _moment(query.due_after, "due_after"),
        _moment(query.due_before, "due_before"),
        target_named(query.target, "target"),
        query.error,
    )


async def _schedule(view: Operations, reference: str | None) -> str | None:
    """By id, too, while the schedule is there; the jobs of one that was removed are found by its name."""
    if reference is None:
        return None
    try:
        return (await view.find_schedule(named(reference, "schedule") or "")).draft.name
    except LookupError:
        return reference


def named(value: str | None, field: str) -> str | None:
    return None if value is None else check_name(value, field)


def target_named(value: str | None, field: str) -> str | None:
    return value if value in (None, HTTP) else check_name(value, field)


def cancelled_by(caller: Caller, reason: str | None = None) -> str:
    who = "" if caller.author is None else f" by {caller.author}"
    return f"cancelled over the API{who}" if not reason else f"{reason} ({who.strip()})" if who else reason


def _moment(value: str | None, field: str) -> int | None:
    return None if value is None else instants.read(instant(value, field), field)


def _numbered(number: int, edge: Edge, caller: Caller, body: BatchJobIn) -> Any:
    try:
        return new_job(edge, caller.tenant, body)
    except InvalidInput as problem:
        raise Refused(422, problem.code, f"jobs[{number}].{problem.message}", f"jobs[{number}].{problem.field}") from None
