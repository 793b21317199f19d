"""Every row of LinkedIn's error table, over HTTP: what it means for the post."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from momentum.model import MediaKind
from momentum.platform import (
    DuplicatePost,
    OutcomeUnknown,
    PlatformError,
    PlatformStopped,
    ReconnectNeeded,
    Rejected,
    Throttled,
    TryLater,
    Upload,
)
from momentum.platforms.linkedin import LinkedIn
from momentum.platforms.linkedin.errors import UploadExpired
from tests.momentum.platforms.fixtures import PNG, CountingMeter, Sandbox, SavedUploads, media_file, post_of


def coded(code: str) -> dict[str, Any]:
    return {"code": code, "message": f"it says {code}"}


PERMANENT = (
    "ILLEGAL_ARGUMENT",
    "INVALID_URN_TYPE",
    "INVALID_URN_ID",
    "INVALID_IMAGE_ID",
    "INVALID_VIDEO_ID",
    "MISSING_FIELD",
    "FIELD_LENGTH_TOO_LONG",
    "INVALID_URL",
    "VERSION_MISSING",
    "MEDIA_ASSET_PROCESSING_FAILED",
)
ROWS = [
    *[(400, coded(code), Rejected, code.lower()) for code in PERMANENT],
    (400, coded("MEDIA_ASSET_WAITING_UPLOAD"), TryLater, "media_processing"),
    (400, coded("EXPIRED_UPLOAD_URL"), UploadExpired, "upload_expired"),
    (401, {"serviceErrorCode": 65600, "message": "Invalid access token"}, ReconnectNeeded, "token_invalid"),
    (401, {"serviceErrorCode": 65601, "code": "REVOKED_ACCESS_TOKEN"}, ReconnectNeeded, "token_revoked"),
    (401, {"serviceErrorCode": 65602, "message": "expired"}, ReconnectNeeded, "token_expired"),
    (401, coded("EMPTY_ACCESS_TOKEN"), ReconnectNeeded, "token_refused"),
    (403, {"serviceErrorCode": 100, **coded("ACCESS_DENIED")}, Rejected, "access_denied"),
    (403, {"message": "The resource is forbidden"}, TryLater, "forbidden"),
    (404, coded("NOT_FOUND"), Rejected, "not_found"),
    (405, {}, Rejected, "status_405"),
    (409, coded("CONFLICT"), TryLater, "conflict"),
    (422, {"message": "ERROR :: /author :: field is required"}, Rejected, "status_422"),
    (426, coded("NONEXISTENT_VERSION"), PlatformStopped, "version_ended"),
    (429, {"serviceErrorCode": 101, "message": "Resource level throttle limit"}, Throttled, "daily_limit"),
]


@pytest.mark.parametrize(
    ("status", "body", "expected", "code"), ROWS, ids=[f"{row[0]}-{row[3]}" for row in ROWS]
)
async def test_refused_post(
    sandbox: Sandbox,
    linkedin: LinkedIn,
    status: int,
    body: dict[str, Any],
    expected: type[PlatformError],
    code: str,
) -> None:
    await sandbox.faults("answer", status=status, body=body)
    with pytest.raises(PlatformError) as caught:
        await linkedin.publish(await sandbox.access(), post_of("Hello"), [], CountingMeter())
    error = caught.value
    assert (type(error), error.code, error.status) == (expected, code, status)
    assert error.request_id is not None
    assert not isinstance(error, OutcomeUnknown)
    assert await sandbox.posts() == []


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408])
@pytest.mark.parametrize("kind", ["error_before", "error_after"])
async def test_unclear_answer_to_the_create_call_leaves_doubt(
    sandbox: Sandbox, linkedin: LinkedIn, kind: str, status: int
) -> None:
    await sandbox.faults(kind, status=status)
    with pytest.raises(OutcomeUnknown) as caught:
        await linkedin.publish(await sandbox.access(), post_of("Hello"), [], CountingMeter())
    assert caught.value.status == status
    assert len(await sandbox.posts()) == (kind == "error_after")


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_server_error_before_the_create_call_is_tried_later(
    sandbox: Sandbox, linkedin: LinkedIn, status: int
) -> None:
    await sandbox.faults("error_after", "images.begin", status=status)
    file, upload = media_file(MediaKind.IMAGE, PNG), Upload()
    with pytest.raises(TryLater) as caught:
        await linkedin.upload(await sandbox.access(), file, upload, SavedUploads(), CountingMeter())
    assert (caught.value.code, caught.value.status) == ("unavailable", status)
    assert not upload.sent


async def test_duplicate_names_the_first_post(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access = await sandbox.access()
    first = await linkedin.publish(access, post_of("Same words"), [], CountingMeter())
    with pytest.raises(DuplicatePost) as caught:
        await linkedin.publish(access, post_of("Same words"), [], CountingMeter())
    assert caught.value.existing == first
    assert (caught.value.code, caught.value.status) == ("duplicate_content", 422)
    assert len(await sandbox.posts()) == 1


async def test_duplicate_without_a_urn_is_still_a_duplicate(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    body = {"message": "no", "errorDetails": {"inputErrors": [{"code": "DUPLICATE_POST"}]}}
    await sandbox.faults("answer", status=422, body=body)
    with pytest.raises(DuplicatePost) as caught:
        await linkedin.publish(await sandbox.access(), post_of("Hello"), [], CountingMeter())
    assert caught.value.existing is None


@pytest.mark.parametrize(("kind", "whole_platform"), [("throttle_member", False), ("throttle_app", True)])
async def test_throttle_holds_until_midnight_utc(
    sandbox: Sandbox, linkedin: LinkedIn, kind: str, whole_platform: bool
) -> None:
    await sandbox.faults(kind)
    before = datetime.now(UTC)
    with pytest.raises(Throttled) as caught:
        await linkedin.publish(await sandbox.access(), post_of("Hello"), [], CountingMeter())
    assert caught.value.whole_platform is whole_platform
    assert caught.value.until.time() == datetime.min.time()
    assert timedelta() < caught.value.until - before <= timedelta(days=1)


@pytest.mark.parametrize("body", ["<html>Bad Gateway</html>", '["a list"]', '{"errorDetails": "text"}', ""])
async def test_unreadable_error_body_is_not_a_problem(sandbox: Sandbox, body: str) -> None:
    from aiohttp import web
    from aiohttp.test_utils import TestServer

    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=400, text=body, content_type="application/json")

    application = web.Application()
    application.router.add_post("/rest/posts", refuse)
    async with TestServer(application) as server:
        linkedin = LinkedIn(sandbox.settings(api_url=str(server.make_url("/"))))
        with pytest.raises(Rejected, match="LinkedIn"):
            await linkedin.publish(await sandbox.access(), post_of("Hello"), [], CountingMeter())
        await linkedin.close()
