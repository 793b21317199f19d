"""/api/schedules and /api/health: schedules that call agents, with the names of the API they were written
for."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Body, Path, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Manager, Reader, RequestContext
from duetime.api.compat import agent_views as mapping
from duetime.api.compat.agent_views import (
    AgentHealthOut,
    AgentScheduleIn,
    AgentScheduleOut,
    AgentSchedulePatchIn,
    ExecutionOut,
    RemovedOut,
)
from duetime.api.paging import MAX_PAGE, ClosedQuery, PageQuery
from duetime.api.problems import RETRY_AFTER
from duetime.api.requests import edit_schedule, new_schedule
from duetime.api.routing import ONCE, StrictRoute, answer, problems, with_body
from duetime.app.listing import JobQuery
from duetime.app.services import Services
from duetime.clock import wall_micros
from duetime.config import Settings
from duetime.engine.plan.leases import read_leases
from duetime.engine.submit.validate import MAX_NAME_LENGTH
from duetime.errors import DuetimeError, ScheduleExists, VersionConflict
from duetime.model.ids import first_id
from duetime.model.instant import to_datetime
from duetime.model.retry import Retry
from duetime.model.schedule import Schedule, ScheduleFilter
from duetime.model.views import encode_view

STORE_TIMEOUT = 2.0  # seconds: health checks have short timeouts
MAX_TRIES = 5  # of an edit, when other edits come first
LINK = {"Link": {"description": 'The address of the next page: rel="next".', "schema": {"type": "string"}}}
AN_ID = "01935c2e-7b3a-7000-8000-000000000000"
ScheduleId = Annotated[
    str, Path(alias="schedule_id", min_length=1, max_length=MAX_NAME_LENGTH, examples=[AN_ID])
]
router = APIRouter(prefix="/api", tags=["agents (compatible)"], route_class=StrictRoute)


class AllQuery(PageQuery):
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE, description="Default: all schedules.")] = MAX_PAGE


class HistoryQuery(ClosedQuery):
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 50


@router.post(
    "/schedules",
    status_code=201,
    response_model=AgentScheduleOut,
    operation_id="create_agent_schedule",
    summary="Create a schedule that calls an agent",
    responses=with_body(409),
    openapi_extra=ONCE,
)
async def create(body: Annotated[AgentScheduleIn, Body()], context: Manager) -> Response:
    async def work(view: Services) -> Response:
        return answer(mapping.schedule(await _create(context, view, body)), 201)

    return await context.once(work, body)


@router.get(
    "/schedules",
    response_model=list[AgentScheduleOut],
    operation_id="list_agent_schedules",
    summary="List schedules by name",
    responses={200: {"headers": LINK}, **problems()},
)
async def list_all(request: Request, query: Annotated[AllQuery, Query()], context: Reader) -> Response:
    if not query.model_fields_set:
        return Response(await _all(context.view), media_type="application/json")
    listing = await context.listing("agent schedules", query)
    found = await context.view.schedules.page(
        ScheduleFilter(context.caller.tenant), listing.limit + 1, listing.after
    )
    page, cursor = listing.split(found, lambda schedule: schedule.draft.name)
    link = {"Link": f'<{request.url.path}?limit={query.limit}&cursor={cursor}>; rel="next"'}
    return answer([mapping.schedule(one) for one in page], 200, None if cursor is None else link)


@router.get(
    "/schedules/{schedule_id}",
    response_model=AgentScheduleOut,
    operation_id="read_agent_schedule",
    summary="Read a schedule",
    responses=problems(404),
)
async def read(schedule_id: ScheduleId, context: Reader) -> Response:
    return answer(mapping.schedule(await context.view.schedules.find(schedule_id)))


@router.put(
    "/schedules/{schedule_id}",
    response_model=AgentScheduleOut,
    operation_id="update_agent_schedule",
    summary="Change the given fields of a schedule",
    responses=with_body(404, 409, 412),
)
async def update(
    schedule_id: ScheduleId, body: Annotated[AgentSchedulePatchIn, Body()], context: Manager
) -> Response:
    return answer(mapping.schedule(await _update(context, schedule_id, body)))


@router.delete(
    "/schedules/{schedule_id}",
    response_model=RemovedOut,
    operation_id="delete_agent_schedule",
    summary="Remove a schedule",
    responses=problems(404),
)
async def remove(schedule_id: ScheduleId, context: Manager) -> Response:
    await context.view.schedules.remove_version(schedule_id, author=context.caller.author)
    return answer({"success": True, "message": "Schedule deleted successfully"})


@router.get(
    "/schedules/{schedule_id}/executions",
    response_model=list[ExecutionOut],
    operation_id="list_agent_executions",
    summary="The executions of a schedule, newest first",
    responses=problems(404),
)
async def executions(
    schedule_id: ScheduleId, query: Annotated[HistoryQuery, Query()], context: Reader
) -> Response:
    view = context.view
    schedule = await view.schedules.find(schedule_id)
    # Jobs that are planned ahead are not executions before their fire time.
    coming = first_id(await view.now() + 1)
    page = await view.jobs.page(JobQuery(schedule=schedule.draft.name), query.limit, coming)
    return answer(
        [mapping.execution(job, str(schedule.id)) for job in page.jobs if job.schedule_id == schedule.id]
    )


@router.get(
    "/health",
    response_model=AgentHealthOut,
    operation_id="agent_health",
    summary="Check the database and the lock backend",
    responses={
        **problems(),
        503: {"model": AgentHealthOut, "description": "The database does not answer."},
    },
)
async def health(context: Reader) -> Response:
    store = context.state.app.store
    try:
        async with asyncio.timeout(STORE_TIMEOUT):
            await read_leases(store)
        state, status, code = "connected", "healthy", 200
    except (DuetimeError, TimeoutError):
        state, status, code = "disconnected", "unhealthy", 503
    services = {"database": state, "locks": state, "redis": "not used"}
    body = {"status": status, "timestamp": to_datetime(wall_micros()), "services": services}
    return answer(body, code, {"Retry-After": RETRY_AFTER} if code == 503 else None)


async def _all(view: Services) -> bytes:
    """One page after the other, so that a long list does not block other requests."""
    parts: list[bytes] = []
    after: str | None = None
    while page := await view.schedules.page(ScheduleFilter(view.tenant), MAX_PAGE, after):
        parts.append(encode_view([mapping.schedule(one) for one in page])[1:-1])
        after = page[-1].draft.name
    return b"[" + b",".join(parts) + b"]"


def default_retry(settings: Settings) -> Retry:
    """The default of schedules: from the settings, or else that of the original service."""
    attempts = settings.retry_attempts if settings.given("retry_attempts") else 3
    delay = settings.retry_delay if settings.given("retry_delay") else "1s"
    return Retry(attempts, delay, 2.0, "30s")


async def _create(context: RequestContext, view: Services, body: AgentScheduleIn) -> Schedule:
    """Names are not unique in that API, and may be longer: such a schedule gets a name of ours, and keeps its
    own as a label."""
    made = view.context.ids.new(await view.context.moment())
    with mapping.original_fields():
        mapping.check_title(body.name)
        fits = len(body.name) <= MAX_NAME_LENGTH
        stored = await _put(context, view, body, body.name, made) if fits else None
        if stored is None:
            stored = await _put(
                context, view, body, f"{body.name[: MAX_NAME_LENGTH - 9]} {made.hex[-8:]}", made
            )
    if stored is None:
        raise ScheduleExists(f"other schedules are named {body.name!r}", "choose another name")
    return stored


async def _put(
    context: RequestContext, view: Services, body: AgentScheduleIn, name: str, made: UUID
) -> Schedule | None:
    """Store it under this name; None if another schedule has the name. A repeated request finds its own
    schedule."""
    draft = await new_schedule(
        context, mapping.new_schedule(body, name, default_retry(context.state.settings))
    )
    try:
        return await view.schedules.put(
            replace(draft, id=made), 0, author=context.caller.author, paused=not body.enabled
        )
    except VersionConflict:
        known = await view.schedules.find(name)
        return known if known.id == made else None


async def _update(context: RequestContext, reference: str, body: AgentSchedulePatchIn) -> Schedule:
    with mapping.original_fields():
        for _ in range(MAX_TRIES):
            known = await context.view.schedules.find(reference)
            patch = mapping.patch(body, known)
            if not patch.model_fields_set:
                return known
            try:
                return await edit_schedule(context, str(known.id), patch, known.version)
            except VersionConflict:
                continue
    raise VersionConflict(f"schedule {reference!r} is being changed by other requests: repeat the request")
