"""Jobs: list, read, change, cancel, retry; batches; dead letters. POST /jobs is in fast_submit.py."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Body, Path, Query
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Manager, Reader, RequestContext, Submitter, auth_request_of
from duetime.api.bodies import MAX_BATCH_BODY, MAX_BATCH_KEYS
from duetime.api.caller import Caller
from duetime.api.long_poll import parse_wait
from duetime.api.models.jobs import (
    BatchJobIn,
    ErrorText,
    JobBatchIn,
    JobFilterIn,
    JobPatchIn,
    PayloadField,
    RetryJobIn,
    TargetName,
)
from duetime.api.models.targets import Name, Note
from duetime.api.paging import ClosedQuery, Listing, PageQuery, ZoneName
from duetime.api.problems import ApiProblem
from duetime.api.requests import (
    KEY_LABEL,
    LABEL_FORM,
    PATH_FORM,
    new_job,
    read_instant,
    read_micros,
    read_name,
    read_pair,
    read_target_name,
)
from duetime.api.routing import ONCE, PREFIX, StrictRoute, answer, location, problems, with_body
from duetime.app.listing import JobQuery
from duetime.app.services import Services
from duetime.engine.submit.submission import JobRequest
from duetime.engine.submit.validate import check_note
from duetime.errors import InvalidInput
from duetime.model.api_key import Scope
from duetime.model.codec import decode
from duetime.model.job import CancelReply, State
from duetime.model.views import DeadGroups, JobSummary, JobView, Page, SubmittedBatch, WhyView

LOCATION = location("The address of the job.")
JobId = Annotated[UUID, Path(examples=["01935c2e-7b3a-7000-8000-000000000000"])]
IdPart = Annotated[str, Field(min_length=4, max_length=36, json_schema_extra={"format": "duetime-id-part"})]
NO_CHANGE = RetryJobIn()


class BatchRoute(StrictRoute):
    max_body = MAX_BATCH_BODY
    max_keys = MAX_BATCH_KEYS


router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=StrictRoute)
batches = APIRouter(prefix="/jobs", tags=["jobs"], route_class=BatchRoute)
dead_letters = APIRouter(tags=["dead letters"], route_class=StrictRoute)


class JobListQuery(PageQuery, JobFilterIn):
    model_config = ConfigDict(strict=False)  # values of a query are text
    worker: Annotated[Name | None, Field(description="The id or name of a node.")] = None
    id: Annotated[
        IdPart | None,
        Field(
            description="At least 4 of the first digits of the id, or its last 8, which are looked for in "
            "the newest jobs. There is only one page.",
            examples=["01935c2e-7b3a", "…8f3a01c2"],
        ),
    ] = None


class JobWhyQuery(ClosedQuery):
    tz: Annotated[ZoneName, Field(description="The time zone of times in the sentence.")] = "UTC"


class DeadQuery(ClosedQuery):
    target: TargetName | None = None
    error: ErrorText | None = None
    payload: PayloadField | None = None


class ReadQuery(ClosedQuery):
    wait: Annotated[
        str,
        Field(
            description="Answer when the job is final, or after this time, up to 60s. Check the "
            "state in the answer: the "
            "service answers sooner while it stops, or when it holds too many requests.",
            examples=["30s"],
            min_length=1,
            max_length=32,
            json_schema_extra={"format": "duetime-wait"},
        ),
    ] = "0s"


class CancelQuery(ClosedQuery):
    reason: Annotated[Note | None, Field(description="Stored with the job.", examples=["wrong month"])] = None


@batches.post(
    "/batch",
    status_code=201,
    response_model=SubmittedBatch,
    operation_id="submit_jobs",
    summary="Submit many jobs, all or none",
    responses=with_body(409),
    openapi_extra=ONCE,
)
async def submit_batch(body: Annotated[JobBatchIn, Body()], context: Submitter) -> Response:
    async def work(view: Services) -> Response:
        jobs = [_numbered(number, context, job) for number, job in enumerate(body.jobs)]
        done = await view.jobs.submit_requests(jobs)
        created = sum(one.conflict is None for one in done)
        tasks = {one.draft.target for one in done if one.draft.target_spec is None}
        found = [await view.context.task_warning(task, None) for task in sorted(tasks)]
        warnings = [one for one in found if one is not None]
        return answer(SubmittedBatch(ids=[one.id for one in done], created=created, warnings=warnings), 201)

    return await context.once(work, body)


@router.get(
    "",
    response_model=Page[JobSummary],
    operation_id="list_jobs",
    summary="List jobs, newest fire time first",
    responses=problems(),
)
async def list_jobs(query: Annotated[JobListQuery, Query()], context: Reader) -> Response:
    return await job_page(context, await context.listing("jobs", query), await job_query(context.view, query))


@router.get(
    "/{job_id:uuid}",
    operation_id="read_job",
    response_model=JobView,
    summary="Read a job with its attempts",
    responses=problems(404),
)
async def read(
    request: Request, job_id: JobId, query: Annotated[ReadQuery, Query()], context: Reader
) -> Response:
    if micros := parse_wait(query.wait):
        until = context.view.wait_for(job_id, timedelta(microseconds=micros))
        await context.state.long_polls.hold(until, request, context.caller.identity)
        # The key may have been revoked meanwhile.
        await context.state.authenticator.authenticate(auth_request_of(request))
    return await job_answer(context.view, job_id)


@router.patch(
    "/{job_id:uuid}",
    operation_id="change_job",
    response_model=JobView,
    summary="Reschedule a pending job, or change its priority",
    responses=with_body(404, 409),
)
async def change(job_id: JobId, body: Annotated[JobPatchIn, Body()], context: Manager) -> Response:
    given = body.model_fields_set
    at = read_instant(body.at, "at") if "at" in given else None
    delay = body.delay if "delay" in given else None
    priority = body.priority if "priority" in given else None
    await context.view.reschedule_job(job_id, at=at, delay=delay, priority=priority)
    return await job_answer(context.view, job_id)


@router.delete(
    "/{job_id:uuid}",
    operation_id="cancel_job",
    response_model=JobView,
    summary="Cancel a job",
    responses={
        200: {"description": "Cancelled."},
        202: {"model": JobView, "description": "The job is running: its worker is asked to stop it."},
        **problems(404, 409),
    },
)
async def cancel(job_id: JobId, query: Annotated[CancelQuery, Query()], context: Submitter) -> Response:
    await _require_own(context, job_id)
    reply = await context.view.cancel_job(job_id, cancel_reason(context.caller, check_note(query.reason)))
    return await job_answer(context.view, job_id, 202 if reply is CancelReply.REQUESTED else 200)


@router.post(
    "/{job_id:uuid}/retry",
    status_code=201,
    operation_id="retry_job",
    response_model=JobView,
    summary="Retry a dead letter or a skipped job as a new job",
    responses={201: {"headers": LOCATION}, **with_body(404, 409)},
    openapi_extra=ONCE,
)
async def retry(job_id: JobId, context: Manager, body: Annotated[RetryJobIn, Body()] = NO_CHANGE) -> Response:
    async def work(view: Services) -> Response:
        handle = await view.retry_job(job_id, body.payload if "payload" in body.model_fields_set else None)
        return await created_job(context, handle.id)

    return await context.once(work, body)


@router.post(
    "/{job_id:uuid}/run",
    operation_id="run_job",
    response_model=JobView,
    summary="Make a pending job due now",
    responses=problems(404, 409),
)
async def run(job_id: JobId, context: Manager) -> Response:
    await context.view.jobs.run(job_id)
    return await job_answer(context.view, job_id)


@router.get(
    "/{job_id:uuid}/why",
    response_model=WhyView,
    operation_id="why_job",
    summary="Why a job is in its present state",
    responses=problems(404),
)
async def why_job(job_id: JobId, query: Annotated[JobWhyQuery, Query()], context: Reader) -> Response:
    return answer(WhyView.of(await context.view.why.job(job_id, query.tz)))


@dead_letters.post(
    "/jobs/{job_id:uuid}/discard",
    status_code=204,
    operation_id="discard_job",
    summary="Remove a dead letter from the list; its record stays",
    responses=problems(404, 409),
)
async def discard(job_id: JobId, context: Manager) -> Response:
    await context.view.discard_job(job_id)
    return Response(status_code=204)


@dead_letters.get(
    "/dead",
    response_model=DeadGroups,
    operation_id="dead_groups",
    summary="Dead letters, grouped by cause",
    responses=problems(),
)
async def groups(query: Annotated[DeadQuery, Query()], context: Reader) -> Response:
    wanted = JobQuery(
        target=read_target_name(query.target, "target"),
        error=query.error,
        payload=read_pair(query.payload, "payload", PATH_FORM),
    )
    with context.searching(wanted):
        return answer(await context.view.dead.groups(wanted))


async def job_answer(
    view: Services, job_id: UUID, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    job = await view.read_job(job_id)
    return answer(JobView.of(job, await view.store.list_attempts(job.id)), status, headers)


async def created_job(context: RequestContext, job_id: UUID) -> Response:
    return await job_answer(context.view, job_id, 201, {"Location": f"{PREFIX}/jobs/{job_id}"})


async def job_page(context: RequestContext, listing: Listing, query: JobQuery) -> Response:
    with context.searching(query):
        page = await context.view.jobs.page(query, listing.limit, listing.before_job)
    return answer(Page([JobSummary.of(job) for job in page.jobs], listing.cursor_after(page.next)))


async def job_query(view: Services, query: JobListQuery | JobFilterIn, prefix: str = "") -> JobQuery:
    return JobQuery(
        None if query.state is None else State(query.state),
        read_name(query.queue, f"{prefix}queue"),
        read_name(query.owner, f"{prefix}owner"),
        await _schedule_name(view, query.schedule, f"{prefix}schedule"),
        read_name(query.worker, "worker") if isinstance(query, JobListQuery) else None,
        read_pair(query.label, f"{prefix}label", LABEL_FORM),
        read_micros(query.due_after, f"{prefix}due_after"),
        read_micros(query.due_before, f"{prefix}due_before"),
        read_target_name(query.target, f"{prefix}target"),
        query.error,
        query.error_group,
        read_pair(query.payload, f"{prefix}payload", PATH_FORM),
        query.id if isinstance(query, JobListQuery) else None,
    )


async def _schedule_name(view: Services, reference: str | None, field: str) -> str | None:
    """From a name or an id. Jobs of a removed schedule are found by its name only."""
    if reference is None:
        return None
    try:
        return (await view.schedules.find(read_name(reference, field) or "")).draft.name
    except LookupError:
        return reference


async def _require_own(context: RequestContext, job_id: UUID) -> None:
    """A key that may only submit cancels the jobs that it submitted."""
    if context.caller.may(Scope.MANAGE):
        return
    labels = (await context.view.read_job(job_id)).labels
    if labels is None or decode(labels).get(KEY_LABEL, "") != context.caller.key_prefix:
        detail = "the key lacks the scope 'manage' and has not submitted this job: use a key that has it"
        raise ApiProblem(403, "scope_missing", detail)


def cancel_reason(caller: Caller, reason: str | None = None) -> str:
    who = "" if caller.author is None else f" by {caller.author}"
    return f"cancelled over the API{who}" if not reason else f"{reason} ({who.strip()})" if who else reason


def _numbered(number: int, context: RequestContext, body: BatchJobIn) -> JobRequest:
    try:
        return new_job(context, body)
    except InvalidInput as error:
        field = f"jobs[{number}].{error.field}"
        raise ApiProblem(422, error.code, f"jobs[{number}].{error.message}", field) from None
