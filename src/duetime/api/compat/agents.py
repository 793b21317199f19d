"""/api/schedules and /api/health: schedules that call agents, in the words of the service they were written for."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Body, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api import shown
from duetime.api.auth import Caller, Manager, Reader
from duetime.api.compat import agent_words as words
from duetime.api.compat.agent_bodies import (
    AgentHealthOut,
    AgentScheduleIn,
    AgentScheduleOut,
    AgentSchedulePatchIn,
    ExecutionOut,
    RemovedOut,
)
from duetime.api.edge import Edge, edge_of
from duetime.api.problems import RETRY_AFTER, Refused
from duetime.api.routing import IDEMPOTENCY_KEY, StrictRoute, answer, problems, with_body
from duetime.api.scheduling import drafted, edited
from duetime.api.v1.submitting import fingerprint
from duetime.app.listing import JobQuery
from duetime.app.operations import Operations
from duetime.config import Settings
from duetime.engine.checks import LONGEST_NAME, check_name
from duetime.errors import DuetimeError, ScheduleExists, VersionConflict
from duetime.model.retry import Retry
from duetime.model.schedule import Schedule, ScheduleFilter

MOST = 1_000
PATIENCE = 2.0  # seconds: whoever asks for health has a timeout of his own
TRIES = 5  # others' edits an edit gives way to
LISTING = "agent-schedules"
LINK = {"Link": {"description": 'Where the next page is: rel="next".', "schema": {"type": "string"}}}
AN_ID = "01935c2e-7b3a-7000-8000-000000000000"
ScheduleId = Annotated[str, Path(alias="schedule_id", min_length=1, max_length=LONGEST_NAME, examples=[AN_ID])]
router = APIRouter(prefix="/api", tags=["agents (compatible)"], route_class=StrictRoute)


class AllQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    limit: Annotated[int, Field(ge=1, le=MOST)] = MOST
    cursor: Annotated[str | None, Field(min_length=1, max_length=1_024, json_schema_extra={"format": "duetime-cursor"})] = None


class HistoryQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    limit: Annotated[int, Field(ge=1, le=MOST)] = 50


@router.post(
    "/schedules",
    status_code=201,
    response_model=AgentScheduleOut,
    operation_id="create_agent_schedule",
    summary="Create a schedule that calls an agent",
    responses=with_body(409),
    openapi_extra={"parameters": [IDEMPOTENCY_KEY]},
)
async def create(request: Request, body: Annotated[AgentScheduleIn, Body()], caller: Manager) -> Response:
    edge = edge_of(request)

    async def work(view: Operations) -> Response:
        return answer(words.schedule(await _create(edge, caller, view, body)), 201)

    key = request.headers.get("idempotency-key")
    return await edge.memory.once(edge.view(caller), key, fingerprint(request.method, request.url.path, body), work)


@router.get(
    "/schedules",
    response_model=list[AgentScheduleOut],
    operation_id="list_agent_schedules",
    summary="All schedules, by name",
    responses={200: {"headers": LINK}, **problems()},
)
async def list_all(request: Request, query: Annotated[AllQuery, Query()], caller: Reader) -> Response:
    edge = edge_of(request)
    after = None if query.cursor is None else str(edge.cursors.read(caller.tenant, LISTING, {}, query.cursor)[0])
    found = await edge.view(caller).schedule_page(ScheduleFilter(caller.tenant), query.limit + 1, after)
    page, headers = found[: query.limit], {}
    if len(found) > query.limit:
        cursor = edge.cursors.write(caller.tenant, LISTING, {}, [page[-1].draft.name])
        headers["Link"] = f'<{request.url.path}?limit={query.limit}&cursor={cursor}>; rel="next"'
    return answer([words.schedule(one) for one in page], 200, headers)


@router.get(
    "/schedules/{schedule_id}",
    response_model=AgentScheduleOut,
    operation_id="read_agent_schedule",
    summary="One schedule",
    responses=problems(404),
)
async def read(request: Request, schedule_id: ScheduleId, caller: Reader) -> Response:
    return answer(words.schedule(await edge_of(request).view(caller).find_schedule(schedule_id)))


@router.put(
    "/schedules/{schedule_id}",
    response_model=AgentScheduleOut,
    operation_id="update_agent_schedule",
    summary="Change what is given, keep the rest",
    responses=with_body(404, 409, 412),
)
async def update(request: Request, schedule_id: ScheduleId, body: Annotated[AgentSchedulePatchIn, Body()], caller: Manager) -> Response:
    return answer(words.schedule(await _update(edge_of(request), caller, schedule_id, body)))


@router.delete(
    "/schedules/{schedule_id}",
    response_model=RemovedOut,
    operation_id="delete_agent_schedule",
    summary="Remove a schedule",
    responses=problems(404),
)
async def remove(request: Request, schedule_id: ScheduleId, caller: Manager) -> Response:
    await edge_of(request).view(caller).remove_schedule(schedule_id, author=caller.author)
    return answer({"success": True, "message": "Schedule deleted successfully"})


@router.get(
    "/schedules/{schedule_id}/executions",
    response_model=list[ExecutionOut],
    operation_id="list_agent_executions",
    summary="Its executions, newest first",
    responses=problems(404),
)
async def executions(request: Request, schedule_id: ScheduleId, query: Annotated[HistoryQuery, Query()], caller: Reader) -> Response:
    view = edge_of(request).view(caller)
    schedule = await view.find_schedule(schedule_id)
    # What is planned ahead is no execution yet: those begin at their fire time.
    now = await view.now() + 1, UUID(int=0)
    page = await view.job_page(JobQuery(schedule=schedule.draft.name), query.limit, now)
    return answer([words.execution(job, str(schedule.id)) for job in page.jobs if job.schedule_id == schedule.id])


@router.get(
    "/health",
    response_model=AgentHealthOut,
    operation_id="agent_health",
    summary="Database and lock backend answer",
    responses=problems(),
)
async def health(request: Request, caller: Reader) -> Response:
    store = edge_of(request).app.store
    try:
        async with asyncio.timeout(PATIENCE):
            now = await store.time()
            await store.leases()
    except (DuetimeError, TimeoutError):
        raise Refused(503, "not_ready", "the database does not answer: ask again in a moment", None, {"Retry-After": RETRY_AFTER}) from None
    services = dict.fromkeys(("database", "locks", "redis"), "connected")
    return answer({"status": "healthy", "timestamp": shown.iso(now), "services": services})


def default_retry(settings: Settings) -> Retry:
    """For schedules that say nothing: what the settings say, else what that service did by default."""
    attempts = settings.retry_attempts if settings.given("retry_attempts") else 3
    delay = settings.retry_delay if settings.given("retry_delay") else "1s"
    return Retry(attempts, delay, 2.0, "30s")


async def _create(edge: Edge, caller: Caller, view: Operations, body: AgentScheduleIn) -> Schedule:
    """Names need not be unique there: a second schedule of a name gets another one here, and keeps its own as a label."""
    made = view.ids.new(await view.moment())
    with words.in_their_words():
        check_name(body.name, "name")
        stored = await _put(edge, caller, view, body, body.name, made)
        if stored is None:
            stored = await _put(edge, caller, view, body, f"{body.name[: LONGEST_NAME - 9]} {made.hex[-8:]}", made)
    if stored is None:
        raise ScheduleExists(f"there are other schedules {body.name!r}: choose another name")
    if not body.enabled:
        await view.pause(stored.draft.name, author=caller.author)
        stored = await view.find_schedule(stored.draft.name)
    return stored


async def _put(edge: Edge, caller: Caller, view: Operations, body: AgentScheduleIn, name: str, made: UUID) -> Schedule | None:
    """Under this name; None when it is another's. A request that comes again finds what it made."""
    draft = await drafted(edge, caller, words.new_schedule(body, name, default_retry(edge.settings)))
    try:
        return await view.put_schedule(replace(draft, id=made), 0, author=caller.author)
    except VersionConflict:
        known = await view.find_schedule(name)
        return known if known.id == made else None


async def _update(edge: Edge, caller: Caller, reference: str, body: AgentSchedulePatchIn) -> Schedule:
    view = edge.view(caller)
    with words.in_their_words():
        if "name" in body.model_fields_set:
            check_name(body.name, "name")
        for _ in range(TRIES):
            known = await view.find_schedule(reference)
            patch = words.patch(body, known)
            if not patch.model_fields_set:
                return known
            try:
                return await edited(edge, caller, str(known.id), patch, known.version)
            except VersionConflict:
                continue
    raise VersionConflict(f"schedule {reference!r} is changed by others at this moment: repeat the request")
