"""Schedules: create, list, read, edit, remove, pause, resume, trigger; their jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path, Query
from pydantic import ConfigDict, Field
from starlette.responses import Response

from duetime.api.auth import Manager, Reader
from duetime.api.models.jobs import ScheduleFilterIn
from duetime.api.models.schedules import NewScheduleIn, PauseIn, SchedulePatchIn
from duetime.api.paging import ClosedQuery, PageQuery, ZoneName
from duetime.api.requests import edit_schedule, expected_version, new_schedule
from duetime.api.routing import IF_MATCH, ONCE, PREFIX, StrictRoute, answer, links, problems, with_body
from duetime.api.v1.bulk import schedule_filter
from duetime.api.v1.jobs import LOCATION, created_job, job_page
from duetime.app.listing import JobQuery
from duetime.app.services import Services
from duetime.model.schedule import Schedule
from duetime.model.views import JobSummary, JobView, Page, ScheduleView, WhyView

ETAG = {"ETag": {"description": "The version, for If-Match.", "schema": {"type": "string"}}}
Reference = Annotated[
    str,
    Path(
        alias="schedule_id",
        min_length=1,
        max_length=128,
        description="The id or the name.",
        examples=["nightly"],
    ),
]
NO_NOTE = PauseIn()
OPERATIONS = (
    "read",
    "edit",
    "remove",
    "pause",
    "resume",
    "trigger",
    "preview",
    "jobs",
    "versions",
    "restore",
    "plan",
)

router = APIRouter(prefix="/schedules", tags=["schedules"], route_class=StrictRoute)


class ScheduleWhyQuery(ClosedQuery):
    tz: Annotated[
        ZoneName | None,
        Field(description="The time zone of times in the sentence. Default: that of the schedule."),
    ] = None


class ScheduleListQuery(PageQuery, ScheduleFilterIn):
    model_config = ConfigDict(strict=False)  # values of a query are text


@router.post(
    "",
    status_code=201,
    response_model=ScheduleView,
    operation_id="create_schedule",
    summary="Create a schedule",
    responses={
        201: {"headers": {**LOCATION, **ETAG}, "links": links("schedule", "schedule_id", "id", *OPERATIONS)},
        200: {"model": ScheduleView, "description": "An identical schedule exists."},
        **with_body(409),
    },
    openapi_extra=ONCE,
)
async def create(body: Annotated[NewScheduleIn, Body()], context: Manager) -> Response:
    author = context.caller.author

    async def work(view: Services) -> Response:
        draft = await new_schedule(context, body, view)
        stored = await view.schedules.put(draft, author=author, paused=body.paused)
        if body.paused and not stored.paused:  # it existed, and was active
            await view.pause(stored.draft.name, author=author)
            stored = await view.schedules.find(stored.draft.name)
        status = 201 if stored.id == draft.id else 200
        return await schedule_answer(view, stored, status, Location=f"{PREFIX}/schedules/{stored.id}")

    return await context.once(work, body)


@router.get(
    "",
    response_model=Page[ScheduleView],
    operation_id="list_schedules",
    summary="List schedules by name",
    responses=problems(),
)
async def list_schedules(query: Annotated[ScheduleListQuery, Query()], context: Reader) -> Response:
    listing = await context.listing("schedules", query)
    found = await context.view.schedules.page(
        schedule_filter(context, query), listing.limit + 1, listing.after
    )
    page, cursor = listing.split(found, lambda schedule: schedule.draft.name)
    now = await context.view.now()
    return answer(Page([ScheduleView.of(schedule, now) for schedule in page], cursor))


@router.get(
    "/{schedule_id}",
    response_model=ScheduleView,
    operation_id="read_schedule",
    summary="Read a schedule",
    responses={200: {"headers": ETAG}, **problems(404)},
)
async def read(schedule_id: Reference, context: Reader) -> Response:
    return await schedule_answer(context.view, await context.view.schedules.find(schedule_id))


@router.patch(
    "/{schedule_id}",
    response_model=ScheduleView,
    operation_id="edit_schedule",
    summary="Edit a schedule; an edit without an effect makes no version",
    responses={200: {"headers": ETAG}, **with_body(404, 409, 412)},
    openapi_extra=IF_MATCH,
)
async def edit(
    schedule_id: Reference, body: Annotated[SchedulePatchIn, Body()], context: Manager
) -> Response:
    expected = expected_version(context)
    return await schedule_answer(context.view, await edit_schedule(context, schedule_id, body, expected))


@router.delete(
    "/{schedule_id}",
    status_code=204,
    operation_id="remove_schedule",
    summary="Remove a schedule",
    responses=problems(404, 412),
    openapi_extra=IF_MATCH,
)
async def remove(schedule_id: Reference, context: Manager) -> Response:
    expected = expected_version(context)
    await context.view.schedules.remove_version(
        schedule_id, expect_version=expected, author=context.caller.author
    )
    return Response(status_code=204)


@router.post(
    "/{schedule_id}/pause",
    response_model=ScheduleView,
    operation_id="pause_schedule",
    summary="Pause a schedule",
    responses=with_body(404),
)
async def pause(
    schedule_id: Reference, context: Manager, body: Annotated[PauseIn, Body()] = NO_NOTE
) -> Response:
    name = (await context.view.schedules.find(schedule_id)).draft.name
    await context.view.pause(name, body.note or None, author=context.caller.author)
    return await schedule_answer(context.view, await context.view.schedules.find(name))


@router.post(
    "/{schedule_id}/resume",
    response_model=ScheduleView,
    operation_id="resume_schedule",
    summary="Resume a schedule",
    responses=problems(404),
)
async def resume(schedule_id: Reference, context: Manager) -> Response:
    name = (await context.view.schedules.find(schedule_id)).draft.name
    await context.view.resume(name, author=context.caller.author)
    return await schedule_answer(context.view, await context.view.schedules.find(name))


@router.post(
    "/{schedule_id}/trigger",
    status_code=201,
    response_model=JobView,
    operation_id="trigger_schedule",
    summary="Submit one job of a schedule now",
    responses={201: {"headers": LOCATION}, **problems(404, 409)},
    openapi_extra=ONCE,
)
async def trigger(schedule_id: Reference, context: Manager) -> Response:
    async def work(view: Services) -> Response:
        handle = await view.trigger((await view.schedules.find(schedule_id)).draft.name)
        return await created_job(context, handle.id)

    return await context.once(work)


@router.get(
    "/{schedule_id}/jobs",
    response_model=Page[JobSummary],
    operation_id="jobs_schedule",
    summary="The jobs of a schedule, newest first",
    responses=problems(404),
)
async def jobs(schedule_id: Reference, query: Annotated[PageQuery, Query()], context: Reader) -> Response:
    schedule = await context.view.schedules.find(schedule_id)
    listing = await context.listing("schedule jobs", query, {"schedule": str(schedule.id)})
    return await job_page(context, listing, JobQuery(schedule=schedule.draft.name))


@router.get(
    "/{schedule_id}/why",
    response_model=WhyView,
    operation_id="why_schedule",
    summary="When a schedule fires next, or why it does not",
    responses=problems(404),
)
async def why_schedule(
    schedule_id: Reference, query: Annotated[ScheduleWhyQuery, Query()], context: Reader
) -> Response:
    return answer(WhyView.of(await context.view.why.schedule(schedule_id, query.tz)))


async def schedule_answer(view: Services, schedule: Schedule, status: int = 200, **headers: str) -> Response:
    shown = await view.schedules.view(schedule)
    return answer(shown, status, {"ETag": f'"{schedule.version}"', **headers})
