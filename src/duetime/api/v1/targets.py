"""Targets: one call to see whether a URL can be reached and answers as it should."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body
from pydantic import ConfigDict, Field, WithJsonSchema
from starlette.requests import Request
from starlette.responses import Response

from duetime.api.auth import Submitter
from duetime.api.edge import edge_of
from duetime.api.models.fields import Input, Json, Output
from duetime.api.models.targets import HTTP_TARGET
from duetime.api.routing import StrictRoute, answer, with_body
from duetime.api.wanted import read_target
from duetime.app.trying import Trial, try_http
from duetime.errors import InvalidInput
from duetime.invokers.http.late import load
from duetime.model.codec import encode_payload

router = APIRouter(prefix="/targets", tags=["targets"], route_class=StrictRoute)


class TargetTestIn(Input):
    """A target as jobs have it, and what to send."""

    model_config = ConfigDict(
        title="TargetTest",
        json_schema_extra={"examples": [{"target": {"type": "http", "url": "https://agent.example/run"}, "payload": {}}]},
    )
    target: Annotated[dict[str, Any], WithJsonSchema(HTTP_TARGET)]
    payload: Json = Field(default_factory=dict)


class TargetErrorOut(Output):
    model_config = ConfigDict(title="TargetError")
    code: Literal["target_not_allowed", "target_unreachable", "target_failed"]
    detail: str


class TargetTestOut(Output):
    model_config = ConfigDict(title="TargetTestResult")
    status: Annotated[int | None, Field(description="null: no answer came.")]
    headers: dict[str, str]
    body: Annotated[str | None, Field(description="Its first 4 KB.")]
    truncated: bool
    duration_ms: float
    error: Annotated[TargetErrorOut | None, Field(description="Why a job would have failed; null: it would have succeeded.")]


@router.post(
    "/test",
    response_model=TargetTestOut,
    operation_id="test_target",
    summary="Call a target once, as a job would",
    responses=with_body(),
)
async def test(request: Request, body: Annotated[TargetTestIn, Body()], caller: Submitter) -> Response:
    edge = edge_of(request)
    view = edge.view(caller)
    _, spec = read_target(edge, caller.tenant, body.target)
    if spec is None:
        raise InvalidInput("target.type", 'must be "http": a task is tried by submitting it')
    now = await view.now()
    make = await asyncio.to_thread(load)
    handler = make(lambda: now, edge.settings.egress(), edge.ring, edge.settings.public_url)
    try:
        trial = await try_http(handler, view.ids, caller.tenant, spec, encode_payload(body.payload), now)
    finally:
        await handler.close()
    return answer(_shown(trial))


def _shown(trial: Trial) -> dict[str, Any]:
    came = trial.answer or {}
    return {
        "status": came.get("status"),
        "headers": came.get("headers", {}),
        "body": came.get("body"),
        "truncated": came.get("truncated", False),
        "duration_ms": trial.lapse / 1_000,
        "error": None if trial.code is None else {"code": trial.code, "detail": trial.detail},
    }
