"""Routes whose bodies are read strictly before FastAPI sees them, and the words every route's documentation shares."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast
from urllib.parse import parse_qsl, unquote

from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from duetime.api.auth import anyone_known
from duetime.api.limits import LARGEST_BODY, MOST_KEYS, check_type, parse, read_body, validated
from duetime.api.problems import MEDIA_TYPE, TITLES, Refused
from duetime.model.codec import encode

PROBLEM: dict[str, Any] = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
RETRY_AFTER = {"Retry-After": {"description": "Seconds.", "schema": {"type": "string"}}}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The request is carried out once, however often it is sent with the same key; its answer is kept for a day.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}
IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "description": "The ETag of the version that was read; refused with 412 when it has changed since.",
    "schema": {"type": "string", "format": "duetime-etag", "minLength": 1, "examples": ['"3"']},
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route, beside those that every route can answer with."""
    found: dict[int | str, dict[str, Any]] = {
        status: {"description": TITLES[status], **PROBLEM} for status in (400, 401, 403, *statuses, 422, 429, 500, 503)
    }
    for status in (429, 503):
        found[status]["headers"] = RETRY_AFTER
    return found


def with_body(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return problems(413, 415, *statuses)


def answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(encode(value), status, headers, "application/json")


Handle = Callable[[Request], Coroutine[Any, Any, Response]]
SLASH_IN_A_NAME = "\0"  # no name may have one, so it can stand for what was written %2F while paths are compared


def told_path(scope: Scope) -> str:
    """The path as it was meant: %2F is a character of a name, and not what divides the path."""
    path: str = scope["path"]
    raw = scope.get("raw_path") or b""
    if b"%" not in raw or b"%2f" not in raw.lower() or SLASH_IN_A_NAME in path:  # asked for every route: most paths are plain
        return path
    parts = raw.decode("latin-1").replace("%2f", "%2F").split("%2F")
    told = SLASH_IN_A_NAME.join(map(unquote, parts))
    return told if told.replace(SLASH_IN_A_NAME, "/") == path else path  # somebody in between has rewritten it


class StrictRoute(APIRoute):
    """Reads and checks the body by itself, and hands FastAPI the model it has become. Names in its path may have slashes."""

    largest_body = LARGEST_BODY
    most_keys = MOST_KEYS
    look_at: Callable[[Request], Awaitable[object]] = staticmethod(anyone_known)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        path = told_path(scope)
        if path == scope["path"]:
            return super().matches(scope)
        match, found = super().matches({**scope, "path": path})
        if "path_params" in found:
            found["path_params"] = {name: _with_slashes(value) for name, value in found["path_params"].items()}
        return match, found

    def get_route_handler(self) -> Handle:
        handle = self._after_a_look_at_the_address(super().get_route_handler())
        if self.body_field is None:
            return handle
        adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, self.body_field.field_info.annotation))
        optional = not self.body_field.field_info.is_required()

        async def handle_strictly(request: Request) -> Response:
            await self.look_at(request)  # before a byte of what a stranger sends is looked at
            data = await read_body(request, self.largest_body)
            if not data and optional:
                return await handle(_Read(request, None))
            check_type(request.headers.get("content-type"))
            value = validated(adapter, parse(data, self.most_keys))
            return await handle(_Read(request, value))

        return handle_strictly

    def _after_a_look_at_the_address(self, handle: Handle) -> Handle:
        """NUL is refused there as it is in bodies: not every store can look for it."""

        async def handle_plainly(request: Request) -> Response:
            if (field := _holds_nul(request.scope)) is not None:
                await self.look_at(request)
                raise Refused(422, "input_invalid", f"{field}: must not contain the NUL character", field)
            return await handle(request)

        return handle_plainly


class _Read(Request):
    """A request whose body has been read already."""

    def __init__(self, request: Request, value: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._value = value

    async def body(self) -> bytes:
        return b"" if self._value is None else b"read"

    async def json(self) -> Any:
        return self._value


def _holds_nul(scope: Scope) -> str | None:
    """Which part of the address. Cursors are nobody's to search for, and refused in words of their own."""
    if "\0" in scope["path"]:
        return "path"
    if b"%00" not in scope["query_string"]:
        return None
    given = parse_qsl(scope["query_string"].decode("latin-1"))
    return next((name for name, value in given if "\0" in value and name != "cursor"), None)


def _with_slashes(value: Any) -> Any:
    return value.replace(SLASH_IN_A_NAME, "/") if isinstance(value, str) else value
