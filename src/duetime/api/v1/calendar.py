"""The calendar: how many fires come when, and which."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Reader
from duetime.api.edge import edge_of
from duetime.api.models.fields import Instant, OutId, OutInstant, Output
from duetime.api.routing import StrictRoute, answer, problems
from duetime.api.shown import iso
from duetime.api.v1.jobs import MOST_A_PAGE
from duetime.api.wanted import instant
from duetime.engine.checks import check_id
from duetime.model.instant import to_datetime, to_micros

LISTING = "calendar"
BucketName = Literal["1m", "5m", "10m", "15m", "30m", "1h", "2h", "3h", "4h", "6h", "8h", "12h", "1d"]
Zone = Annotated[str, Field(max_length=64, json_schema_extra={"format": "duetime-zone"}, description="Buckets begin with its days.")]

router = APIRouter(prefix="/calendar", tags=["calendar"], route_class=StrictRoute)


class StretchQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    start: Annotated[Instant | None, Field(alias="from", description="Included; without it, now.")] = None
    end: Annotated[Instant | None, Field(alias="to", description="Excluded, at most 35 days after `from`; without it, a day after it.")] = (
        None
    )


class CalendarQuery(StretchQuery):
    bucket: BucketName = "1h"
    tz: Zone = "UTC"


class FiresQuery(StretchQuery):
    limit: Annotated[int, Field(ge=1, le=MOST_A_PAGE)] = 100
    cursor: Annotated[str | None, Field(min_length=1, max_length=1_024, json_schema_extra={"format": "duetime-cursor"})] = None


class BucketOut(Output):
    model_config = ConfigDict(title="Bucket")
    at: OutInstant
    count: int


class CalendarOut(Output):
    model_config = ConfigDict(title="Calendar")
    start: Annotated[OutInstant, Field(alias="from")]
    end: Annotated[OutInstant, Field(alias="to")]
    bucket: str
    buckets: Annotated[list[BucketOut], Field(description="Without gaps; fires before now are not counted.")]
    complete: Annotated[bool, Field(description="False: each count is at least so many.")]
    note: str | None


class FireOut(Output):
    model_config = ConfigDict(title="Fire")
    at: OutInstant
    schedule_id: OutId
    name: str
    target: str


class FiresOut(Output):
    model_config = ConfigDict(title="Fires")
    items: list[FireOut]
    next_cursor: str | None


@router.get("", response_model=CalendarOut, operation_id="calendar", summary="How many fires come when", responses=problems())
async def calendar(request: Request, query: Annotated[CalendarQuery, Query()], caller: Reader) -> Response:
    found = await edge_of(request).view(caller).calendar(*_stretch(query), bucket=query.bucket, tz=query.tz)
    buckets = [{"at": _iso(at), "count": count} for at, count in found.buckets]
    said = {"bucket": query.bucket, "buckets": buckets, "complete": found.complete, "note": found.note}
    return answer({"from": _iso(found.start), "to": _iso(found.end), **said})


@router.get("/fires", response_model=FiresOut, operation_id="coming_fires", summary="The fires to come, one by one", responses=problems())
async def fires(request: Request, query: Annotated[FiresQuery, Query()], caller: Reader) -> Response:
    edge = edge_of(request)
    filters = query.model_dump(mode="json", exclude={"limit", "cursor"})
    after = None
    if query.cursor is not None:
        at, schedule_id = edge.cursors.read(caller.tenant, LISTING, filters, query.cursor)
        after = to_datetime(at), check_id(schedule_id)
    page = await edge.view(caller).coming_fires(*_stretch(query), limit=query.limit, after=after)
    place = None if page.next is None else [to_micros(page.next[0]), str(page.next[1])]
    following = None if place is None else edge.cursors.write(caller.tenant, LISTING, filters, place)
    items = [{"at": _iso(one.at), "schedule_id": str(one.schedule_id), "name": one.name, "target": one.target} for one in page.fires]
    return answer({"items": items, "next_cursor": following})


def _stretch(query: StretchQuery) -> tuple[datetime | None, datetime | None]:
    start = None if query.start is None else instant(query.start, "from")
    return start, None if query.end is None else instant(query.end, "to")


def _iso(moment: datetime) -> str | None:
    return iso(to_micros(moment))
