"""Alerts, and the channels, rules and mutes that decide who is told."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query
from pydantic import Field
from starlette.responses import Response

from duetime.api.auth import Manager, Reader
from duetime.api.models.alerts import AlertChannelIn, AlertRuleIn, MuteIn, SnoozeIn
from duetime.api.models.targets import Input
from duetime.api.paging import MAX_PAGE, ClosedQuery
from duetime.api.requests import expected_version, read_instant
from duetime.api.routing import IF_MATCH, StrictRoute, answer, problems, with_body
from duetime.api.target_input import check_apprise
from duetime.model.alert.channel import ChannelType
from duetime.model.url import parse
from duetime.model.views import (
    AlertChannelView,
    AlertRuleView,
    AlertTest,
    AlertView,
    JobSummary,
    MuteView,
    Page,
)

Name = Annotated[
    str,
    Path(min_length=1, max_length=128, json_schema_extra={"format": "duetime-name"}, examples=["ops"]),
]
Id = Annotated[str, Path(min_length=1, max_length=64, pattern="^[0-9a-z-]+$", examples=["5f0c9d2b7a31"])]
HOUR = SnoozeIn()
router = APIRouter(prefix="/alerts", tags=["alerts"], route_class=StrictRoute)


class AlertsQuery(ClosedQuery):
    past: Annotated[bool, Field(description="Those that are over, too.")] = False
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 100


class DeliveriesQuery(ClosedQuery):
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 50


@router.get(
    "",
    response_model=Page[AlertView],
    operation_id="list_alerts",
    summary="Open alerts, newest first",
    responses=problems(),
)
async def list_alerts(context: Reader, query: Annotated[AlertsQuery, Query()]) -> Response:
    return answer(Page(await context.view.alerts(past=query.past, limit=query.limit)))


@router.get(
    "/deliveries",
    response_model=Page[JobSummary],
    operation_id="list_alert_deliveries",
    summary="The jobs that deliver notices, newest first",
    responses=problems(),
)
async def deliveries(context: Reader, query: Annotated[DeliveriesQuery, Query()]) -> Response:
    return answer(Page(await context.view.alerts.deliveries(limit=query.limit)))


@router.get(
    "/channels",
    response_model=Page[AlertChannelView],
    operation_id="list_alert_channels",
    summary="Channels by name, without their secrets",
    responses=problems(),
)
async def list_channels(context: Reader) -> Response:
    return answer(Page(await context.view.alerts.channels()))


@router.put(
    "/channels/{channel}",
    response_model=AlertChannelView,
    operation_id="set_alert_channel",
    summary="Create or replace a channel",
    responses=with_body(409, 412),
    openapi_extra=IF_MATCH,
)
async def set_channel(channel: Name, body: Annotated[AlertChannelIn, Body()], context: Manager) -> Response:
    """Nothing is watched before there is a channel; then the built-in rules apply."""
    alerts, version = context.view.alerts, expected_version(context)
    if (body.target.get("type") or await alerts.type_of(channel)) == ChannelType.APPRISE:
        check_apprise(context)
    elif isinstance(url := body.target.get("url"), str):
        context.state.egress.check(parse(url, "url"), "url")
    return answer(
        await alerts.set_channel(
            channel, version=version, quiet=body.quiet, enabled=body.enabled, **body.target
        )
    )


@router.delete(
    "/channels/{channel}",
    status_code=204,
    operation_id="remove_alert_channel",
    summary="Remove a channel",
    responses=problems(404),
)
async def remove_channel(channel: Name, context: Manager) -> Response:
    await context.view.alerts.remove_channel(channel)
    return Response(status_code=204)


@router.post(
    "/channels/{channel}/test",
    status_code=202,
    response_model=AlertTest,
    operation_id="test_alert_channel",
    summary="Send a test notice",
    responses=problems(404),
)
async def test_channel(channel: Name, context: Manager) -> Response:
    """The job that delivers it says how that ended."""
    return answer(AlertTest(job_id=await context.view.alerts.test(channel)), 202)


@router.get(
    "/rules",
    response_model=Page[AlertRuleView],
    operation_id="list_alert_rules",
    summary="Rules, built-in ones included, the most specific first",
    responses=problems(),
)
async def list_rules(context: Reader) -> Response:
    return answer(Page(await context.view.alerts.rules()))


@router.put(
    "/rules/{rule}",
    response_model=AlertRuleView,
    operation_id="set_alert_rule",
    summary="Create or replace a rule",
    responses=with_body(412),
    openapi_extra=IF_MATCH,
)
async def set_rule(rule: Name, body: Annotated[AlertRuleIn, Body()], context: Manager) -> Response:
    version = expected_version(context)
    return answer(await context.view.alerts.set_rule(rule, version=version, **_given(body)))


@router.delete(
    "/rules/{rule}",
    status_code=204,
    operation_id="remove_alert_rule",
    summary="Remove a rule; a built-in one applies again",
    responses=problems(404),
)
async def remove_rule(rule: Name, context: Manager) -> Response:
    await context.view.alerts.remove_rule(rule)
    return Response(status_code=204)


@router.get(
    "/mutes",
    response_model=Page[MuteView],
    operation_id="list_alert_mutes",
    summary="Snoozes and maintenance windows that are not over",
    responses=problems(),
)
async def list_mutes(context: Reader) -> Response:
    return answer(Page(await context.view.alerts.mutes()))


@router.post(
    "/mutes",
    status_code=201,
    response_model=MuteView,
    operation_id="create_alert_mute",
    summary="Tell nothing for a time: a maintenance window",
    responses=with_body(),
)
async def create_mute(body: Annotated[MuteIn, Body()], context: Manager) -> Response:
    """What is still wrong at its end is told then."""
    given = _given(body)
    if "start" in given:
        given["start"] = read_instant(body.start, "start")
    made = await context.view.alerts.mute(**given, author=context.caller.author)
    return answer(made, 201)


@router.delete(
    "/mutes/{mute_id}",
    status_code=204,
    operation_id="remove_alert_mute",
    summary="End a snooze or a maintenance window",
    responses=problems(404),
)
async def remove_mute(mute_id: Id, context: Manager) -> Response:
    await context.view.alerts.unmute(mute_id)
    return Response(status_code=204)


@router.post(
    "/{alert_id}/snooze",
    status_code=201,
    response_model=MuteView,
    operation_id="snooze_alert",
    summary="Tell nothing about this alert for a time",
    responses=with_body(404),
)
async def snooze(alert_id: Id, context: Manager, body: Annotated[SnoozeIn, Body()] = HOUR) -> Response:
    made = await context.view.alerts.snooze(
        alert_id, body.for_, note=body.note or None, author=context.caller.author
    )
    return answer(made, 201)


@router.post(
    "/{alert_id}/close",
    response_model=AlertView,
    operation_id="close_alert",
    summary="Close an alert by hand; it opens again if its condition still holds",
    responses=problems(404),
)
async def close(alert_id: Id, context: Manager) -> Response:
    return answer(await context.view.alerts.close(alert_id))


def _given(body: Input) -> dict[str, Any]:
    """The fields of the request, without those that have only a default."""
    return {field: getattr(body, field) for field in body.model_fields_set}
