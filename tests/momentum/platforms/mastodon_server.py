"""A local Mastodon: the part of its API that Momentum uses, over real HTTP."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from aiohttp.test_utils import TestServer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Fault = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]
MAX_TEXT = 500


class MastodonServer:
    def __init__(self) -> None:
        self.url = ""
        self.apps: dict[str, dict[str, str]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: dict[str, str] = {}  # token: client id
        self.media: dict[str, dict[str, Any]] = {}
        self.statuses: list[dict[str, Any]] = []
        self.keys: dict[str, dict[str, Any]] = {}
        self.scopes: str | None = None  # granted instead of those requested
        self.slow_processing = False
        self.max_characters: object = 500
        self.instance_requests = 0
        self.faults: dict[str, list[Fault]] = {}  # path: what happens to its next requests

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self._faulty])
        application.add_routes(
            [
                web.post("/api/v1/apps", self._register),
                web.get("/api/v2/instance", self._instance),
                web.post("/oauth/token", self._token),
                web.post("/oauth/revoke", self._revoke),
                web.get("/api/v1/accounts/verify_credentials", self._me),
                web.get("/api/v1/accounts/{id}/statuses", self._list),
                web.post("/api/v2/media", self._upload),
                web.get("/api/v1/media/{id}", self._media),
                web.put("/api/v1/media/{id}", self._describe),
                web.post("/api/v1/statuses", self._create),
                web.get("/api/v1/statuses/{id}/source", self._source),
            ]
        )
        return application

    def consent(self, query: dict[str, str]) -> str:
        """The member agrees in the browser; where the browser goes then."""
        app = self.apps[query["client_id"]]
        assert app["redirect_uris"] == query["redirect_uri"]
        assert query["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state']})}"

    @web.middleware
    async def _faulty(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        faults = self.faults.get(request.path, [])
        return await (faults.pop(0)(request, handler) if faults else handler(request))

    async def _instance(self, request: web.Request) -> web.Response:
        self.instance_requests += 1
        return web.json_response({"configuration": {"statuses": {"max_characters": self.max_characters}}})

    async def _register(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        client_id = f"client-{len(self.apps)}"
        self.apps[client_id] = {**form, "client_secret": f"secret-of-{client_id}"}
        return web.json_response({"id": "1", "client_id": client_id, **self.apps[client_id]})

    async def _token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        query = self.codes.pop(form["code"], None)
        challenge = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if query is None or query["code_challenge"] != challenge or query["client_id"] != form["client_id"]:
            return web.json_response({"error": "invalid_grant"}, status=400)
        if form["client_secret"] != self.apps[form["client_id"]]["client_secret"]:
            return web.json_response({"error": "invalid_client"}, status=401)
        token = f"token-{len(self.tokens)}"
        self.tokens[token] = form["client_id"]
        scope = query["scope"] if self.scopes is None else self.scopes
        return web.json_response({"access_token": token, "token_type": "Bearer", "scope": scope})

    async def _revoke(self, request: web.Request) -> web.Response:
        form = await request.post()
        if self.tokens.get(str(form["token"])) != form["client_id"]:
            return web.json_response({"error": "unauthorized_client"}, status=403)
        del self.tokens[str(form["token"])]
        return web.json_response({})

    async def _me(self, request: web.Request) -> web.Response:
        self._authorize(request)
        account = {"id": "42", "username": "ada", "display_name": "Ada", "avatar": f"{self.url}/ada.png"}
        return web.json_response(account)

    async def _upload(self, request: web.Request) -> web.Response:
        self._authorize(request)
        reader = await request.multipart()
        part = await reader.next()
        assert part is not None
        media_id = str(len(self.media) + 1)
        content = bytes(await part.read())  # type: ignore[union-attr]
        self.media[media_id] = {"id": media_id, "content": content, "description": None}
        status = 202 if self.slow_processing else 200
        return web.json_response({"id": media_id, "type": "image"}, status=status)

    async def _media(self, request: web.Request) -> web.Response:
        self._authorize(request)
        status = 206 if self.slow_processing else 200
        return web.json_response({"id": request.match_info["id"]}, status=status)

    async def _describe(self, request: web.Request) -> web.Response:
        self._authorize(request)
        self.media[request.match_info["id"]]["description"] = (await request.json())["description"]
        return web.json_response({"id": request.match_info["id"]})

    async def _create(self, request: web.Request) -> web.Response:
        self._authorize(request)
        body, key = await request.json(), request.headers["Idempotency-Key"]
        if key in self.keys:
            return web.json_response(self.keys[key])
        if len(body["status"]) > MAX_TEXT:
            text = "Validation failed: Text character limit of 500 exceeded"
            return web.json_response({"error": text}, status=422)
        if body["media_ids"] and self.slow_processing:
            text = "Cannot attach files that have not finished processing. Try again in a moment!"
            return web.json_response({"error": text}, status=422)
        number = str(1000 + len(self.statuses))
        created_at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        status = {"id": number, "url": f"{self.url}/@ada/{number}", "created_at": created_at, **body}
        self.statuses.append(status)
        self.keys[key] = status
        return web.json_response(status)

    async def _list(self, request: web.Request) -> web.Response:
        self._authorize(request)
        assert request.match_info["id"] == "42"
        before = int(request.query.get("max_id", 10**9))
        page = [status for status in reversed(self.statuses) if int(status["id"]) < before]
        return web.json_response(page[: int(request.query["limit"])])

    async def _source(self, request: web.Request) -> web.Response:
        self._authorize(request)
        [status] = [status for status in self.statuses if status["id"] == request.match_info["id"]]
        return web.json_response({"id": status["id"], "text": status["status"]})

    def _authorize(self, request: web.Request) -> None:
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
            raise web.HTTPUnauthorized(
                text='{"error": "The access token is invalid"}', content_type="application/json"
            )


def answer(status: int, error: str = "", headers: dict[str, str] | None = None) -> Fault:
    async def fault(request: web.Request, handler: Handler) -> web.StreamResponse:
        return web.json_response({"error": error}, status=status, headers=headers)

    return fault


def says(body: object) -> Fault:
    """A success with this body, and nothing is done."""

    async def fault(request: web.Request, handler: Handler) -> web.StreamResponse:
        return web.json_response(body)

    return fault


def raw(body: bytes, coding: str) -> Fault:
    async def fault(request: web.Request, handler: Handler) -> web.StreamResponse:
        headers = {} if coding == "identity" else {"Content-Encoding": coding}
        return web.Response(body=body, headers=headers, content_type="application/json")

    return fault


async def lost_answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The request has its effect, and the connection breaks."""
    response = await handler(request)
    assert request.transport is not None
    request.transport.abort()
    return response


def rate_limit(seconds: int) -> Fault:
    reset = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    return answer(429, "Too many requests", {"X-RateLimit-Reset": reset})


@asynccontextmanager
async def running_mastodon() -> AsyncIterator[MastodonServer]:
    mastodon = MastodonServer()
    async with TestServer(mastodon.application()) as server:
        mastodon.url = str(server.make_url("")).rstrip("/")
        yield mastodon
