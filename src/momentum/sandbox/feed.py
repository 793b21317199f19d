"""The published posts as a feed, for the demo."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from hashlib import sha256

from aiohttp import web

from momentum.sandbox.little_text import read
from momentum.sandbox.media import Media
from momentum.sandbox.pages import Card, error_page, feed_page, picture
from momentum.sandbox.state import State

SHOWN = 100
TYPES = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG": "image/png",
    b"GIF8": "image/gif",
    b"%PDF": "application/pdf",
}


class Feed:
    def __init__(self, state: State, media: Media) -> None:
        self._state, self._media = state, media

    async def home(self, request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "/feed"})

    async def page(self, request: web.Request) -> web.Response:
        """The newest posts."""
        rows = self._state.all(
            "SELECT * FROM posts WHERE deleted = 0 ORDER BY created_at DESC, urn DESC LIMIT ?", SHOWN
        )
        return self._shown(rows)

    async def one(self, request: web.Request) -> web.Response:
        """The address of a post, as LinkedIn has it."""
        rows = self._state.all("SELECT * FROM posts WHERE urn = ? AND deleted = 0", request.match_info["urn"])
        if not rows:
            return web.Response(
                text=error_page("This post is not there"), status=404, content_type="text/html"
            )
        return self._shown(rows)

    async def file(self, request: web.Request) -> web.StreamResponse:
        asset = self._state.one("SELECT * FROM assets WHERE urn = ?", request.match_info["urn"])
        if asset is None or asset["sent_at"] is None:
            raise web.HTTPNotFound
        path = self._media.path(asset["urn"])
        with path.open("rb") as content:
            head = content.read(16)
        kind = next((kind for start, kind in TYPES.items() if head.startswith(start)), "video/mp4")
        return web.FileResponse(path, headers={"Content-Type": kind})

    async def picture(self, request: web.Request) -> web.Response:
        member = request.match_info["member"]
        name, _ = self._state.author_name(f"urn:li:person:{member}")
        hue = sha256(member.encode()).digest()[0] * 360 // 256
        return web.Response(text=picture(name, hue), content_type="image/svg+xml")

    def _shown(self, rows: Sequence[sqlite3.Row]) -> web.Response:
        page = feed_page([self._card(row) for row in rows])
        return web.Response(text=page, content_type="text/html")

    def _card(self, row: sqlite3.Row) -> Card:
        name, headline = self._state.author_name(row["author"])
        body = json.loads(row["body"])
        return Card(
            urn=row["urn"],
            author=row["author"].rsplit(":", 1)[-1],
            name=name,
            headline=headline,
            created_at=row["created_at"],
            segments=read(row["commentary"]).segments,
            content=body.get("content") or {},
        )
