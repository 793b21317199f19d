"""The web UI under /ui/: files of the package, also below the path prefix of a proxy. Unknown paths get the
page itself."""

from __future__ import annotations

import asyncio
import base64
import gzip
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from duetime.model.ids import random_bytes

BUILT = Path(__file__).resolve().parent.parent / "_ui"
PAGE = "index.html"
BASE_MARK, NONCE_MARK = '<base href="./" />', 'name="style-nonce" content=""'
MEDIA_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".html": "text/html",
    ".woff2": "font/woff2",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self'; "
    "font-src 'self'; connect-src 'self'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
ROOT_DEPTH = 2  # slashes in /ui/
IMMUTABLE = "public, max-age=31536000, immutable"  # the name of an asset contains a hash of its content
REVALIDATE = "no-cache"
NOT_BUILT = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Duetime</title><h1>The web UI is "
    "not part of this installation</h1>"
    "<p>In a checkout, <code>make ui</code> builds it; a wheel contains it. The API works "
    "without it: <a href=../docs>/docs</a>."
)


@dataclass(frozen=True, slots=True)
class Asset:
    content: bytes
    packed: bytes
    media_type: str
    tag: str


class Files:
    """The built files, read and compressed at their first request. Names come from the folder, never from a
    request."""

    def __init__(self, folder: Path = BUILT) -> None:
        found = (file for file in folder.rglob("*") if file.suffix in MEDIA_TYPES)
        self._known = {file.relative_to(folder).as_posix(): file for file in found}
        self._read: dict[str, Asset] = {}

    async def find(self, name: str) -> Asset | None:
        if name not in self._known:
            return None
        if name not in self._read:
            self._read[name] = await asyncio.to_thread(_load, self._known[name])
        return self._read[name]


def _load(file: Path) -> Asset:
    content = file.read_bytes()
    return Asset(
        content,
        gzip.compress(content, mtime=0),
        MEDIA_TYPES[file.suffix],
        f'"{sha256(content).hexdigest()[:20]}"',
    )


def router(files: Files) -> APIRouter:
    made = APIRouter(include_in_schema=False)

    async def enter() -> Response:
        return RedirectResponse("ui/")

    async def serve(request: Request, path: str) -> Response:
        page = await files.find(PAGE)
        if page is None:
            return HTMLResponse(NOT_BUILT, 503)
        asset = None if path in {"", PAGE} else await files.find(path)
        if asset is not None:
            return _file(request, path, asset)
        return (
            Response(status_code=404)
            if path.startswith("assets/")
            else _page(page, request.scope["raw_path"])
        )

    made.add_api_route("/", enter)
    made.add_api_route("/ui", enter)
    made.add_api_route("/ui/{path:path}", serve, methods=["GET", "HEAD"])
    return made


def _page(page: Asset, raw_path: bytes) -> Response:
    """The page, for every address of the UI. Its base is relative to that address, so no setting is
    needed."""
    nonce = base64.b64encode(random_bytes(16)).decode()
    base = "../" * (raw_path.partition(b"?")[0].count(b"/") - ROOT_DEPTH) or "./"
    text = (
        page.content.decode()
        .replace(BASE_MARK, f'<base href="{base}" />')
        .replace(NONCE_MARK, f'name="style-nonce" content="{nonce}"')
    )
    return HTMLResponse(text, headers={"Content-Security-Policy": POLICY.format(nonce=nonce)})


def _file(request: Request, path: str, asset: Asset) -> Response:
    headers = {
        "Cache-Control": IMMUTABLE if path.startswith("assets/") else REVALIDATE,
        "ETag": asset.tag,
        "Vary": "Accept-Encoding",
    }
    if request.headers.get("if-none-match") == asset.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(
            asset.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=asset.media_type
        )
    return Response(asset.content, headers=headers, media_type=asset.media_type)
