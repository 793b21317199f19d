"""The worker protocol: remote workers join, claim jobs, send heartbeats and report. For keys with the scope
`work`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar
from uuid import UUID

from fastapi import APIRouter, Body, Path
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import RemoteWorker, RequestContext
from duetime.api.long_poll import parse_wait
from duetime.api.models.work import (
    AliveIn,
    AttemptIn,
    ClaimIn,
    CompletionsIn,
    FailedIn,
    FailuresIn,
    JobOutputIn,
    JoinIn,
    OutputsIn,
    ReleasesIn,
    RemoteTaskIn,
    SnoozesIn,
    WorkHeartbeatIn,
)
from duetime.api.problems import ApiProblem
from duetime.api.requests import read_retry
from duetime.api.routing import PREFIX, StrictRoute, answer, links, location, problems, with_body
from duetime.api.v1.output import output_texts
from duetime.app.remote_work import AttemptKey, RemoteNode
from duetime.app.reports import Alive, Completed, Ended, Failed, OutputText, Released, Snoozed
from duetime.clock import monotonic_micros
from duetime.engine.submit.build import at_number, policies
from duetime.engine.submit.validate import check_name
from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.codec import decode
from duetime.model.instant import SECOND
from duetime.model.job import DEFAULT_QUEUE
from duetime.model.profile import NodeProfile
from duetime.model.views import (
    ClaimedJobs,
    HeartbeatReply,
    RefusedReport,
    ReportReply,
    WorkerView,
)

MAX_WORK_BODY = 4 * 1024 * 1024
MAX_WORK_KEYS = 100_000
PROTOCOL = "http"  # shown as the version of a node
WorkerPath = Annotated[int, Path(ge=1, le=2**53, examples=[7])]
JOINED = {"headers": location("The address at which the worker leaves."),
          "links": links("worker", "worker", "worker", "leave")}  # fmt: skip
TOO_MANY_WAITS = ApiProblem(
    429, "waits_exhausted", "too many requests wait for jobs: repeat it", None, {"Retry-After": "1"}
)
Item = TypeVar("Item", bound=AttemptIn)
Report = TypeVar("Report", Ended, Alive)


class WorkRoute(StrictRoute):
    max_body = MAX_WORK_BODY
    max_keys = MAX_WORK_KEYS


router = APIRouter(prefix="/workers", tags=["workers"], route_class=WorkRoute)


@router.post(
    "",
    status_code=201,
    response_model=WorkerView,
    operation_id="join_worker",
    summary="Join as a worker",
    responses={201: JOINED, **with_body()},
)
async def join(body: Annotated[JoinIn, Body()], context: RemoteWorker) -> Response:
    caller, view = context.caller, context.view
    queues = body.queues or list(caller.queues) or [DEFAULT_QUEUE]
    profile = NodeProfile(
        tuple(dict.fromkeys(check_name(task.name, "tasks") for task in body.tasks)),
        tuple(dict.fromkeys(check_name(queue, "queues") for queue in queues)),
        body.concurrency,
        tenant=caller.tenant,
        lease=duration.parse(body.lease, "lease"),
        policies=dict(filter(None, map(_policies, body.tasks))),
    )
    _require_queues(context, profile)
    node = await view.remote_work.join(check_name(body.name, "name"), PROTOCOL, profile)
    joined = WorkerView(
        worker=node.id,
        queues=list(profile.queues),
        tasks=list(profile.targets),
        lease_seconds=profile.lease / SECOND,
        heartbeat_seconds=node.heartbeat_interval / SECOND,
    )
    return answer(joined, 201, {"Location": f"{PREFIX}/workers/{node.id}"})


@router.delete(
    "/{worker}",
    status_code=204,
    operation_id="leave_worker",
    summary="Leave; jobs that are not reported are released",
    responses=problems(404),
)
async def leave(worker: WorkerPath, context: RemoteWorker) -> Response:
    await context.view.remote_work.leave(await _node(context, worker))
    return Response(status_code=204)


@router.post(
    "/{worker}/claim",
    response_model=ClaimedJobs,
    operation_id="claim_jobs",
    summary="Claim due jobs, or wait for some",
    responses=with_body(404),
)
async def claim(
    request: Request, worker: WorkerPath, body: Annotated[ClaimIn, Body()], context: RemoteWorker
) -> Response:
    deadline = monotonic_micros() + parse_wait(body.wait)
    node, work, polls = await _node(context, worker), context.view.remote_work, context.state.long_polls
    identity = context.caller.identity
    while True:
        jobs = await work.claim(node, body.max)
        left = deadline - monotonic_micros()
        if jobs or left <= 0:
            break
        if polls.full(identity):
            raise TOO_MANY_WAITS
        if not await polls.hold(work.wait(node, left), request, identity):
            break  # the client has gone, or the service stops
    return answer(ClaimedJobs(jobs=jobs))


@router.post(
    "/{worker}/heartbeat",
    response_model=HeartbeatReply,
    operation_id="heartbeat_worker",
    summary="Extend the lease, save checkpoints and progress, and ask which jobs to stop",
    responses=with_body(404),
)
async def heartbeat(
    worker: WorkerPath, body: Annotated[WorkHeartbeatIn, Body()], context: RemoteWorker
) -> Response:
    node = await _node(context, worker)
    alive = [_numbered(number, one, _alive) for number, one in enumerate(body.jobs)]
    return answer(HeartbeatReply(stop=await context.view.remote_work.heartbeat(node, alive)))


@router.post(
    "/{worker}/output",
    response_model=ReportReply,
    operation_id="add_output",
    summary="Keep what jobs log and print",
    responses=with_body(404),
)
async def add_output(
    worker: WorkerPath, body: Annotated[OutputsIn, Body()], context: RemoteWorker
) -> Response:
    node = await _node(context, worker)
    outputs = [_output(number, one) for number, one in enumerate(body.jobs)]
    keep = duration.parse(context.state.settings.output_retention, "output_retention")
    return _refused(await context.view.remote_work.add_output(node, outputs, keep))


@router.post(
    "/{worker}/complete",
    response_model=ReportReply,
    operation_id="complete_jobs",
    summary="Report success of jobs",
    responses=with_body(404),
)
async def complete(
    worker: WorkerPath, body: Annotated[CompletionsIn, Body()], context: RemoteWorker
) -> Response:
    return await _settle(context, worker, body.jobs, lambda one: Completed(one.attempt, one.result))


@router.post(
    "/{worker}/fail",
    response_model=ReportReply,
    operation_id="fail_jobs",
    summary="Report failures of jobs; their retry policies decide what follows",
    responses=with_body(404),
)
async def fail(worker: WorkerPath, body: Annotated[FailuresIn, Body()], context: RemoteWorker) -> Response:
    return await _settle(context, worker, body.jobs, _failed)


@router.post(
    "/{worker}/snooze",
    response_model=ReportReply,
    operation_id="snooze_jobs",
    summary="Run jobs again later; this is not a failure",
    responses=with_body(404),
)
async def snooze(worker: WorkerPath, body: Annotated[SnoozesIn, Body()], context: RemoteWorker) -> Response:
    return await _settle(
        context,
        worker,
        body.jobs,
        lambda one: Snoozed(one.attempt, duration.parse(one.after, "after"), one.reason or None),
    )


@router.post(
    "/{worker}/release",
    response_model=ReportReply,
    operation_id="release_jobs",
    summary="Give jobs back; another worker runs them",
    responses=with_body(404),
)
async def release(worker: WorkerPath, body: Annotated[ReleasesIn, Body()], context: RemoteWorker) -> Response:
    return await _settle(context, worker, body.jobs, lambda one: Released(one.attempt, one.started))


async def _node(context: RequestContext, worker: int) -> RemoteNode:
    await context.view.now()  # samples the store's clock if the last sample is old
    node = await context.view.remote_work.find(context.caller.tenant, worker)
    _require_queues(context, node.profile)
    return node


async def _settle(
    context: RequestContext, worker: int, items: Sequence[Item], read: Callable[[Item], Ended]
) -> Response:
    node = await _node(context, worker)
    reports = [_numbered(number, one, read) for number, one in enumerate(items)]
    return _refused(await context.view.remote_work.settle(node, reports))


def _refused(attempts: Sequence[AttemptKey]) -> Response:
    return answer(ReportReply(refused=[RefusedReport(id=id, attempt=attempt) for id, attempt in attempts]))


def _output(number: int, one: JobOutputIn) -> tuple[AttemptKey, list[OutputText]]:
    try:
        key = _job_id(one.id), one.attempt
    except InvalidInput as problem:
        raise at_number(problem, number) from None
    return key, output_texts(one.lines)


def _numbered(number: int, item: Item, read: Callable[[Item], Report]) -> tuple[UUID, Report]:
    try:
        return _job_id(item.id), read(item)
    except InvalidInput as problem:
        raise at_number(problem, number) from None


def _job_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput("id", "is not a job id: send it as the claim named it") from None


def _alive(one: AliveIn) -> Alive:
    given = "progress" in one.model_fields_set
    progress = one.progress.model_dump(exclude_unset=True) if given else None
    return Alive(one.attempt, progress, one.checkpoint)


def _failed(one: FailedIn) -> Failed:
    """The error ends with what went wrong: errors are listed and grouped by their last line."""
    what = f"{one.error.type}: {one.error.message}"
    error = f"{one.error.traceback.rstrip()}\n{what}" if one.error.traceback else what
    delay = duration.parse(one.after, "after") if "after" in one.model_fields_set else None
    return Failed(one.attempt, error, one.retry, delay)


def _policies(task: RemoteTaskIn) -> tuple[str, object] | None:
    """What the registration sets for jobs of the task."""
    given = task.model_fields_set
    own = policies(
        task.timeout if "timeout" in given else None,
        read_retry(task.retry) if "retry" in given else None,
        None,
    )
    return None if own is None else (task.name, decode(own))


def _require_queues(context: RequestContext, profile: NodeProfile) -> None:
    allowed = context.caller.queues
    other = [queue for queue in profile.queues if allowed and queue not in allowed]
    if other:
        detail = (
            f"queues: the key may not work on {other[0]!r}, only on {', '.join(allowed)}: use another key"
        )
        raise ApiProblem(403, "queue_not_allowed", detail, "queues")
