"""Routes that parse bodies strictly before FastAPI sees them, and the parts that the documentation of all
routes shares."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast
from urllib.parse import parse_qsl, unquote

from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from duetime.api.auth import known_caller
from duetime.api.bodies import (
    MAX_BODY,
    MAX_KEYS,
    check_type,
    is_large,
    parse,
    read_body,
    refuse_body,
    validated,
)
from duetime.api.problems import MEDIA_TYPE, TITLES, UNKNOWN, ApiProblem
from duetime.api.state import state_of
from duetime.model.views import encode_view

PREFIX = "/api/v1"
PROBLEM: dict[str, Any] = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
RETRY_AFTER = {"Retry-After": {"description": "Seconds.", "schema": {"type": "string"}}}
ONCE: dict[str, Any] = {
    "parameters": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "description": "The service executes the request once, however often it is sent "
            "with this key, and stores the "
            "answer for a day.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
        }
    ]
}
IF_MATCH: dict[str, Any] = {
    "parameters": [
        {
            "name": "If-Match",
            "in": "header",
            "required": False,
            "description": "The ETag of the version that was read; the answer is 412 if it has "
            "changed since.",
            "schema": {"type": "string", "format": "duetime-etag", "minLength": 1, "examples": ['"3"']},
        }
    ]
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems of a route, in addition to those of every route."""
    found: dict[int | str, dict[str, Any]] = {
        status: {"description": TITLES[status], **PROBLEM}
        for status in (400, 401, 403, *statuses, 422, 429, 500, 503)
    }
    for status in (429, 503):
        found[status]["headers"] = RETRY_AFTER
    return found


def with_body(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return problems(413, 415, *statuses)


def location(description: str) -> dict[str, Any]:
    return {"Location": {"description": description, "schema": {"type": "string"}}}


def links(noun: str, parameter: str, value: str, *operations: str) -> dict[str, Any]:
    """From the answer of one operation to the operations on its noun."""
    parameters = {parameter: f"$response.body#/{value}"}
    return {name: {"operationId": f"{name}_{noun}", "parameters": parameters} for name in operations}


def answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A view, a page or a list of views, as JSON."""
    return Response(encode_view(value), status, headers, "application/json")


Handle = Callable[[Request], Coroutine[Any, Any, Response]]
ENCODED_SLASH = "\0"  # stands for %2F while paths are matched; no name contains it
NUL = "must not contain the NUL character"
DECODED = "duetime.path"  # in the scope: a path and its decoded form, because every route asks for it


def path_of(scope: Scope) -> str:
    """The path of the request, in which %2F is part of a name and does not separate names."""
    path: str = scope["path"]
    given, decoded = scope.get(DECODED, ("", ""))
    if given != path:
        decoded = _decoded(path, scope.get("raw_path") or b"")
        scope[DECODED] = path, decoded
    return str(decoded)


def _decoded(path: str, raw: bytes) -> str:
    if b"%" not in raw or b"%2f" not in raw.lower() or ENCODED_SLASH in path:
        return path
    parts = raw.decode("latin-1").replace("%2f", "%2F").split("%2F")
    meant = ENCODED_SLASH.join(map(unquote, parts))
    # Different: a middleware has rewritten the path.
    return meant if meant.replace(ENCODED_SLASH, "/") == path else path


_documenting: ContextVar[bool] = ContextVar("documenting", default=False)


@contextmanager
def documenting() -> Iterator[None]:
    """Routes that are made or included meanwhile have the models of their responses."""
    token = _documenting.set(True)
    try:
        yield
    finally:
        _documenting.reset(token)


class StrictRoute(APIRoute):
    """Reads and validates the body itself, and passes the model to FastAPI. Names in its path may contain
    slashes. Every handler returns a `Response`, so the models of responses only document them. FastAPI would
    build them for every route, twice, which took more than half a second of each start."""

    max_body = MAX_BODY
    max_keys = MAX_KEYS
    authenticate: Callable[[Request], Awaitable[object]] = staticmethod(known_caller)

    @property
    def response_model(self) -> Any:
        return self._response_model if _documenting.get() else None

    @response_model.setter
    def response_model(self, model: Any) -> None:
        self._response_model = model

    @property
    def responses(self) -> dict[int | str, dict[str, Any]]:
        if _documenting.get():
            return self._responses
        return {
            status: {name: part for name, part in one.items() if name != "model"}
            for status, one in self._responses.items()
        }

    @responses.setter
    def responses(self, responses: dict[int | str, dict[str, Any]]) -> None:
        self._responses = responses

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        path = path_of(scope)
        if path == scope["path"]:
            return super().matches(scope)
        match, found = super().matches({**scope, "path": path})
        if "path_params" in found:
            found["path_params"] = {
                name: _with_slashes(value) for name, value in found["path_params"].items()
            }
        return match, found

    def get_route_handler(self) -> Handle:
        handle = self._checking_address(super().get_route_handler())
        if self.body_field is None:
            return handle if "GET" in (self.methods or ()) else self._refusing_body(handle)
        adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, self.body_field.field_info.annotation))
        optional = not self.body_field.field_info.is_required()

        def read(data: bytes) -> Any:
            return validated(adapter, parse(data, self.max_keys))

        async def handle_strictly(request: Request) -> Response:
            await self._check_access(request)  # before the first byte of the body is read
            with _body_permit(request, self.max_body) as large:
                data = await read_body(request, self.max_body)
                await self.check_content(request, data)
                if not data and optional:
                    return await handle(_ParsedRequest(request, None))
                check_type(request.headers.get("content-type"))
                value = await asyncio.to_thread(read, data) if large else read(data)
                return await handle(_ParsedRequest(request, value))

        return handle_strictly

    def _refusing_body(self, handle: Handle) -> Handle:
        async def handle_without_body(request: Request) -> Response:
            await self._check_access(request)
            await refuse_body(request.receive)
            return await handle(request)

        return handle_without_body

    async def check_content(self, request: Request, data: bytes) -> None:
        """Called before the body is parsed."""

    async def _check_access(self, request: Request) -> None:
        """The caller and its scope: every dependency of a route is such a check."""
        await self.authenticate(request)
        for one in self.dependant.dependencies:
            await cast(Any, one.call)(request)

    def _checking_address(self, handle: Handle) -> Handle:
        takes_query = bool(self.dependant.query_params)

        async def handle_checked(request: Request) -> Response:
            if (problem := address_problem(request.scope, takes_query)) is not None:
                await self.authenticate(request)
                raise problem
            return await handle(request)

        return handle_checked


@contextmanager
def _body_permit(request: Request, limit: int) -> Iterator[bool]:
    """The value is True for a large body. Few of them are read and processed at the same time."""
    large = is_large(request.headers, limit)
    if large:
        with state_of(request).large_bodies.held(request.state.context.caller.identity):
            yield True
    else:
        yield False


class _ParsedRequest(Request):
    """A request whose body has been parsed already."""

    def __init__(self, request: Request, value: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._value = value

    async def body(self) -> bytes:
        return b"" if self._value is None else b"parsed"

    async def json(self) -> Any:
        return self._value


def address_problem(scope: Scope, takes_query: bool) -> ApiProblem | None:
    """NUL is refused as in bodies, because not every store can search for it; cursors have their own error.
    A parameter that no code reads is refused, too: the caller expects an effect."""
    if "\0" in scope["path"]:
        return _refused("path", NUL)
    if not scope["query_string"]:
        return None
    seen: set[str] = set()
    for name, value in parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True):
        if "\0" in value and name != "cursor":
            return _refused(name, NUL)
        if not takes_query:
            return _refused(name, UNKNOWN)
        if name in seen:
            return _refused(name, "is given more than once: give it once")
        seen.add(name)
    return None


def _refused(field: str, reason: str) -> ApiProblem:
    return ApiProblem(422, "input_invalid", f"{field}: {reason}", field)


def _with_slashes(value: Any) -> Any:
    return value.replace(ENCODED_SLASH, "/") if isinstance(value, str) else value
