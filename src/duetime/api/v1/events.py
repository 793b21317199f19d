"""The stream of events: changes of jobs, schedules, nodes and queues."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query
from pydantic import Field
from starlette.responses import Response

from duetime.api.auth import Reader
from duetime.api.caller import AuthRequest
from duetime.api.paging import ClosedQuery
from duetime.api.problems import ApiProblem
from duetime.api.routing import StrictRoute, problems
from duetime.api.streams import MEDIA_TYPE, EventStream
from duetime.app.event_feed import check_types
from duetime.observers.event_log import KINDS

MAX_ID = 2**63 - 1
EXAMPLE = (
    'id: 42\nevent: job\ndata: {"action":"succeeded","id":"01935c2e-7b3a-7000-8000-000000000000",'
    '"name":"invoice.send","state":"succeeded","queue":"billing","schedule":"nightly","at":"2030-01-01T09:00:00Z"}\n\n'
)
DESCRIPTION = (
    "`event` is job, schedule, node or queue; `many` with a `count` if there were too many to "
    "send one by one; `reset` if "
    "events were lost: read the state again. While nothing happens, the service sends a comment "
    "every 15 seconds."
)
router = APIRouter(tags=["events"], route_class=StrictRoute)
LastEventId = Annotated[
    int | None, Header(alias="Last-Event-ID", ge=0, le=MAX_ID, description="Continue after this event.")
]


class EventsQuery(ClosedQuery):
    types: Annotated[
        str,
        Field(
            min_length=1,
            max_length=100,
            description="Separated by commas.",
            examples=["job,schedule"],
            json_schema_extra={"format": "duetime-event-types"},
        ),
    ] = ",".join(KINDS)


@router.get(
    "/events",
    operation_id="stream_events",
    summary="Stream events",
    response_class=Response,
    responses={
        **problems(),
        200: {
            "description": DESCRIPTION,
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": EXAMPLE}},
        },
    },
)
async def events(
    context: Reader, query: Annotated[EventsQuery, Query()], last_event_id: LastEventId = None
) -> Response:
    state, caller = context.state, context.caller
    audience, streams = state.app.event_feed, state.streams
    types = check_types(query.types.split(","))
    if not context.is_operator:
        types -= {"queue"}  # all tenants share queues: a name may belong to another one
    streams.enter(caller.identity)
    try:
        seat, position = await audience.subscribe(caller.tenant, types)
    except BaseException:
        streams.leave(caller.identity)
        raise
    # A copy: the request is gone while the stream lasts.
    request = AuthRequest(context.auth.method, dict(context.auth.headers), context.auth.peer)

    async def still_allowed() -> bool:
        try:
            return (await state.authenticator.authenticate(request)).tenant == caller.tenant
        except ApiProblem:
            return False

    def on_end() -> None:
        seat.leave()
        streams.leave(caller.identity)

    return EventStream(audience.events(seat, position, last_event_id), seat, still_allowed, on_end)
