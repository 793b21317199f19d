"""Errors as problem+json (RFC 9457): the one place where a code becomes a status. Nothing of the inside is ever told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from duetime.errors import (
    Conflict,
    DuetimeError,
    InvalidInput,
    NotFound,
    NotOpen,
    PayloadTooLarge,
    StoreError,
    VersionConflict,
)
from duetime.model.codec import encode

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = "1"  # seconds: most outages of a store are over in a moment, and the rest are asked about cheaply
MOST_ERRORS = 10

# From the special to the general: the first that fits decides.
STATUSES: tuple[tuple[type[DuetimeError], int], ...] = (
    (PayloadTooLarge, 413),
    (InvalidInput, 422),
    (NotFound, 404),
    (VersionConflict, 412),
    (Conflict, 409),
    (StoreError, 503),
    (NotOpen, 503),
)
TITLES = {
    400: "The request cannot be read",
    401: "Who asks is not known",
    403: "Not allowed",
    404: "Not found",
    405: "Not a method of this address",
    406: "Not acceptable",
    409: "The present state forbids it",
    412: "It has changed meanwhile",
    413: "Too large",
    415: "Not a media type that is understood",
    422: "A value is wrong",
    428: "A condition is missing",
    429: "Too many requests",
    431: "The head is too large",
    500: "A fault of the service",
    503: "Not available at this moment",
}


# What is refused before the domain sees it; the domain's own codes are those of duetime.errors.
EDGE_CODES = {
    "body_too_large": "the body is over the limit",
    "connections_exhausted": "all places for connections are taken",
    "cursor_invalid": "a cursor that is not ours, or of another listing, filter or tenant",
    "head_too_large": "the request's head is over the limit",
    "host_not_allowed": "in local mode: a name in Host that is not this machine's",
    "http_malformed": "what came in is not HTTP",
    "idempotency_in_progress": "the first request with this Idempotency-Key is still under way",
    "idempotency_reused": "this Idempotency-Key came with another request before",
    "input_invalid": "a value is wrong; `field` names it",
    "internal": "a fault of the service",
    "json_malformed": "the body is not JSON",
    "key_duplicate": "a key is given twice in one object",
    "key_expired": "an API key whose time is over",
    "key_invalid": "what is no API key of this service",
    "key_missing": "no API key, where one is needed",
    "key_revoked": "an API key that was revoked",
    "media_type_unsupported": "the body is not declared as plain JSON",
    "method_not_allowed": "the address has other methods",
    "not_found": "there is nothing at this address",
    "not_ready": "the store does not answer, the node has no lease, or the service is stopping",
    "origin_not_allowed": "in local mode: a page of another site asks",
    "proxy_not_allowed": "in local mode: a proxy asks for somebody else",
    "rate_limited": "too many requests by this key, or too many wrong keys from this address; Retry-After tells when to come back",
    "refused": "the request cannot be served",
    "request_incomplete": "the connection ended before the body did",
    "scope_missing": "the key may not do this",
    "streams_exhausted": "too many streams of events are open already",
    "tenant_not_allowed": "something that all tenants share, or another tenant's",
    "token_invalid": "a report token that is not of this job",
    "too_deep": "the body is nested too deeply",
    "too_many_keys": "the body has too many keys",
}


class FieldError(BaseModel):
    model_config = ConfigDict(extra="forbid")
    field: str
    message: str


class Problem(BaseModel):
    """What went wrong and what to do about it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:duetime:problem:input_invalid",
                    "title": "A value is wrong",
                    "status": 422,
                    "detail": "priority: 12 must be a whole number from 0 (last) to 9 (most urgent)",
                    "code": "input_invalid",
                    "field": "priority",
                    "request_id": "0193a1b2c3d47e5f8a9b0c1d2e3f4a5b",
                }
            ]
        },
    )
    type: str
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable: programs may rely on it.")
    field: str | None = Field(default=None, description="Which value is wrong.")
    errors: list[FieldError] | None = Field(default=None, description="All that is wrong, when it is more than one value.")
    request_id: str | None = None


class Refused(Exception):
    """A request that is turned away at the edge, before the domain sees it."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        errors: list[dict[str, str]] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.field = status, code, detail, field
        self.headers = dict(headers or {})
        self.errors = errors


def refusal_of(problem: DuetimeError) -> Refused:
    status = next((status for kind, status in STATUSES if isinstance(problem, kind)), 500)
    if status == 500:
        return INTERNAL
    headers = {"Retry-After": RETRY_AFTER} if status == 503 else None
    # What a store says of its own troubles may hold addresses and names of the inside.
    detail = "the store cannot be used at this moment: repeat the request" if status == 503 else problem.message
    code = "store_unavailable" if status == 503 else problem.code
    return Refused(status, code, _visible(detail), getattr(problem, "field", None), headers)


INTERNAL = Refused(500, "internal", "this is a fault of the service, not of the request: tell its operator the request id")


def respond(refused: Refused, request_id: str | None) -> Response:
    body: dict[str, Any] = {
        "type": f"urn:duetime:problem:{refused.code}",
        "title": TITLES.get(refused.status, "The request failed"),
        "status": refused.status,
        "detail": refused.detail,
        "code": refused.code,
    }
    if refused.field is not None:
        body["field"] = _visible(refused.field)
    if refused.errors:
        body["errors"] = refused.errors
    if request_id is not None:
        body["request_id"] = request_id
    return Response(encode(body), refused.status, refused.headers, MEDIA_TYPE)


def invalid(errors: list[Any], skip: int = 0) -> Refused:
    """What pydantic found; `skip` leaves out as many leading parts of each place."""
    told = [{"field": _place(one["loc"][skip:]), "message": _message(one)} for one in errors[:MOST_ERRORS]]
    first = told[0]
    return Refused(422, "input_invalid", f"{first['field']}: {first['message']}", first["field"], errors=told if len(told) > 1 else None)


def _place(parts: tuple[Any, ...]) -> str:
    place = ""
    for part in parts:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
    return _visible(place) or "body"


def _message(error: Mapping[str, Any]) -> str:
    match error["type"]:
        case "extra_forbidden":
            return "no such field here: leave it out, or check its spelling"
        case "missing":
            return "is required"
        case _:
            text = str(error["msg"])
            return _visible(text[:1].lower() + text[1:])


def _visible(text: str) -> str:
    """What came in may be sent back only in a form that can be written down again."""
    return text[:500].encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
