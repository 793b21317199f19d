"""What happens, as it happens: changes of jobs, schedules, nodes and queues."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Asked, Reader
from duetime.api.edge import edge_of
from duetime.api.problems import Refused
from duetime.api.routing import StrictRoute, problems
from duetime.api.streams import MEDIA_TYPE, EventStream
from duetime.app.stats import check_types
from duetime.observers.entries import KINDS

HIGHEST_ID = 2**63 - 1
EXAMPLE = (
    'id: 42\nevent: job\ndata: {"action":"succeeded","id":"01935c2e-7b3a-7000-8000-000000000000","name":"invoice.send",'
    '"state":"succeeded","queue":"billing","schedule":"nightly","at":"2030-01-01T09:00:00Z"}\n\n'
)
DESCRIPTION = (
    "`event` is job, schedule, node or queue; `many` with a `count` when there were too many to tell one by one; `reset` when what the "
    "listener knows may be out of date: read it again. A comment comes every 15 seconds while nothing happens."
)
router = APIRouter(tags=["events"], route_class=StrictRoute)


class EventsQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")
    types: Annotated[
        str,
        Field(
            min_length=1,
            max_length=100,
            description="Which, separated by commas.",
            examples=["job,schedule"],
            json_schema_extra={"format": "duetime-event-types"},
        ),
    ] = ",".join(KINDS)


LastEventId = Annotated[int | None, Header(alias="Last-Event-ID", ge=0, le=HIGHEST_ID, description="Go on after this one.")]


@router.get(
    "/events",
    summary="A stream of what happens",
    response_class=Response,
    responses={
        **problems(),
        200: {"description": DESCRIPTION, "content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": EXAMPLE}}},
    },
)
async def events(request: Request, caller: Reader, query: Annotated[EventsQuery, Query()], last_event_id: LastEventId = None) -> Response:
    edge = edge_of(request)
    audience, who = edge.app.audience, (caller.tenant, caller.key_prefix)
    types = check_types(query.types.split(","))
    edge.streams.enter(who)
    try:
        seat, position = await audience.attend(caller.tenant, types)
    except BaseException:
        edge.streams.leave(who)
        raise
    asked = Asked(request.method, dict(request.headers), None if request.client is None else request.client.host)

    async def still_allowed() -> bool:
        try:
            return (await edge.gate.admit(asked)).tenant == caller.tenant
        except Refused:
            return False

    def leave() -> None:
        seat.leave()
        edge.streams.leave(who)

    stream = EventStream(audience.notices(seat, position, last_event_id), seat, still_allowed)
    stream.leave = leave
    return stream
