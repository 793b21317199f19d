"""What an edit of a schedule would change, before anybody makes it; and fires of the past that are made up for."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Manager, Reader
from duetime.api.edge import edge_of
from duetime.api.models.fields import PositiveDuration
from duetime.api.models.plans import BackfillIn, BackfillOut, PlanOut
from duetime.api.models.schedules import NewScheduleIn, SchedulePatchIn
from duetime.api.routing import StrictRoute, answer, with_body
from duetime.api.scheduling import drafted, edit_of
from duetime.api.shown import iso
from duetime.api.v1.schedules import Reference
from duetime.api.wanted import instant
from duetime.app.planning import HORIZON, MOST_PREVIEWED, SchedulePlan
from duetime.model.changes import Edit
from duetime.model.instant import to_micros

router = APIRouter(prefix="/schedules", tags=["schedules"], route_class=StrictRoute)


class PlanQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    horizon: Annotated[PositiveDuration, Field(description="How far to look ahead.")] = HORIZON
    count: Annotated[int, Field(ge=1, le=MOST_PREVIEWED, description="How many fires of each kind to name.")] = 20


@router.post(
    "/plan",
    response_model=PlanOut,
    operation_id="plan_new_schedule",
    summary="What creating this schedule would come to",
    responses=with_body(409),
)
async def plan_new(
    request: Request, body: Annotated[NewScheduleIn, Body()], query: Annotated[PlanQuery, Query()], caller: Reader
) -> Response:
    edge = edge_of(request)
    view, draft = edge.view(caller), await drafted(edge, caller, body)
    known = await view.declared_schedule(draft)
    paused = True if body.paused else None
    return _shown(await view.plan_edit(known, Edit(draft if known is None else known.draft, paused), query.horizon), query.count)


@router.post(
    "/{schedule_id}/plan",
    response_model=PlanOut,
    operation_id="plan_schedule",
    summary="What an edit would change; nothing is changed",
    responses=with_body(404, 409),
)
async def plan(
    request: Request,
    schedule_id: Reference,
    body: Annotated[SchedulePatchIn, Body()],
    query: Annotated[PlanQuery, Query()],
    caller: Reader,
) -> Response:
    edge = edge_of(request)
    view = edge.view(caller)
    known = await view.find_schedule(schedule_id)
    return _shown(await view.plan_edit(known, await edit_of(edge, caller, known, body), query.horizon), query.count)


@router.post(
    "/{schedule_id}/backfill",
    response_model=BackfillOut,
    operation_id="backfill_schedule",
    summary="Jobs for past fires that have none",
    responses=with_body(404, 409),
)
async def backfill(request: Request, schedule_id: Reference, body: Annotated[BackfillIn, Body()], caller: Manager) -> Response:
    given = body.model_fields_set
    start, end = instant(body.start, "from"), instant(body.end, "to") if "end" in given else None
    rate = body.rate if "rate" in given else None
    done = await edge_of(request).view(caller).backfill(schedule_id, start, end, rate=rate, limit=body.limit)
    return answer({"added": len(done.jobs), "existing": done.existing, "next_from": done.next_from and _iso(done.next_from)})


def _shown(plan: SchedulePlan, count: int) -> Response:
    fires = plan.fires
    body: dict[str, Any] = {
        "version": plan.version,
        "diff": [change._asdict() for change in plan.diff],
        "words": plan.words._asdict(),
        "fires": {
            "kept": fires.kept,
            "added": [_iso(moment) for moment in fires.added[:count]],
            "withdrawn": [_iso(moment) for moment in fires.withdrawn[:count]],
            "moved": [{"from": _iso(old), "to": _iso(new)} for old, new in fires.moved[:count]],
        },
        "counts": {"kept": fires.kept, "added": len(fires.added), "withdrawn": len(fires.withdrawn), "moved": len(fires.moved)},
        "jobs_withdrawn": plan.jobs_withdrawn,
        "warnings": plan.warnings,
        "complete": plan.complete,
    }
    return answer(body)


def _iso(moment: datetime) -> str | None:
    return iso(to_micros(moment))
