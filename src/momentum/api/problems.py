"""Errors as problem+json (RFC 9457), each with a stable code and the field. No internals are shown."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

import duetime as dt
from duetime.serving import Refused
from momentum.errors import InvalidPost, MomentumError, Problem

MEDIA_TYPE = "application/problem+json"
URN = "urn:momentum:problem:"
CODES = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    415: "media_type_unsupported",
}
MAX_PROBLEMS = 50
log = logging.getLogger("momentum.api")


class BodyTooLarge(HTTPException):
    def __init__(self, limit: int) -> None:
        super().__init__(413, f"the body is over {limit:,} bytes: send less")


class OperatorOnly(MomentumError, code="operator_only", status=403):
    """The request changes what all tenants share."""


class Forbidden(MomentumError, code="forbidden", status=403):
    """The request comes from a page of another site, or lacks a needed header."""


def problem(
    status: int,
    code: str,
    detail: str,
    problems: Sequence[Problem] = (),
    headers: dict[str, str] | None = None,
) -> Response:
    body = {
        "type": URN + code,
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "problems": [
            {"field": one.field, "message": one.message, "code": one.code} for one in problems[:MAX_PROBLEMS]
        ],
    }
    return JSONResponse(body, status, headers, MEDIA_TYPE)


def add_handlers(service: FastAPI) -> None:
    @service.exception_handler(MomentumError)
    async def refused(request: Request, error: MomentumError) -> Response:
        problems = error.problems if isinstance(error, InvalidPost) else ()
        headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else None
        return problem(error.status, error.code, error.message, problems, headers)

    @service.exception_handler(Refused)
    async def guarded(request: Request, error: Refused) -> Response:
        problems = [Problem(error.field, error.detail, error.code)] if error.field else ()
        return problem(error.status, error.code, error.detail, problems, error.headers)

    @service.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        problems = [_problem_of(one) for one in error.errors()]
        detail = "; ".join(f"{one.field}: {one.message}" for one in problems[:MAX_PROBLEMS])
        return problem(422, "input_invalid", detail, problems)

    @service.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        code = CODES.get(error.status_code, "refused")
        return problem(error.status_code, code, str(error.detail), (), dict(error.headers or {}))

    @service.exception_handler(DBAPIError)
    @service.exception_handler(dt.StoreError)
    async def unavailable(request: Request, error: Exception) -> Response:
        log.error("%s %s: the database failed: %s", request.method, request.url.path, type(error).__name__)
        detail = "the database does not answer: try again soon"
        return problem(503, "database_unavailable", detail, (), {"Retry-After": "1"})


def _problem_of(error: dict[str, object]) -> Problem:
    location, message = error.get("loc", ()), str(error.get("msg", "is invalid"))
    assert isinstance(location, tuple)
    field = ""
    for part in location[1:] if location and location[0] in ("body", "query", "path", "header") else location:
        field += f"[{part}]" if isinstance(part, int) else f".{part}" if field else str(part)
    message = message.removeprefix("Value error, ")
    if not field and ": " in message:
        field, _, message = message.partition(": ")
    return Problem(field or "body", message[:1].lower() + message[1:], str(error.get("type", "invalid")))
