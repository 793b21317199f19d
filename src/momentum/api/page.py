"""The page: built files of the package, at `/`. Unknown addresses get the page itself, which has its own
routes."""

from __future__ import annotations

import asyncio
import gzip
import secrets
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from momentum.api.state import state_of
from momentum.errors import NotFound

BUILT = Path(__file__).resolve().parent.parent / "_ui"
PAGES = ("index.html", "momentum.html")
NONCE_MARK = 'name="style-nonce" content=""'
BASE_MARK = '<base href="./" />'
MEDIA_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".html": "text/html",
    ".woff2": "font/woff2",
}
# Pictures of accounts come from the platform; files are previewed before they are uploaded.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; font-src 'self'; "
    "img-src 'self' blob: https:{pictures}; media-src 'self' blob:; connect-src 'self'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
IMMUTABLE = "public, max-age=31536000, immutable"  # the name of an asset contains a hash of its content
NOT_BUILT = (
    "Momentum is running, but its page is not part of this installation.\n"
    "In a checkout, `make ui` builds it; a wheel contains it.\n"
    "The API works without it: /api/v1/status, and its description is at /api/v1/openapi.json.\n"
)


@dataclass(frozen=True, slots=True)
class PageAsset:
    content: bytes
    packed: bytes
    media_type: str
    tag: str


class PageFiles:
    """The built files, read at their first request. Names come from the folder, never from a request."""

    def __init__(self, folder: Path = BUILT) -> None:
        found = (file for file in folder.rglob("*") if file.suffix in MEDIA_TYPES)
        self._known = {file.relative_to(folder).as_posix(): file for file in found}
        self._read: dict[str, PageAsset] = {}
        self.page = next((name for name in PAGES if name in self._known), None)

    async def find(self, name: str) -> PageAsset | None:
        if name not in self._known:
            return None
        if name not in self._read:
            self._read[name] = await asyncio.to_thread(_load, self._known[name])
        return self._read[name]


def _load(file: Path) -> PageAsset:
    content = file.read_bytes()
    tag = f'"{sha256(content).hexdigest()[:20]}"'
    return PageAsset(content, gzip.compress(content, mtime=0), MEDIA_TYPES[file.suffix], tag)


def page_router(files: PageFiles) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    async def serve(request: Request, path: str) -> Response:
        if path.startswith("api/"):
            raise NotFound(f"there is nothing at /{path}")
        if files.page is None:
            return PlainTextResponse(NOT_BUILT, 503)
        asset = None if path in PAGES else await files.find(path)
        if asset is not None:
            return _file(request, path, asset)
        if path.startswith("assets/"):
            return Response(status_code=404)
        page = await files.find(files.page)
        assert page is not None
        return _page(page, request)

    router.add_api_route("/{path:path}", serve, methods=["GET", "HEAD"])
    return router


def _page(page: PageAsset, request: Request) -> Response:
    settings = state_of(request).settings
    nonce = secrets.token_urlsafe(16)
    web = urlsplit(settings.linkedin.web_url)
    pictures = f" {web.scheme}://{web.netloc}" if settings.demo else ""
    text = (
        page.content.decode()
        .replace(BASE_MARK, '<base href="/" />')
        .replace(NONCE_MARK, f'name="style-nonce" content="{nonce}"')
    )
    policy = POLICY.format(nonce=nonce, pictures=pictures)
    return Response(text, headers={"Content-Security-Policy": policy}, media_type="text/html")


def _file(request: Request, path: str, asset: PageAsset) -> Response:
    headers = {
        "Cache-Control": IMMUTABLE if path.startswith("assets/") else "no-cache",
        "ETag": asset.tag,
        "Vary": "Accept-Encoding",
    }
    if request.headers.get("if-none-match") == asset.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(asset.packed, headers=headers, media_type=asset.media_type)
    return Response(asset.content, headers=headers, media_type=asset.media_type)
