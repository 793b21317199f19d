"""The local LinkedIn answers as LinkedIn does, also to requests that Momentum never makes."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from yarl import URL

from momentum.platform import Access
from tests.momentum.platforms.fixtures import PNG, Sandbox

HEADERS = {"LinkedIn-Version": "202609", "X-Restli-Protocol-Version": "2.0.0"}
FIELDS = ("author", "commentary", "visibility", "distribution", "lifecycleState")


def body_of(access: Access, commentary: str = "Hello", **fields: Any) -> dict[str, Any]:
    return {
        "author": access.author.urn,
        "commentary": commentary,
        "visibility": "PUBLIC",
        "distribution": {"feedDistribution": "MAIN_FEED"},
        "lifecycleState": "PUBLISHED",
        **fields,
    }


async def call(
    sandbox: Sandbox,
    access: Access,
    method: str,
    path: str,
    headers: dict[str, str] | None = None,
    **body: Any,
) -> tuple[int, Any, aiohttp.ClientResponse]:
    sent = {"Authorization": f"Bearer {access.token}", **(HEADERS if headers is None else headers)}
    url = URL(f"{sandbox.url}{path}", encoded=True)
    async with sandbox.http.request(method, url, headers=sent, **body) as response:
        content = await response.read()
        return response.status, await response.json() if content else None, response


async def test_created_post_has_an_empty_body(sandbox: Sandbox) -> None:
    access = await sandbox.access()
    status, answer, response = await call(sandbox, access, "POST", "/rest/posts", json=body_of(access))
    assert (status, answer) == (201, None)
    assert response.headers["x-restli-id"].startswith("urn:li:share:")


@pytest.mark.parametrize("missing", [FIELDS, ("visibility",)])
async def test_missing_fields_are_listed(sandbox: Sandbox, missing: tuple[str, ...]) -> None:
    access = await sandbox.access()
    body = {name: value for name, value in body_of(access).items() if name not in missing}
    status, answer, _ = await call(sandbox, access, "POST", "/rest/posts", json=body)
    assert status == 422
    assert answer["message"].splitlines() == [
        f"ERROR :: /{name} :: field is required but not found and has no default value" for name in missing
    ]


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"visibility": "FRIENDS"}, 422, None),
        ({"author": "urn:li:share:1"}, 400, "INVALID_URN_TYPE"),
        ({"author": "urn:li:person:another"}, 403, "ACCESS_DENIED"),
        ({"author": "urn:li:organization:1"}, 403, "ACCESS_DENIED"),
        ({"content": {"media": {"id": "urn:li:image:x"}}}, 400, "INVALID_IMAGE_ID"),
        ({"content": {"media": {"id": "urn:li:video:x"}}}, 400, "INVALID_VIDEO_ID"),
        ({"content": {"article": {"source": "no url", "title": "x"}}}, 400, "INVALID_URL"),
        ({"content": {"multiImage": {"images": [{"id": "urn:li:image:x"}]}}}, 422, None),
        ({"content": {"media": {}, "article": {}}}, 422, None),
        ({"commentary": "\\_" * 3001}, 400, "FIELD_LENGTH_TOO_LONG"),
    ],
)
async def test_wrong_fields_are_refused(
    sandbox: Sandbox, fields: dict[str, Any], status: int, code: str | None
) -> None:
    access = await sandbox.access()
    answer = await call(sandbox, access, "POST", "/rest/posts", json=body_of(access, **fields))
    assert (answer[0], answer[1].get("code")) == (status, code)
    assert await sandbox.posts() == []


async def test_body_must_be_json(sandbox: Sandbox) -> None:
    access = await sandbox.access()
    status, answer, _ = await call(sandbox, access, "POST", "/rest/posts", data=b"{")
    assert (status, answer["message"]) == (400, "Request body could not be converted to data map")


async def test_unescaped_character_cuts_the_post_off_silently(sandbox: Sandbox) -> None:
    access = await sandbox.access()
    body = body_of(access, "See (this) now")
    assert (await call(sandbox, access, "POST", "/rest/posts", json=body))[0] == 201
    [post] = await sandbox.posts()
    assert (post["text"], post["truncated"]) == ("See ", True)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 400, "VERSION_MISSING"),
        ({**HEADERS, "LinkedIn-Version": "202501"}, 426, "NONEXISTENT_VERSION"),
        ({**HEADERS, "LinkedIn-Version": "202512"}, 426, "NONEXISTENT_VERSION"),
        ({"LinkedIn-Version": "202609"}, 400, "ILLEGAL_ARGUMENT"),
        ({**HEADERS, "Authorization": ""}, 401, "EMPTY_ACCESS_TOKEN"),
        ({**HEADERS, "Authorization": "Bearer no"}, 401, "INVALID_ACCESS_TOKEN"),
    ],
)
async def test_headers_are_required(
    sandbox: Sandbox, headers: dict[str, str], status: int, code: str
) -> None:
    access = await sandbox.access()
    answer = await call(sandbox, access, "POST", "/rest/posts", headers, json=body_of(access))
    assert (answer[0], answer[1]["code"]) == (status, code)


async def test_userinfo_has_no_version(sandbox: Sandbox) -> None:
    status, answer, _ = await call(sandbox, await sandbox.access("x_1"), "GET", "/v2/userinfo", {})
    assert (status, answer["sub"]) == (200, "x_1")


async def test_urn_in_a_path_must_be_encoded(sandbox: Sandbox) -> None:
    access = await sandbox.access(organization=7)
    _, _, response = await call(sandbox, access, "POST", "/rest/posts", json=body_of(access))
    urn = response.headers["x-restli-id"]
    assert (await call(sandbox, access, "GET", f"/rest/posts/{urn}"))[0] == 400
    encoded = urn.replace(":", "%3A")
    assert (await call(sandbox, access, "GET", f"/rest/posts/{encoded}"))[1]["id"] == urn
    assert (await call(sandbox, access, "GET", "/rest/posts/urn%3Ali%3Ashare%3A1"))[0] == 404


async def test_members_token_cannot_read(sandbox: Sandbox) -> None:
    access = await sandbox.access()
    _, _, response = await call(sandbox, access, "POST", "/rest/posts", json=body_of(access))
    urn = response.headers["x-restli-id"].replace(":", "%3A")
    author = access.author.urn.replace(":", "%3A")
    assert (await call(sandbox, access, "GET", f"/rest/posts/{urn}"))[0] == 403
    assert (await call(sandbox, access, "GET", f"/rest/posts?q=author&author={author}"))[0] == 403
    begin = {"initializeUploadRequest": {"owner": access.author.urn}}
    _, answer, _ = await call(sandbox, access, "POST", "/rest/images?action=initializeUpload", json=begin)
    image = answer["value"]["image"].replace(":", "%3A")
    assert (await call(sandbox, access, "GET", f"/rest/images/{image}"))[0] == 403


async def test_deleted_post_can_be_deleted_again_and_posted_again(sandbox: Sandbox) -> None:
    access = await sandbox.access()
    _, _, response = await call(sandbox, access, "POST", "/rest/posts", json=body_of(access))
    urn = response.headers["x-restli-id"].replace(":", "%3A")
    assert (await call(sandbox, access, "DELETE", f"/rest/posts/{urn}"))[0] == 204
    assert (await call(sandbox, access, "DELETE", f"/rest/posts/{urn}"))[0] == 204
    assert (await call(sandbox, access, "POST", "/rest/posts", json=body_of(access)))[0] == 201


async def test_duplicate_is_per_author(sandbox: Sandbox) -> None:
    for member in ("one", "two"):
        access = await sandbox.access(member)
        assert (await call(sandbox, access, "POST", "/rest/posts", json=body_of(access)))[0] == 201
        status, answer, _ = await call(sandbox, access, "POST", "/rest/posts", json=body_of(access))
        assert (status, answer["errorDetails"]["inputErrors"][0]["code"]) == (422, "DUPLICATE_POST")
    assert len(await sandbox.posts()) == 2


async def test_daily_limits_count_requests(sandbox: Sandbox) -> None:
    await sandbox.change(member_daily_limit=2, app_daily_limit=4)
    one, two, three = [await sandbox.access(name) for name in ("one", "two", "three")]
    answers = [
        await call(sandbox, access, "POST", "/rest/posts", json=body_of(access, str(number)))
        for number, access in enumerate([one, one, one, two, three])
    ]
    assert [answer[0] for answer in answers] == [201, 201, 429, 201, 429]
    assert "APPLICATION_AND_MEMBER DAY" in answers[2][1]["message"]
    assert "APPLICATION DAY" in answers[4][1]["message"]
    assert "Retry-After" not in answers[2][2].headers


async def begun_upload(sandbox: Sandbox, access: Access, kind: str, **fields: Any) -> dict[str, Any]:
    request = {"initializeUploadRequest": {"owner": access.author.urn, **fields}}
    status, answer, _ = await call(
        sandbox, access, "POST", f"/rest/{kind}?action=initializeUpload", json=request
    )
    assert status == 200
    return dict(answer["value"])


async def test_upload_url_is_signed_and_wants_a_length(sandbox: Sandbox) -> None:
    access = await sandbox.access()
    url = (await begun_upload(sandbox, access, "images"))["uploadUrl"]

    async def put(url: str, data: Any) -> int:
        async with sandbox.http.put(URL(url, encoded=True), data=data) as response:
            return response.status

    async def chunks() -> Any:
        yield PNG

    assert await put(url[:-1] + ("0" if url[-1] != "0" else "1"), PNG) == 403
    assert await put(url, chunks()) == 400
    assert await put(url, PNG) == 201


async def test_video_ranges_cover_the_file(sandbox: Sandbox) -> None:
    size = 10 * 1024 * 1024 + 1
    value = await begun_upload(sandbox, await sandbox.access(), "videos", fileSizeBytes=size)
    ranges = [(each["firstByte"], each["lastByte"]) for each in value["uploadInstructions"]]
    assert ranges == [(0, 4194303), (4194304, 8388607), (8388608, 10485760)]


async def test_part_must_have_the_size_of_its_range(sandbox: Sandbox) -> None:
    value = await begun_upload(sandbox, await sandbox.access(), "videos", fileSizeBytes=100_000)
    url = URL(value["uploadInstructions"][0]["uploadUrl"], encoded=True)
    async with sandbox.http.put(url, data=b"x" * 99_999) as response:
        assert response.status == 400
