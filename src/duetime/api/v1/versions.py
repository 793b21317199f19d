"""What a schedule was: every version with who made it and what it changed; and the way back."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Query
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Manager, Reader
from duetime.api.edge import edge_of
from duetime.api.models.plans import RestoreIn, VersionPageOut
from duetime.api.models.schedules import ScheduleOut
from duetime.api.routing import IF_MATCH, StrictRoute, answer, problems, with_body
from duetime.api.scheduling import expected_version
from duetime.api.shown import iso
from duetime.api.v1.schedules import ETAG, PageQuery, Reference, shown_schedule
from duetime.app.versions import VersionView
from duetime.model.instant import to_micros

LISTING = "versions"
router = APIRouter(prefix="/schedules", tags=["schedules"], route_class=StrictRoute)


@router.get(
    "/{schedule_id}/versions",
    response_model=VersionPageOut,
    operation_id="versions_schedule",
    summary="Its versions, newest first; by its name also those of one that was removed",
    responses=problems(404),
)
async def versions(request: Request, schedule_id: Reference, query: Annotated[PageQuery, Query()], caller: Reader) -> Response:
    edge = edge_of(request)
    bound = {"schedule": schedule_id}
    before = None if query.cursor is None else int(edge.cursors.read(caller.tenant, LISTING, bound, query.cursor)[0])
    found = await edge.view(caller).schedule_versions(schedule_id, limit=query.limit + 1, before=before)
    page = found[: query.limit]
    following = edge.cursors.write(caller.tenant, LISTING, bound, [page[-1].version]) if len(found) > query.limit else None
    return answer({"items": [_version(one) for one in page], "next_cursor": following})


@router.post(
    "/{schedule_id}/restore",
    response_model=ScheduleOut,
    operation_id="restore_schedule",
    summary="Make it what it was at a version",
    responses={200: {"headers": ETAG}, **with_body(404, 409, 412)},
    openapi_extra={"parameters": [IF_MATCH]},
)
async def restore(request: Request, schedule_id: Reference, body: Annotated[RestoreIn, Body()], caller: Manager) -> Response:
    expected = expected_version(request.headers.get("if-match"))
    view = edge_of(request).view(caller)
    restored = await view.restore_schedule(schedule_id, body.version, expect_version=expected, author=caller.author)
    return await shown_schedule(view, restored)


def _version(one: VersionView) -> dict[str, Any]:
    return {
        "version": one.version,
        "at": iso(to_micros(one.at)),
        "author": one.author,
        "change": one.change,
        "paused": one.paused,
        "schedule_id": str(one.schedule_id),
        "definition": one.definition,
        "diff": [change._asdict() for change in one.diff],
    }
