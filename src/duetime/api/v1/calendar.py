"""The calendar: counts of future fires, and the fires themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from duetime.api.auth import Reader
from duetime.api.models.targets import Instant
from duetime.api.paging import ClosedQuery, PageQuery, ZoneName
from duetime.api.requests import read_optional_instant
from duetime.api.routing import StrictRoute, answer, problems
from duetime.engine.submit.validate import check_id
from duetime.model.instant import to_datetime, to_micros
from duetime.model.views import CalendarBucket, CalendarView, ComingFire, Page
from duetime.model.views.fields import copied

BucketName = Literal["1m", "5m", "10m", "15m", "30m", "1h", "2h", "3h", "4h", "6h", "8h", "12h", "1d"]

router = APIRouter(prefix="/calendar", tags=["calendar"], route_class=StrictRoute)


class RangeQuery(ClosedQuery):
    start: Annotated[Instant | None, Field(alias="from", description="Included. Default: now.")] = None
    end: Annotated[
        Instant | None,
        Field(
            alias="to", description="Excluded, at most 35 days after `from`. Default: one day after `from`."
        ),
    ] = None

    def instants(self) -> tuple[datetime | None, datetime | None]:
        return read_optional_instant(self.start, "from"), read_optional_instant(self.end, "to")


class CalendarQuery(RangeQuery):
    bucket: BucketName = "1h"
    tz: Annotated[ZoneName, Field(description="Buckets align with its days.")] = "UTC"


class FiresQuery(RangeQuery, PageQuery):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarRange(CalendarView):
    """The document names the range as JSON does: a field of Python cannot be called `from`."""

    start: datetime = field(metadata={"alias": "from"})
    end: datetime = field(metadata={"alias": "to"})


@router.get(
    "",
    response_model=CalendarRange,
    operation_id="read_calendar",
    summary="Counts of future fires",
    responses=problems(),
)
async def calendar(query: Annotated[CalendarQuery, Query()], context: Reader) -> Response:
    found = await context.view.calendar(*query.instants(), bucket=query.bucket, tz=query.tz)
    buckets = [CalendarBucket(at=at, count=count) for at, count in found.buckets]
    counts = {"bucket": query.bucket, "buckets": buckets, "complete": found.complete, "note": found.note}
    return answer({"from": found.start, "to": found.end, **counts})


@router.get(
    "/fires",
    response_model=Page[ComingFire],
    operation_id="coming_fires",
    summary="Future fires",
    responses=problems(),
)
async def fires(query: Annotated[FiresQuery, Query()], context: Reader) -> Response:
    listing = await context.listing("calendar", query)
    place = listing.position
    after = None if place is None else (to_datetime(place[0]), check_id(place[1]))
    page = await context.view.calendar.fires(*query.instants(), limit=query.limit, after=after)
    cursor = listing.cursor(None if page.next is None else [to_micros(page.next[0]), page.next[1]])
    return answer(Page([copied(ComingFire, fire) for fire in page.fires], cursor))
