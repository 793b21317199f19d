"""What every call of the API passes: scripted faults, the token, the version header and the daily limits."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from aiohttp import web

from momentum.sandbox import answers
from momentum.sandbox.answers import Refusal
from momentum.sandbox.faults import Faults
from momentum.sandbox.state import State


@dataclass(frozen=True, slots=True)
class Caller:
    """The member that the token belongs to."""

    member: str
    scopes: frozenset[str]

    @property
    def urn(self) -> str:
        return f"urn:li:person:{self.member}"

    def require(self, scope: str) -> None:
        if scope not in self.scopes:
            raise answers.forbidden()


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Call = Callable[[web.Request, Caller], Awaitable[web.StreamResponse]]


class Gateway:
    def __init__(self, state: State, faults: Faults) -> None:
        self.state, self.faults = state, faults

    def open(self, name: str, handler: Handler) -> Handler:
        """A route that needs no token."""

        async def serve(request: web.Request) -> web.StreamResponse:
            return await self._with_faults(name, request, lambda: handler(request))

        return serve

    def api(self, name: str, call: Call, *, versioned: bool = True) -> Handler:
        """A route of the API."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            caller = self._caller(request)
            if versioned:
                self._check_version(request)
            self.count(caller.member)
            return await call(request, caller)

        return self.open(name, guarded)

    def count(self, member: str) -> None:
        """LinkedIn counts requests, also those that fail."""
        if self.state.count_request("") > self.state.setting("app_daily_limit"):
            raise answers.throttled(answers.APP_LIMIT)
        if self.state.count_request(member) > self.state.setting("member_daily_limit"):
            raise answers.throttled()

    async def _with_faults(
        self, name: str, request: web.Request, handler: Callable[[], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        fault = await self.faults.take(name, lambda: self._author(request))
        response: web.StreamResponse | None = await fault.before(request) if fault else None
        if response is None:
            response = await _answered(handler)
            if fault:
                response = await fault.after(request, response)
        response.headers["x-li-uuid"] = uuid4().hex
        response.headers["x-li-fabric"] = "sandbox"
        return response

    async def _author(self, request: web.Request) -> str:
        """The author or owner that a request is about."""
        asset = request.match_info.get("asset")
        if asset is not None:
            row = self.state.one("SELECT owner FROM assets WHERE urn = ?", asset)
            return row["owner"] if row else ""
        if "author" in request.query:
            return request.query["author"]
        body = await body_of(request) if request.can_read_body else {}
        return str(body.get("author") or body.get("initializeUploadRequest", {}).get("owner", ""))

    def _caller(self, request: web.Request) -> Caller:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        if not token:
            raise answers.empty_token()
        row = self.state.one("SELECT * FROM tokens WHERE token = ?", token)
        if row is None:
            raise answers.bad_token(65600)
        if row["revoked"]:
            raise answers.bad_token(65601)
        if row["expires_at"] <= time.time():
            raise answers.bad_token(65602)
        return Caller(row["member"], frozenset(row["scopes"].split()))

    def _check_version(self, request: web.Request) -> None:
        version = request.headers.get("LinkedIn-Version", "")
        if not version:
            message = "A version must be present. Please specify a version with the LinkedIn-Version header."
            raise answers.bad_request("VERSION_MISSING", message)
        if version not in self.state.setting("versions"):
            raise answers.dead_version(version)
        if request.headers.get("X-Restli-Protocol-Version") != "2.0.0":
            message = "X-Restli-Protocol-Version must be 2.0.0"
            raise answers.bad_request("ILLEGAL_ARGUMENT", message)


async def _answered(handler: Callable[[], Awaitable[web.StreamResponse]]) -> web.StreamResponse:
    try:
        return await handler()
    except Refusal as refusal:
        return refusal.response()


async def body_of(request: web.Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.read())
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise answers.bad_request("ILLEGAL_ARGUMENT", "Request body could not be converted to data map")
    return body


def urn_of(request: web.Request) -> str:
    """The URN at the end of the path. LinkedIn does not accept one whose colons are not encoded."""
    if ":" in request.raw_path.split("?")[0]:
        raise answers.bad_request("ILLEGAL_ARGUMENT", "Syntax exception in path variables")
    return request.match_info["urn"]
