"""Images, documents and videos: signed upload URLs, parts with ETags, and processing that takes time."""

from __future__ import annotations

import hmac
import secrets
import sqlite3
import time
from hashlib import md5, sha256
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

from aiohttp import web

from momentum.sandbox import answers
from momentum.sandbox.gateway import Caller, Gateway, body_of, urn_of
from momentum.sandbox.members import check_may_write

# How a file of each kind begins: what LinkedIn cannot read fails in processing.
SIGNATURES: dict[str, dict[int, tuple[bytes, ...]]] = {
    "image": {0: (b"\xff\xd8\xff", b"\x89PNG", b"GIF8")},
    "document": {0: (b"%PDF", b"PK\x03\x04", b"\xd0\xcf\x11\xe0")},
    "video": {4: (b"ftyp",)},
}


class Media:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._state = gateway, gateway.state

    async def begin(self, request: web.Request, caller: Caller) -> web.Response:
        """`?action=initializeUpload` and, for videos, `?action=finalizeUpload`."""
        kind = request.match_info["kind"].removesuffix("s")
        body = await body_of(request)
        match request.query.get("action"):
            case "initializeUpload":
                return self._initialize(request, caller, kind, body.get("initializeUploadRequest") or {})
            case "finalizeUpload" if kind == "video":
                return self._finalize(caller, body.get("finalizeUploadRequest") or {})
        raise answers.bad_request("ILLEGAL_ARGUMENT", "The action is not known")

    async def look_up(self, request: web.Request, caller: Caller) -> web.Response:
        asset = self._asset(urn_of(request))
        check_may_write(self._state, caller, asset["owner"])
        # A member's token may write images and documents and not read them.
        if asset["kind"] != "video" and asset["owner"].startswith("urn:li:person:"):
            raise answers.forbidden()
        answer = {"id": asset["urn"], "owner": asset["owner"], "status": self.status(asset)}
        if answer["status"] == "PROCESSING_FAILED":
            answer["processingFailureReason"] = asset["failure"]
        return web.json_response(answer)

    async def receive(self, request: web.Request) -> web.Response:
        """The bytes of a file, or of one part of a video."""
        urn, number = request.match_info["asset"], int(request.match_info["number"])
        asset = self._asset(urn)
        self._check_signature(request, urn, number)
        self._gateway.count(asset["owner"].rsplit(":", 1)[-1])
        if request.content_length is None:
            raise answers.bad_request("ILLEGAL_ARGUMENT", "Chunked uploads are not supported")
        part = self._state.one("SELECT * FROM parts WHERE urn = ? AND number = ?", urn, number)
        assert part is not None
        if part["last"] is not None and request.content_length != part["last"] - part["first"] + 1:
            raise answers.bad_request("ILLEGAL_ARGUMENT", "The part does not have the size of its range")
        etag = await _store(request, self.path(urn), part["first"])
        self._state.run(
            "UPDATE parts SET etag = ?, times = times + 1 WHERE urn = ? AND number = ?", etag, urn, number
        )
        if asset["kind"] != "video":
            self._complete(asset)
        return web.Response(status=201, headers={"ETag": f'"{etag}"'})

    def status(self, asset: sqlite3.Row) -> str:
        if asset["sent_at"] is None:
            return "WAITING_UPLOAD"
        if time.time() < asset["sent_at"] + self._state.setting("processing_seconds"):
            return "PROCESSING"
        return "PROCESSING_FAILED" if asset["failure"] else "AVAILABLE"

    def path(self, urn: str) -> Path:
        return self._state.files / urn.rsplit(":", 1)[-1]

    def _initialize(
        self, request: web.Request, caller: Caller, kind: str, fields: dict[str, Any]
    ) -> web.Response:
        owner = str(fields.get("owner") or "")
        if not owner or (kind == "video" and not fields.get("fileSizeBytes")):
            name = "fileSizeBytes" if owner else "owner"
            raise answers.bad_request("MISSING_FIELD", f"{name} is required")
        check_may_write(self._state, caller, owner)
        urn = f"urn:li:{kind}:D4E10AQ{secrets.token_urlsafe(12)}"
        size = int(fields.get("fileSizeBytes") or 0) or None
        token = secrets.token_urlsafe(8) if kind == "video" else ""
        self._state.run(
            "INSERT INTO assets VALUES (?, ?, ?, ?, ?, ?, NULL, NULL)",
            urn,
            kind,
            owner,
            size,
            token,
            time.time(),
        )
        step = self._state.setting("part_bytes")
        ranges = (
            [(first, min(first + step, size) - 1) for first in range(0, size, step)] if size else [(0, None)]
        )
        for number, (first, last) in enumerate(ranges):
            self._state.run("INSERT INTO parts VALUES (?, ?, ?, ?, NULL, 0)", urn, number, first, last)
        expires = int(time.time() + self._state.setting("upload_url_seconds"))
        urls = [self._signed(request, urn, number, expires) for number in range(len(ranges))]
        value: dict[str, Any] = {kind: urn}
        if kind == "video":
            value |= {"uploadUrlsExpireAt": expires * 1000, "uploadToken": token}
            value["uploadInstructions"] = [
                {"uploadUrl": url, "firstByte": first, "lastByte": last}
                for url, (first, last) in zip(urls, ranges, strict=True)
            ]
        else:
            value |= {"uploadUrlExpiresAt": expires * 1000, "uploadUrl": urls[0]}
        return web.json_response({"value": value})

    def _finalize(self, caller: Caller, fields: dict[str, Any]) -> web.Response:
        asset = self._asset(str(fields.get("video")))
        check_may_write(self._state, caller, asset["owner"])
        etags = [
            row["etag"]
            for row in self._state.all("SELECT etag FROM parts WHERE urn = ? ORDER BY number", asset["urn"])
        ]
        if asset["sent_at"] is not None:
            raise answers.bad_request("ILLEGAL_ARGUMENT", "The upload is finalized already")
        if fields.get("uploadToken") != asset["upload_token"] or fields.get("uploadedPartIds") != etags:
            raise answers.bad_request("ILLEGAL_ARGUMENT", "uploadToken or uploadedPartIds do not match")
        self._complete(asset)
        return web.Response(status=200)

    def _complete(self, asset: sqlite3.Row) -> None:
        failure = None if _is_readable(asset["kind"], self.path(asset["urn"])) else "INVALID_FORMAT"
        self._state.run(
            "UPDATE assets SET sent_at = ?, failure = ? WHERE urn = ?", time.time(), failure, asset["urn"]
        )

    def _asset(self, urn: str) -> sqlite3.Row:
        row = self._state.one("SELECT * FROM assets WHERE urn = ?", urn)
        if row is None:
            raise answers.not_found("Asset")
        return row

    def _signed(self, request: web.Request, urn: str, number: int, expires: int) -> str:
        path = f"{request.url.origin()}/dms-uploads/{quote(urn, safe='')}/{number}"
        return f"{path}?expires={expires}&signature={self._signature(urn, number, expires)}"

    def _signature(self, urn: str, number: int, expires: int) -> str:
        message = f"{urn} {number} {expires}".encode()
        return hmac.new(self._state.signing_key(), message, sha256).hexdigest()

    def _check_signature(self, request: web.Request, urn: str, number: int) -> None:
        expires = int(request.query.get("expires", 0))
        if not hmac.compare_digest(request.query.get("signature", ""), self._signature(urn, number, expires)):
            raise answers.forbidden()
        if expires < time.time():
            raise answers.bad_request("EXPIRED_UPLOAD_URL", "The upload URL has expired")


async def _store(request: web.Request, path: Path, first: int) -> str:
    digest = md5(usedforsecurity=False)
    with _opened(path) as file:
        file.seek(first)
        async for chunk in request.content.iter_any():
            file.write(chunk)
            digest.update(chunk)
    return digest.hexdigest()


def _opened(path: Path) -> BinaryIO:
    """For writing anywhere in the file."""
    path.touch()
    return path.open("r+b")


def _is_readable(kind: str, path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(16)
    return any(head[position:].startswith(beginnings) for position, beginnings in SIGNATURES[kind].items())
