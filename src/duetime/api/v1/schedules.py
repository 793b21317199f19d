"""Schedules: create, list, read, edit by version, remove; pause, resume, trigger; their jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api import shown
from duetime.api.auth import Manager, Reader
from duetime.api.edge import edge_of
from duetime.api.models.fields import Name
from duetime.api.models.jobs import JobOut, JobPageOut
from duetime.api.models.schedules import NewScheduleIn, PauseIn, ScheduleOut, SchedulePageOut, SchedulePatchIn
from duetime.api.routing import IDEMPOTENCY_KEY, IF_MATCH, StrictRoute, answer, problems, with_body
from duetime.api.scheduling import drafted, edited, expected_version
from duetime.api.v1.jobs import LOCATION, MOST_A_PAGE, show
from duetime.api.v1.submitting import fingerprint
from duetime.app.listing import JobQuery
from duetime.app.operations import Operations
from duetime.engine.checks import check_id, check_name
from duetime.model.schedule import Schedule, ScheduleFilter
from duetime.model.target import HTTP

LISTING = "schedules"
ETAG = {"ETag": {"description": "The version, for If-Match.", "schema": {"type": "string"}}}
Reference = Annotated[str, Path(alias="schedule_id", min_length=1, max_length=128, description="Its id or its name.", examples=["nightly"])]
Cursor = Annotated[str | None, Field(min_length=1, max_length=1_024, json_schema_extra={"format": "duetime-cursor"})]
Target = Annotated[Name | None, Field(description=f"A task's name, or {HTTP}.", examples=["report.build"])]

NO_NOTE = PauseIn()
OPERATIONS = ("read", "edit", "remove", "pause", "resume", "trigger", "preview", "jobs", "versions", "restore", "plan")
LINKS = {name: {"operationId": f"{name}_schedule", "parameters": {"schedule_id": "$response.body#/id"}} for name in OPERATIONS}

router = APIRouter(prefix="/schedules", tags=["schedules"], route_class=StrictRoute)


class PageQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    limit: Annotated[int, Field(ge=1, le=MOST_A_PAGE)] = 100
    cursor: Cursor = None


class ScheduleListQuery(PageQuery):
    text: Annotated[str | None, Field(min_length=1, max_length=128, description="A part of the name, upper and lower case alike.")] = None
    paused: bool | None = None
    owner: Name | None = None
    label: Annotated[str | None, Field(pattern="^[^:]+:", max_length=300, description="key:value", examples=["team:billing"])] = None
    target: Target = None
    queue: Name | None = None


@router.post(
    "",
    status_code=201,
    response_model=ScheduleOut,
    summary="Create a schedule",
    responses={
        201: {"headers": {**LOCATION, **ETAG}, "links": LINKS},
        200: {"model": ScheduleOut, "description": "It is there, just so."},
        **with_body(409),
    },
    openapi_extra={"parameters": [IDEMPOTENCY_KEY]},
)
async def create(request: Request, body: Annotated[NewScheduleIn, Body()], caller: Manager) -> Response:
    edge = edge_of(request)
    view = edge.view(caller)

    async def work(view: Operations) -> Response:
        draft = await drafted(edge, caller, body, view)
        stored = await view.put_schedule(draft, author=caller.author)
        if body.paused and not stored.paused:
            await view.pause(stored.draft.name, author=caller.author)
            stored = await view.find_schedule(stored.draft.name)
        return await shown_schedule(view, stored, 201 if stored.id == draft.id else 200, Location=f"/api/v1/schedules/{stored.id}")

    key = request.headers.get("idempotency-key")
    return await edge.memory.once(view, key, fingerprint(request.method, request.url.path, body), work)


@router.get("", response_model=SchedulePageOut, summary="List schedules by name", responses=problems())
async def list_schedules(request: Request, query: Annotated[ScheduleListQuery, Query()], caller: Reader) -> Response:
    edge = edge_of(request)
    filters = query.model_dump(mode="json", exclude={"limit", "cursor"})
    after = None if query.cursor is None else str(edge.cursors.read(caller.tenant, LISTING, filters, query.cursor)[0])
    view = edge.view(caller)
    found = await view.schedule_page(_filter(caller.tenant, query), query.limit + 1, after)
    page = found[: query.limit]
    following = edge.cursors.write(caller.tenant, LISTING, filters, [page[-1].draft.name]) if len(found) > query.limit else None
    now = await view.now()
    return answer({"items": [shown.schedule(one, now) for one in page], "next_cursor": following})


@router.get(
    "/{schedule_id}",
    response_model=ScheduleOut,
    operation_id="read_schedule",
    summary="Read a schedule",
    responses={200: {"headers": ETAG}, **problems(404)},
)
async def read(request: Request, schedule_id: Reference, caller: Reader) -> Response:
    view = edge_of(request).view(caller)
    return await shown_schedule(view, await view.find_schedule(schedule_id))


@router.patch(
    "/{schedule_id}",
    response_model=ScheduleOut,
    operation_id="edit_schedule",
    summary="Edit a schedule; what is as wanted already changes nothing",
    responses={200: {"headers": ETAG}, **with_body(404, 409, 412)},
    openapi_extra={"parameters": [IF_MATCH]},
)
async def edit(request: Request, schedule_id: Reference, body: Annotated[SchedulePatchIn, Body()], caller: Manager) -> Response:
    expected = expected_version(request.headers.get("if-match"))
    edge = edge_of(request)
    return await shown_schedule(edge.view(caller), await edited(edge, caller, schedule_id, body, expected))


@router.delete(
    "/{schedule_id}",
    status_code=204,
    operation_id="remove_schedule",
    summary="Remove a schedule",
    responses=problems(404, 412),
    openapi_extra={"parameters": [IF_MATCH]},
)
async def remove(request: Request, schedule_id: Reference, caller: Manager) -> Response:
    expected = expected_version(request.headers.get("if-match"))
    await edge_of(request).view(caller).remove_schedule(schedule_id, expect_version=expected, author=caller.author)
    return Response(status_code=204)


@router.post(
    "/{schedule_id}/pause",
    response_model=ScheduleOut,
    operation_id="pause_schedule",
    summary="No more fires until resumed",
    responses=with_body(404),
)
async def pause(request: Request, schedule_id: Reference, caller: Manager, body: Annotated[PauseIn, Body()] = NO_NOTE) -> Response:
    view = edge_of(request).view(caller)
    name = (await view.find_schedule(schedule_id)).draft.name
    await view.pause(name, body.note or None, author=caller.author)
    return await shown_schedule(view, await view.find_schedule(name))


@router.post(
    "/{schedule_id}/resume",
    response_model=ScheduleOut,
    operation_id="resume_schedule",
    summary="Fire again from now on",
    responses=problems(404),
)
async def resume(request: Request, schedule_id: Reference, caller: Manager) -> Response:
    view = edge_of(request).view(caller)
    name = (await view.find_schedule(schedule_id)).draft.name
    await view.resume(name, author=caller.author)
    return await shown_schedule(view, await view.find_schedule(name))


@router.post(
    "/{schedule_id}/trigger",
    status_code=201,
    response_model=JobOut,
    operation_id="trigger_schedule",
    summary="One job of it now",
    responses={201: {"headers": LOCATION}, **problems(404, 409)},
    openapi_extra={"parameters": [IDEMPOTENCY_KEY]},
)
async def trigger(request: Request, schedule_id: Reference, caller: Manager) -> Response:
    edge = edge_of(request)
    view = edge.view(caller)

    async def work(view: Operations) -> Response:
        handle = await view.trigger((await view.find_schedule(schedule_id)).draft.name)
        made = await show(edge, caller, handle.id, 201)
        made.headers["Location"] = f"/api/v1/jobs/{handle.id}"
        return made

    key = request.headers.get("idempotency-key")
    return await edge.memory.once(view, key, fingerprint(request.method, request.url.path, None), work)


@router.get(
    "/{schedule_id}/jobs",
    response_model=JobPageOut,
    operation_id="jobs_schedule",
    summary="Its jobs, newest first",
    responses=problems(404),
)
async def jobs(request: Request, schedule_id: Reference, query: Annotated[PageQuery, Query()], caller: Reader) -> Response:
    edge = edge_of(request)
    view = edge.view(caller)
    schedule = await view.find_schedule(schedule_id)
    bound = {"schedule": str(schedule.id)}
    before = None
    if query.cursor is not None:
        fire_time, job_id = edge.cursors.read(caller.tenant, LISTING, bound, query.cursor)
        before = fire_time, check_id(job_id)
    page = await view.job_page(JobQuery(schedule=schedule.draft.name), query.limit, before)
    following = None if page.next is None else edge.cursors.write(caller.tenant, LISTING, bound, [page.next[0], str(page.next[1])])
    return answer({"items": [shown.job_summary(job) for job in page.jobs], "next_cursor": following})


async def shown_schedule(view: Operations, schedule: Schedule, status: int = 200, **headers: str) -> Response:
    return answer(shown.schedule(schedule, await view.now()), status, {"ETag": f'"{schedule.version}"', **headers})


def _filter(tenant: str, query: ScheduleListQuery) -> ScheduleFilter:
    key, _, value = (query.label or "").partition(":")
    return ScheduleFilter(
        tenant,
        query.text,
        query.paused,
        None if query.owner is None else check_name(query.owner, "owner"),
        None if query.label is None else (key, value),
        query.target if query.target in (None, HTTP) else check_name(query.target, "target"),
        None if query.queue is None else check_name(query.queue, "queue"),
    )
