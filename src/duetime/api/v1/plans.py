"""Previews and plans of schedules, their versions, and backfills."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from pydantic import Field
from starlette.responses import Response

from duetime.api.auth import Manager, Reader
from duetime.api.models.schedules import BackfillIn, NewScheduleIn, PreviewIn, RestoreIn, SchedulePatchIn
from duetime.api.models.targets import Instant, PositiveDuration
from duetime.api.paging import ClosedQuery, PageQuery
from duetime.api.requests import edit_of, expected_version, new_schedule, read_instant, read_optional_instant
from duetime.api.routing import IF_MATCH, StrictRoute, answer, problems, with_body
from duetime.api.v1.schedules import ETAG, Reference, schedule_answer
from duetime.app.previews import MAX_PREVIEWED
from duetime.app.search import search
from duetime.model.edit_plan import HORIZON, ScheduleEdit
from duetime.model.views import (
    Backfilled,
    Page,
    PlanView,
    PreviewView,
    SchedulePreview,
    ScheduleView,
    VersionView,
)
from duetime.model.when import from_json

router = APIRouter(tags=["schedules"], route_class=StrictRoute)


class PlanQuery(ClosedQuery):
    horizon: Annotated[PositiveDuration, Field(description="How far to look ahead.")] = HORIZON
    count: Annotated[int, Field(ge=1, le=MAX_PREVIEWED, description="Listed fires of each kind.")] = 20


class PreviewQuery(ClosedQuery):
    count: Annotated[int, Field(ge=1, le=MAX_PREVIEWED)] = 10
    after: Annotated[Instant | None, Field(description="Default: now.")] = None


@router.post(
    "/schedules/plan",
    response_model=PlanView,
    operation_id="plan_new_schedule",
    summary="The effect of creating a schedule",
    responses=with_body(409),
)
async def plan_new(
    body: Annotated[NewScheduleIn, Body()], query: Annotated[PlanQuery, Query()], context: Reader
) -> Response:
    draft = await new_schedule(context, body)
    known = await context.view.schedules.declared(draft)
    edit = ScheduleEdit(draft if known is None else known.draft, True if body.paused else None)
    return answer(PlanView.of(await context.view.previews.plan(known, edit, query.horizon), query.count))


@router.post(
    "/schedules/{schedule_id}/plan",
    response_model=PlanView,
    operation_id="plan_schedule",
    summary="The effect of an edit; changes nothing",
    responses=with_body(404, 409),
)
async def plan(
    schedule_id: Reference,
    body: Annotated[SchedulePatchIn, Body()],
    query: Annotated[PlanQuery, Query()],
    context: Reader,
) -> Response:
    known = await context.view.schedules.find(schedule_id)
    edit = await edit_of(context, known, body)
    return answer(PlanView.of(await context.view.previews.plan(known, edit, query.horizon), query.count))


@router.post(
    "/schedules/{schedule_id}/backfill",
    response_model=Backfilled,
    operation_id="backfill_schedule",
    summary="Submit jobs for past fires that have none",
    responses=with_body(404, 409),
)
async def backfill(schedule_id: Reference, body: Annotated[BackfillIn, Body()], context: Manager) -> Response:
    given = body.model_fields_set
    start, end = read_instant(body.start, "from"), read_instant(body.end, "to") if "end" in given else None
    rate = body.rate if "rate" in given else None
    return answer(
        Backfilled.of(await context.view.backfill(schedule_id, start, end, rate=rate, limit=body.limit))
    )


@router.post(
    "/preview",
    response_model=PreviewView,
    operation_id="preview_when",
    summary="The next fires of an expression",
    responses=with_body(),
)
async def preview_when(body: Annotated[PreviewIn, Body()], context: Reader) -> Response:
    given = [name for name in ("after", "start_at", "end_at") if name in body.model_fields_set]
    instants: dict[str, Any] = {name: read_instant(getattr(body, name), name) for name in given}
    when = await search(from_json, body.when)
    found = await context.view.previews.when(when, count=body.count, **instants)
    return answer(PreviewView.of(found))


@router.get(
    "/schedules/{schedule_id}/preview",
    response_model=SchedulePreview,
    operation_id="preview_schedule",
    summary="The next fires of a schedule",
    responses=problems(404),
)
async def preview_schedule(
    schedule_id: Reference, query: Annotated[PreviewQuery, Query()], context: Reader
) -> Response:
    after = read_optional_instant(query.after, "after")
    found = await context.view.previews.schedule(schedule_id, count=query.count, after=after)
    return answer(SchedulePreview.of(PreviewView.of(found)))


@router.get(
    "/schedules/{schedule_id}/versions",
    response_model=Page[VersionView],
    operation_id="versions_schedule",
    summary="The versions of a schedule, newest first; by name also of a removed schedule",
    responses=problems(404),
)
async def versions(schedule_id: Reference, query: Annotated[PageQuery, Query()], context: Reader) -> Response:
    listing = await context.listing("versions", query, {"schedule": schedule_id})
    found = await context.view.versions(schedule_id, limit=listing.limit + 1, before=listing.after)
    page, cursor = listing.split(found, lambda version: version.version)
    return answer(Page([VersionView.of(version) for version in page], cursor))


@router.post(
    "/schedules/{schedule_id}/restore",
    response_model=ScheduleView,
    operation_id="restore_schedule",
    summary="Restore a version of a schedule",
    responses={200: {"headers": ETAG}, **with_body(404, 409, 412)},
    openapi_extra=IF_MATCH,
)
async def restore(schedule_id: Reference, body: Annotated[RestoreIn, Body()], context: Manager) -> Response:
    expected, author = expected_version(context), context.caller.author
    restored = await context.view.versions.restore(
        schedule_id, body.version, expect_version=expected, author=author
    )
    return await schedule_answer(context.view, restored)
