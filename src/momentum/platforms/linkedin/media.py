"""Files on their way to LinkedIn. The asset is saved before its first byte is sent, and a video's ETags after
each part: another process resumes there instead of creating a second asset.

`Upload.state`: once all bytes are there, `sent_at`. Before that, `expires_at` of the signed URLs, and for
images and documents `url`; for videos `token` and `parts`, each with `url`, `first`, `last` and, once sent,
`etag`. Instants are seconds since 1970.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

from momentum.model import AuthorKind, Media, MediaKind
from momentum.platform import Access, MediaFile, Meter, Rejected, SaveUpload, Upload
from momentum.platforms.linkedin.errors import UploadExpired
from momentum.platforms.linkedin.http import Http, encoded

RESOURCES = {MediaKind.IMAGE: "images", MediaKind.DOCUMENT: "documents", MediaKind.VIDEO: "videos"}
URL_SECONDS = 86_400  # of an upload URL whose end LinkedIn does not say
BINARY = {"Content-Type": "application/octet-stream"}


class MediaUploads:
    def __init__(self, http: Http) -> None:
        self._http = http

    async def upload(
        self, access: Access, file: MediaFile, upload: Upload, save: SaveUpload, meter: Meter
    ) -> None:
        if upload.sent:
            return
        send = self._send_video if file.media.kind is MediaKind.VIDEO else self._send_whole
        if upload.asset is None or time.time() >= upload.state["expires_at"]:
            await self._begin(access, file.media, upload, save, meter)
        try:
            await send(access, file, upload, save, meter)
        except UploadExpired:
            await self._begin(access, file.media, upload, save, meter)
            await send(access, file, upload, save, meter)
        upload.sent, upload.state = True, {"sent_at": time.time()}
        await save(upload)

    async def is_processed(self, access: Access, media: Media, upload: Upload, meter: Meter) -> bool:
        if upload.ready:
            return True
        if media.kind is not MediaKind.VIDEO and access.author.kind is AuthorKind.MEMBER:
            # A member's token may write images and documents, and not read them. If the time was too short,
            # the create call says so, and nothing is created.
            upload.ready = time.time() >= upload.state.get("sent_at", 0) + self._http.settings.grace
            return upload.ready
        status = await self._status(access, media, upload, meter)
        upload.ready = status == "AVAILABLE"
        return upload.ready

    async def _begin(
        self, access: Access, media: Media, upload: Upload, save: SaveUpload, meter: Meter
    ) -> None:
        request: dict[str, Any] = {"owner": access.author.urn}
        if media.kind is MediaKind.VIDEO:
            request |= {"fileSizeBytes": media.size, "uploadCaptions": False, "uploadThumbnail": False}
        value = await self._action(access, media, "initializeUpload", request, meter)
        upload.asset = value[media.kind.value]
        upload.state = _state(value)
        await save(upload)

    async def _send_whole(
        self, access: Access, file: MediaFile, upload: Upload, save: SaveUpload, meter: Meter
    ) -> None:
        """One PUT with a known length: LinkedIn corrupts a file that arrives in chunks."""
        await self._put(access, upload.state["url"], file.stream(), file.media.size, meter)

    async def _send_video(
        self, access: Access, file: MediaFile, upload: Upload, save: SaveUpload, meter: Meter
    ) -> None:
        parts = upload.state["parts"]
        for part in parts:
            if "etag" not in part:
                length = part["last"] - part["first"] + 1  # both are inclusive
                data = BytesIO(await file.read(part["first"], length))
                part["etag"] = await self._put(access, part["url"], data, length, meter)
                await save(upload)
        request = {
            "video": upload.asset,
            "uploadToken": upload.state["token"],
            "uploadedPartIds": [part["etag"] for part in parts],
        }
        try:
            await self._action(access, file.media, "finalizeUpload", request, meter)
        except Rejected:
            # The answer to an earlier finalize call may have been lost.
            if await self._status(access, file.media, upload, meter) == "WAITING_UPLOAD":
                raise

    async def _put(
        self, access: Access, url: str, data: BytesIO | AsyncIterator[bytes], length: int, meter: Meter
    ) -> str:
        await meter.spend()
        headers = {"Authorization": f"Bearer {access.token}", "Content-Length": str(length), **BINARY}
        answer = await self._http.call("PUT", url, headers=headers, data=data)
        return str(answer.headers.get("ETag", "")).strip('"')

    async def _action(
        self, access: Access, media: Media, action: str, request: dict[str, Any], meter: Meter
    ) -> Any:
        await meter.spend()
        path = f"{RESOURCES[media.kind]}?action={action}"
        answer = await self._http.rest("POST", path, access.token, {f"{action}Request": request})
        return answer.fields.get("value", {})

    async def _status(self, access: Access, media: Media, upload: Upload, meter: Meter) -> str:
        await meter.spend()
        assert upload.asset is not None
        answer = await self._http.rest(
            "GET", f"{RESOURCES[media.kind]}/{encoded(upload.asset)}", access.token
        )
        status = str(answer.fields.get("status", ""))
        if status == "PROCESSING_FAILED":
            reason = answer.fields.get("processingFailureReason") or "no reason given"
            text = f"LinkedIn cannot process {media.name} ({reason}). Use another file."
            raise Rejected(text, code="media_processing_failed", status=answer.status)
        return status


def _state(value: dict[str, Any]) -> dict[str, Any]:
    """Of a new upload. LinkedIn gives milliseconds, under different names for videos and other files."""
    expires_at = value.get("uploadUrlExpiresAt") or value.get("uploadUrlsExpireAt")
    state: dict[str, Any] = {"expires_at": expires_at / 1000 if expires_at else time.time() + URL_SECONDS}
    if "uploadUrl" in value:
        return state | {"url": value["uploadUrl"]}
    parts = [
        {"url": each["uploadUrl"], "first": each["firstByte"], "last": each["lastByte"]}
        for each in value["uploadInstructions"]
    ]
    return state | {"token": value.get("uploadToken", ""), "parts": parts}
