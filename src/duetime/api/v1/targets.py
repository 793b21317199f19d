"""Targets: one call to test whether a URL is reachable and answers as expected, and the secrets that sign
calls."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query
from pydantic import ConfigDict, Field, WithJsonSchema
from starlette.responses import Response

from duetime.api.auth import Admin, Submitter
from duetime.api.models.targets import HTTP_TARGET, Input, Json
from duetime.api.paging import ClosedQuery
from duetime.api.routing import StrictRoute, answer, problems, with_body
from duetime.api.target_input import read_target
from duetime.app.target_test import Trial, call_target
from duetime.errors import InvalidInput
from duetime.invokers.http.lazy import load
from duetime.model.codec import encode_payload
from duetime.model.signing import shown_secrets
from duetime.model.target import HTTP, shown_name
from duetime.model.url import MAX_URL, parse
from duetime.model.views.fields import about

router = APIRouter(prefix="/targets", tags=["targets"], route_class=StrictRoute)


class TargetTestIn(Input):
    """A target and the payload to send."""

    model_config = ConfigDict(
        title="TargetTest",
        json_schema_extra={
            "examples": [{"target": {"type": "http", "url": "https://agent.example/run"}, "payload": {}}]
        },
    )
    target: Annotated[dict[str, Any], WithJsonSchema(HTTP_TARGET)]
    payload: Json = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetError:
    code: Literal["target_not_allowed", "target_unreachable", "target_failed"]
    detail: str


@dataclass(frozen=True, slots=True)
class TargetTestResult:
    status: int | None = field(metadata=about("null: no response."))
    headers: dict[str, str]
    body: str | None = field(metadata=about("The first 4 KB."))
    truncated: bool
    duration_ms: float
    error: TargetError | None = field(
        metadata=about("Why a job would have failed; null: it would have succeeded.")
    )

    @staticmethod
    def of(trial: Trial) -> TargetTestResult:
        got = trial.answer or {}
        error: Any = None if trial.code is None else {"code": trial.code, "detail": trial.detail}
        return TargetTestResult(
            got.get("status"),
            got.get("headers", {}),
            got.get("body"),
            got.get("truncated", False),
            trial.lapse / 1_000,
            error,
        )


class SigningQuery(ClosedQuery):
    url: Annotated[
        str,
        Field(
            min_length=8,
            max_length=MAX_URL,
            examples=["https://agent.example/run"],
            json_schema_extra={"format": "duetime-url"},
        ),
    ]


@dataclass(frozen=True, slots=True)
class SigningSecrets:
    origin: str = field(metadata=about("All targets of the tenant on this host have the same secrets."))
    secrets: list[str] = field(
        repr=False, metadata=about("One for each secret key of the service; the first is the current one.")
    )


@router.get(
    "/signing-secrets",
    response_model=SigningSecrets,
    operation_id="read_signing_secrets",
    summary="The secrets that sign calls to a host, for its receiver",
    responses=problems(409),
)
async def signing_secrets(query: Annotated[SigningQuery, Query()], context: Admin) -> Response:
    origin = parse(query.url, "url").origin
    return answer(SigningSecrets(origin, shown_secrets(context.state.ring, context.caller.tenant, origin)))


@router.post(
    "/test",
    response_model=TargetTestResult,
    operation_id="test_target",
    summary="Call a target once, as a job would",
    responses=with_body(),
)
async def test(body: Annotated[TargetTestIn, Body()], context: Submitter) -> Response:
    name, spec = read_target(context, body.target, checked=False)
    if spec is None or shown_name(name) != HTTP:
        raise InvalidInput("target.type", 'must be "http": to test another target, submit it')
    state, now = context.state, await context.view.now()
    make = await asyncio.to_thread(load)
    handler = make(lambda: now, state.egress, state.ring, state.settings.public_url)
    try:
        payload = encode_payload(body.payload)
        trial = await call_target(
            handler, context.view.context.ids, context.caller.tenant, spec, payload, now
        )
    finally:
        await handler.close()
    return answer(TargetTestResult.of(trial))
