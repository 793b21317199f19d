"""One action on many jobs or schedules, by filter or by ids."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated, Any

from fastapi import APIRouter, Body
from starlette.responses import Response

from duetime.api.auth import Manager, RequestContext
from duetime.api.models.jobs import JobBulkIn, ScheduleBulkIn, ScheduleFilterIn
from duetime.api.requests import LABEL_FORM, read_name, read_pair, read_target_name
from duetime.api.routing import ONCE, StrictRoute, answer, with_body
from duetime.api.v1.jobs import cancel_reason, job_query
from duetime.app.bulk import Bulk
from duetime.app.listing import JobQuery
from duetime.app.services import Services
from duetime.engine.submit.validate import check_id
from duetime.errors import InvalidInput
from duetime.model.schedule import ScheduleFilter
from duetime.model.views import BulkResult

router = APIRouter(route_class=StrictRoute)


@router.post(
    "/jobs/bulk",
    tags=["jobs"],
    response_model=BulkResult,
    operation_id="bulk_jobs",
    summary="Cancel, retry, run or discard many jobs",
    responses=with_body(409),
    openapi_extra=ONCE,
)
async def bulk_jobs(body: Annotated[JobBulkIn, Body()], context: Manager) -> Response:
    by_ids, after = _start(context, body)
    place = after if after is None or isinstance(after, int) else check_id(after)

    async def work(view: Services) -> Response:
        selected = body.ids if by_ids else await job_query(view, body.filter, "filter.")
        reason = cancel_reason(context.caller)
        with context.searching(selected) if isinstance(selected, JobQuery) else nullcontext():
            done = await view.bulk.jobs(
                body.action, selected, after=place, dry_run=body.dry_run, reason=reason
            )
        return _answer(context, body, done)

    return await context.once(work, body)


@router.post(
    "/schedules/bulk",
    tags=["schedules"],
    response_model=BulkResult,
    operation_id="bulk_schedules",
    summary="Pause, resume, trigger or remove many schedules",
    responses=with_body(409),
    openapi_extra=ONCE,
)
async def bulk_schedules(body: Annotated[ScheduleBulkIn, Body()], context: Manager) -> Response:
    by_ids, after = _start(context, body)
    note, author = body.note or None, context.caller.author

    async def work(view: Services) -> Response:
        selected = body.ids if by_ids else schedule_filter(context, body.filter, "filter.")
        done = await view.bulk.schedules(
            body.action, selected, after=after, dry_run=body.dry_run, note=note, author=author
        )
        return _answer(context, body, done)

    return await context.once(work, body)


def schedule_filter(context: RequestContext, given: ScheduleFilterIn, prefix: str = "") -> ScheduleFilter:
    return ScheduleFilter(
        context.caller.tenant,
        given.text,
        given.paused,
        read_name(given.owner, f"{prefix}owner"),
        read_pair(given.label, f"{prefix}label", LABEL_FORM),
        read_target_name(given.target, f"{prefix}target"),
        read_name(given.queue, f"{prefix}queue"),
    )


def _start(context: RequestContext, body: JobBulkIn | ScheduleBulkIn) -> tuple[bool, Any]:
    """Whether the items are given by ids, and the position to start at."""
    given = body.model_fields_set
    if ("ids" in given) == ("filter" in given):
        raise InvalidInput("filter", "use either `filter` or `ids`: an empty filter selects everything")
    cursors = context.state.cursors
    after = cursors.read(*_bound(context, body), body.cursor)[0] if "cursor" in given else None
    return "ids" in given, after


def _answer(context: RequestContext, body: JobBulkIn | ScheduleBulkIn, done: Bulk[Any]) -> Response:
    cursor = None if done.next is None else context.state.cursors.write(*_bound(context, body), [done.next])
    return answer(BulkResult.of(done, cursor))


def _bound(context: RequestContext, body: JobBulkIn | ScheduleBulkIn) -> tuple[str, str, dict[str, Any]]:
    """A cursor is valid for the same request only."""
    listing = "bulk schedules" if isinstance(body, ScheduleBulkIn) else "bulk jobs"
    return (
        context.caller.tenant,
        listing,
        body.model_dump(mode="json", exclude={"cursor"}, exclude_unset=True),
    )
