"""One action on many jobs or schedules, by filter or by ids."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Caller, Manager
from duetime.api.edge import Edge, edge_of
from duetime.api.models.bulk import BulkIn, BulkOut, JobBulkIn, ScheduleBulkIn, ScheduleFilterIn
from duetime.api.routing import IDEMPOTENCY_KEY, StrictRoute, answer, with_body
from duetime.api.v1.jobs import cancelled_by, named, query_of, target_named
from duetime.api.v1.submitting import fingerprint
from duetime.app.bulk import Bulk
from duetime.app.operations import Operations
from duetime.engine.checks import check_id
from duetime.errors import InvalidInput
from duetime.model.schedule import ScheduleFilter

router = APIRouter(route_class=StrictRoute)


@router.post(
    "/jobs/bulk",
    tags=["jobs"],
    response_model=BulkOut,
    operation_id="bulk_jobs",
    summary="Cancel, retry, run or discard many jobs",
    responses=with_body(409),
    openapi_extra={"parameters": [IDEMPOTENCY_KEY]},
)
async def bulk_jobs(request: Request, body: Annotated[JobBulkIn, Body()], caller: Manager) -> Response:
    edge = edge_of(request)
    by_ids, after = _place(edge, caller, body)

    async def work(view: Operations) -> Response:
        wanted = body.ids if by_ids else await query_of(view, body.filter)
        place = after if after is None or isinstance(after, int) else (after[0], check_id(after[1]))
        done = await view.bulk_jobs(body.action, wanted, after=place, dry_run=body.dry_run, reason=cancelled_by(caller))
        following = done.next if isinstance(done.next, int | None) else [done.next[0], str(done.next[1])]
        return _answer(edge, caller, body, done, following)

    return await _once(request, edge, caller, body, work)


@router.post(
    "/schedules/bulk",
    tags=["schedules"],
    response_model=BulkOut,
    operation_id="bulk_schedules",
    summary="Pause, resume, trigger or remove many schedules",
    responses=with_body(409),
    openapi_extra={"parameters": [IDEMPOTENCY_KEY]},
)
async def bulk_schedules(request: Request, body: Annotated[ScheduleBulkIn, Body()], caller: Manager) -> Response:
    edge = edge_of(request)
    by_ids, after = _place(edge, caller, body)

    async def work(view: Operations) -> Response:
        wanted = body.ids if by_ids else _schedules(caller.tenant, body.filter)
        done = await view.bulk_schedules(
            body.action, wanted, after=after, dry_run=body.dry_run, note=body.note or None, author=caller.author
        )  # fmt: skip
        return _answer(edge, caller, body, done, done.next)

    return await _once(request, edge, caller, body, work)


def _place(edge: Edge, caller: Caller, body: JobBulkIn | ScheduleBulkIn) -> tuple[bool, Any]:
    """Whether it goes by ids, and where it goes on."""
    given = body.model_fields_set
    if ("ids" in given) == ("filter" in given):
        raise InvalidInput("filter", "give either `filter` or `ids`: an empty filter selects all there are")
    after = None if "cursor" not in given else edge.cursors.read(caller.tenant, _listing(body), _bound(body), body.cursor)[0]
    return "ids" in given, after


def _answer(edge: Edge, caller: Caller, body: BulkIn, done: Bulk[Any], following: Any) -> Response:
    cursor = None if following is None else edge.cursors.write(caller.tenant, _listing(body), _bound(body), [following])
    failed = [{"id": one.id, "code": one.code, "detail": one.detail} for one in done.failed]
    return answer({"matched": done.matched, "at_least": done.at_least, "done": done.done, "failed": failed, "next_cursor": cursor})


def _listing(body: BulkIn) -> str:
    return "bulk schedules" if isinstance(body, ScheduleBulkIn) else "bulk jobs"


def _bound(body: BulkIn) -> dict[str, Any]:
    """A cursor serves the very same request only."""
    return body.model_dump(mode="json", exclude={"cursor"}, exclude_unset=True)


async def _once(request: Request, edge: Edge, caller: Caller, body: BulkIn, work: Any) -> Response:
    key = request.headers.get("idempotency-key")
    return await edge.memory.once(edge.view(caller), key, fingerprint(request.method, request.url.path, body), work)


def _schedules(tenant: str, wanted: ScheduleFilterIn) -> ScheduleFilter:
    key, _, value = (wanted.label or "").partition(":")
    return ScheduleFilter(
        tenant,
        wanted.text,
        wanted.paused,
        named(wanted.owner, "filter.owner"),
        None if wanted.label is None else (key, value),
        target_named(wanted.target, "filter.target"),
        named(wanted.queue, "filter.queue"),
    )
