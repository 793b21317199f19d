"""The next fires, of a schedule or of one somebody only thinks of."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Reader
from duetime.api.edge import edge_of
from duetime.api.models.fields import Instant
from duetime.api.models.plans import PreviewIn, PreviewOut, WhenPreviewOut
from duetime.api.routing import StrictRoute, answer, problems, with_body
from duetime.api.shown import iso
from duetime.api.v1.schedules import Reference
from duetime.api.wanted import instant
from duetime.app.planning import MOST_PREVIEWED
from duetime.model.instant import to_micros
from duetime.model.preview import Preview, PreviewedFire
from duetime.model.when import from_json

router = APIRouter(tags=["schedules"], route_class=StrictRoute)


class PreviewQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    count: Annotated[int, Field(ge=1, le=MOST_PREVIEWED)] = 10
    after: Annotated[Instant | None, Field(description="From this instant on; without it, from now.")] = None


@router.post(
    "/preview",
    response_model=WhenPreviewOut,
    operation_id="preview_when",
    summary="When something would fire, in words and instants",
    responses=with_body(),
)
async def preview_when(request: Request, body: Annotated[PreviewIn, Body()], caller: Reader) -> Response:
    given = body.model_fields_set
    moments: dict[str, Any] = {name: instant(getattr(body, name), name) for name in ("after", "start_at", "end_at") if name in given}
    found = await edge_of(request).view(caller).preview_when(from_json(body.when), count=body.count, **moments)
    return answer({"words": found.words, "fires": _fires(found), "warnings": found.warnings})


@router.get(
    "/schedules/{schedule_id}/preview",
    response_model=PreviewOut,
    operation_id="preview_schedule",
    summary="Its next fires",
    responses=problems(404),
)
async def preview_schedule(request: Request, schedule_id: Reference, query: Annotated[PreviewQuery, Query()], caller: Reader) -> Response:
    after = None if query.after is None else instant(query.after, "after")
    found = await edge_of(request).view(caller).preview_schedule(schedule_id, count=query.count, after=after)
    fires = _fires(found)
    return answer({"words": found.words, "fires": [one["at"] for one in fires], "details": fires, "warnings": found.warnings})


def _fires(preview: Preview) -> list[dict[str, Any]]:
    return [_fire(one) for one in preview.fires]


def _fire(one: PreviewedFire) -> dict[str, Any]:
    return {"at": iso(to_micros(one.at)), "local": one.local.isoformat(), "note": one.note}
