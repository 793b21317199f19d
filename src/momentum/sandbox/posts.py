"""Posts: what LinkedIn checks, what it refuses, and what it silently cuts off."""

from __future__ import annotations

import json
import sqlite3
import time
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from momentum.sandbox import answers
from momentum.sandbox.gateway import Caller, body_of, urn_of
from momentum.sandbox.little_text import read
from momentum.sandbox.media import Media
from momentum.sandbox.members import check_may_write, manages
from momentum.sandbox.state import State

REQUIRED = ("author", "commentary", "visibility", "distribution", "lifecycleState")
CHOICES = {
    "visibility": ("PUBLIC", "CONNECTIONS", "LOGGED_IN"),
    "lifecycleState": ("PUBLISHED", "DRAFT"),
}
MAX_TEXT = 3000
INVALID_ASSET = {"image": "INVALID_IMAGE_ID", "video": "INVALID_VIDEO_ID", "document": "INVALID_URN_ID"}


class Posts:
    def __init__(self, state: State, media: Media) -> None:
        self._state, self._media = state, media
        self._last_number = 0

    async def create(self, request: web.Request, caller: Caller) -> web.Response:
        body = await body_of(request)
        _check_fields(body)
        check_may_write(self._state, caller, body["author"])
        if len(read(body["commentary"]).typed) > MAX_TEXT:
            message = f"The commentary is longer than {MAX_TEXT} characters"
            raise answers.bad_request("FIELD_LENGTH_TOO_LONG", message)
        kind = self._check_content(body["author"], body.get("content") or {})
        digest = _digest(body)
        self._check_duplicate(digest)
        urn = self._new_urn("ugcPost" if kind == "video" else "share")
        self._state.run(
            "INSERT INTO posts VALUES (?, ?, ?, ?, ?, ?, 0)",
            urn,
            body["author"],
            body["commentary"],
            json.dumps(body),
            digest,
            time.time(),
        )
        return web.Response(status=201, headers={"x-restli-id": urn})

    async def find(self, request: web.Request, caller: Caller) -> web.Response:
        author = request.query.get("author", "")
        if request.query.get("q") != "author" or "author=urn:" in request.raw_path:
            raise answers.bad_request("ILLEGAL_ARGUMENT", "The finder must be author, with an encoded URN")
        self._check_may_read(caller, author)
        start, count = int(request.query.get("start", 0)), int(request.query.get("count", 10))
        rows = self._state.all(
            "SELECT * FROM posts WHERE author = ? AND deleted = 0 ORDER BY created_at DESC LIMIT ? OFFSET ?",
            author,
            count,
            start,
        )
        return web.json_response({"elements": [_view(row) for row in rows]})

    async def look_up(self, request: web.Request, caller: Caller) -> web.Response:
        row = self._post(urn_of(request))
        self._check_may_read(caller, row["author"])
        return web.json_response(_view(row))

    async def delete(self, request: web.Request, caller: Caller) -> web.Response:
        row = self._state.one("SELECT * FROM posts WHERE urn = ?", urn_of(request))
        if row is not None:  # deleting twice is not an error
            check_may_write(self._state, caller, row["author"])
            self._state.run("UPDATE posts SET deleted = 1 WHERE urn = ?", row["urn"])
        return web.Response(status=204)

    def _check_may_read(self, caller: Caller, author: str) -> None:
        """Members cannot read their own posts: LinkedIn does not give that scope to new apps."""
        if not author.startswith("urn:li:organization:"):
            raise answers.forbidden()
        caller.require("r_organization_social")
        if not manages(self._state, caller, author):
            raise answers.forbidden()

    def _check_content(self, author: str, content: dict[str, Any]) -> str:
        """The kind of the content."""
        if len(content) > 1:
            raise answers.invalid_fields(["ERROR :: /content :: union must have one member"])
        match content:
            case {"media": {"id": asset, **fields}}:
                kind = self._check_asset(author, asset)
                if kind == "document" and not fields.get("title"):
                    raise answers.invalid_fields([answers.missing_field("/content/media/title")])
                return kind
            case {"multiImage": {"images": [_, _, *_] as images}} if len(images) <= 20:
                for image in images:
                    if self._check_asset(author, image.get("id", "")) != "image":
                        raise answers.bad_request("INVALID_IMAGE_ID", "multiImage has only images")
                return "images"
            case {"article": {"source": source, "title": str(), **fields}}:
                if urlsplit(source).scheme not in ("http", "https"):
                    raise answers.bad_request("INVALID_URL", "article source is not a URL")
                if "thumbnail" in fields:
                    self._check_asset(author, str(fields["thumbnail"]))
                return "article"
            case {} if not content:
                return "text"
        raise answers.invalid_fields(["ERROR :: /content :: is not a valid content"])

    def _check_asset(self, author: str, urn: str) -> str:
        asset = self._state.one("SELECT * FROM assets WHERE urn = ?", urn)
        if asset is None or asset["owner"] != author:
            code = next(
                (code for kind, code in INVALID_ASSET.items() if f":{kind}:" in urn), "INVALID_URN_TYPE"
            )
            raise answers.bad_request(code, f"{urn} is not an asset of the author")
        match self._media.status(asset):
            case "WAITING_UPLOAD" | "PROCESSING":
                raise answers.bad_request("MEDIA_ASSET_WAITING_UPLOAD", f"{urn} is not available yet")
            case "PROCESSING_FAILED":
                raise answers.bad_request("MEDIA_ASSET_PROCESSING_FAILED", f"{urn} could not be processed")
        return str(asset["kind"])

    def _check_duplicate(self, digest: str) -> None:
        since = time.time() - self._state.setting("duplicate_seconds")
        row = self._state.one(
            "SELECT urn FROM posts WHERE digest = ? AND created_at > ? AND deleted = 0", digest, since
        )
        if row is not None:
            raise answers.duplicate(row["urn"])

    def _post(self, urn: str) -> sqlite3.Row:
        row = self._state.one("SELECT * FROM posts WHERE urn = ? AND deleted = 0", urn)
        if row is None:
            raise answers.not_found("Post")
        return row

    def _new_urn(self, kind: str) -> str:
        self._last_number = max(self._last_number + 1, time.time_ns() // 1000)
        return f"urn:li:{kind}:{7_000_000_000_000_000_000 + self._last_number}"


def _check_fields(body: dict[str, Any]) -> None:
    messages = [answers.missing_field(f"/{name}") for name in REQUIRED if body.get(name) is None]
    for name, choices in CHOICES.items():
        if body.get(name) is not None and body[name] not in choices:
            messages.append(f"ERROR :: /{name} :: {body[name]!r} is not an enum symbol")
    if messages:
        raise answers.invalid_fields(messages)


def _digest(body: dict[str, Any]) -> str:
    identity = [body["author"], body["commentary"], body.get("content")]
    return sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _view(row: sqlite3.Row) -> dict[str, Any]:
    created_at = round(row["created_at"] * 1000)
    times = {"createdAt": created_at, "publishedAt": created_at, "lastModifiedAt": created_at}
    return {"id": row["urn"], **json.loads(row["body"]), **times}
