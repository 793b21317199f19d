"""Errors as problem+json (RFC 9457). Maps codes to statuses, and reveals nothing of the inside of the
service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from duetime.errors import (
    Conflict,
    DuetimeError,
    InvalidInput,
    LeasesUnavailable,
    NotFound,
    NotOpen,
    PayloadTooLarge,
    QuotaExceeded,
    ScheduleExists,
    StoreError,
    StoreFull,
    StoreUnavailable,
    VersionConflict,
)
from duetime.model.codec import encode

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER = "1"  # seconds: most outages of a store are short
MAX_ERRORS = 10
UNKNOWN = "unknown field: remove it, or check its spelling"

# The first match decides.
STATUSES: tuple[tuple[type[DuetimeError], int], ...] = (
    (PayloadTooLarge, 413),
    (QuotaExceeded, 429),
    (InvalidInput, 422),
    (NotFound, 404),
    (VersionConflict, 412),
    (Conflict, 409),
    (StoreError, 503),
    (LeasesUnavailable, 503),
    (NotOpen, 503),
)
TITLES = {
    400: "Bad request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    409: "Conflict with the present state",
    412: "Changed by another request",
    413: "Too large",
    414: "Address too long",
    415: "Unsupported media type",
    422: "Invalid value",
    428: "Precondition required",
    429: "Too many requests",
    431: "Request header too large",
    500: "Internal error",
    503: "Service unavailable",
}

# Errors of pydantic about the type of a value speak of Python.
KINDS_OF_JSON = {
    "model_type": "an object",
    "dict_type": "an object",
    "list_type": "a list",
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
}

# Codes of the API itself; the other codes are those of duetime.errors.
API_CODES = {
    "bodies_exhausted": "too many large bodies at the same time",
    "body_too_large": "the body is over the limit",
    "commands_not_allowed": "the service does not allow targets of type command",
    "apprise_not_allowed": "the service does not allow alert channels of type apprise",
    "connections_exhausted": "too many connections",
    "cursor_invalid": "a cursor of another service, listing, filter or tenant",
    "head_too_large": "the request header is over the limit",
    "host_not_allowed": "local mode: the name in Host is not of this machine",
    "http_malformed": "the request is not HTTP",
    "idempotency_in_progress": "the first request with this Idempotency-Key is still in progress",
    "idempotency_reused": "this Idempotency-Key was used with another request",
    "input_invalid": "a value is invalid; `field` names it",
    "internal": "an internal error of the service",
    "json_malformed": "the body is not JSON",
    "key_duplicate": "an object contains a key twice",
    "key_expired": "an expired API key",
    "key_invalid": "not an API key of this service",
    "key_missing": "an API key is required",
    "key_revoked": "a revoked API key",
    "media_type_unsupported": "the body is not declared as JSON",
    "method_not_allowed": "the address has other methods",
    "not_found": "unknown address",
    "not_ready": "the store does not answer, the node has no lease, or the service is stopping",
    "origin_not_allowed": "local mode: the request comes from a page of another site",
    "path_too_long": "the path of the address is over the limit",
    "proxy_not_allowed": "local mode: the request comes through a proxy",
    "queue_not_allowed": "the key does not allow work of this queue",
    "rate_limited": "too many requests of this key, or too many wrong keys from this address; "
    "see Retry-After",
    "refused": "the request cannot be served",
    "request_incomplete": "the connection ended before the body",
    "scope_missing": "the key lacks a scope",
    "searches_exhausted": "too many searches of jobs at the same time",
    "streams_exhausted": "too many open event streams",
    "tenant_not_allowed": "the resource is shared by all tenants, or belongs to another tenant",
    "token_invalid": "not a report token of this job",
    "too_deep": "the body is nested too deeply",
    "too_many_keys": "the body has too many keys",
    "waits_exhausted": "too many requests wait for jobs",
}


class FieldError(BaseModel):
    model_config = ConfigDict(extra="forbid")
    field: str
    message: str


class Problem(BaseModel):
    """An error and its remedy."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:duetime:problem:input_invalid",
                    "title": "Invalid value",
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
    field: str | None = Field(default=None, description="The invalid value.")
    errors: list[FieldError] | None = Field(
        default=None, description="All errors, if there is more than one."
    )
    request_id: str | None = None


class ApiProblem(Exception):
    """An error that the API answers with."""

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


def problem_of(error: Exception) -> ApiProblem:
    """The problem to answer with. Raises errors that are faults of the service, for the middleware to log."""
    if isinstance(error, ApiProblem):
        return error
    status = next((status for kind, status in STATUSES if isinstance(error, kind)), None)
    if status is None or not isinstance(error, DuetimeError):
        raise error
    field = getattr(error, "field", None)
    if isinstance(error, ScheduleExists):
        detail = f"{error.fact}: choose another name, or change that one with PATCH"
        return ApiProblem(status, error.code, _visible(detail))
    if status != 503:
        headers = {"Retry-After": RETRY_AFTER} if status == 429 else None
        return ApiProblem(status, error.code, _visible(error.message), field, headers)
    retry_after = {"Retry-After": RETRY_AFTER}
    if isinstance(error, StoreFull):
        return ApiProblem(503, error.code, STORE_FULL, None, retry_after)
    if isinstance(error, LeasesUnavailable):
        return ApiProblem(503, error.code, error.message, None, retry_after)
    # The message of a store may contain internal addresses and names.
    detail = "the store is not available: repeat the request"
    return ApiProblem(503, StoreUnavailable.code, detail, field, retry_after)


STORE_FULL = (
    "the store has no room left and stores nothing: let its operator make room, then repeat the request"
)
INTERNAL = ApiProblem(500, "internal", "internal error: report the request id to the operator of the service")


def respond(problem: ApiProblem, request_id: str | None) -> Response:
    body: dict[str, Any] = {
        "type": f"urn:duetime:problem:{problem.code}",
        "title": TITLES.get(problem.status, "The request failed"),
        "status": problem.status,
        "detail": problem.detail,
        "code": problem.code,
    }
    if problem.field is not None:
        body["field"] = _visible(problem.field)
    if problem.errors:
        body["errors"] = problem.errors
    if request_id is not None:
        body["request_id"] = request_id
    return Response(encode(body), problem.status, problem.headers, MEDIA_TYPE)


def invalid(errors: list[Any], skip: int = 0) -> ApiProblem:
    """From the errors of pydantic; `skip` drops as many leading parts of each location."""
    reported = [
        {"field": place_of(one["loc"][skip:]), "message": _message(one)} for one in errors[:MAX_ERRORS]
    ]
    first = reported[0]
    return ApiProblem(
        422,
        "input_invalid",
        f"{first['field']}: {first['message']}",
        first["field"],
        errors=reported if len(reported) > 1 else None,
    )


def place_of(parts: Iterable[Any]) -> str:
    place = ""
    for part in parts:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else str(part)
    return _visible(place) or "body"


def _message(error: Mapping[str, Any]) -> str:
    match error["type"]:
        case "extra_forbidden":
            return UNKNOWN
        case "missing":
            return "is required"
        case kind if kind in KINDS_OF_JSON:
            return f"must be {KINDS_OF_JSON[kind]}"
        case _:
            text = str(error["msg"]).replace(" after validation", "")
            return _visible(text[:1].lower() + text[1:])


def _visible(text: str) -> str:
    """Text of a request, made safe to be sent back."""
    return text[:500].encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
