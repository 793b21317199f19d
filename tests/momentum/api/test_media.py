"""Files over HTTP: uploaded as a stream, shown in parts, within the quota."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from momentum.api.server import address_of, listen, serving
from momentum.api.service import build
from tests.momentum.api.scene import API, Client, Running
from tests.momentum.media import samples


async def test_file_is_read_back_whole_and_in_parts(client: Client) -> None:
    content = samples.mp4(9, size=200_000)

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 50_000):
            yield content[start : start + 50_000]

    stored = await client.call(
        "POST",
        "/media",
        201,
        data=parts(),
        params={"name": "über uns.mp4"},
        headers={"content-type": "text/html"},
    )
    assert (stored["kind"], stored["type"], stored["name"]) == ("video", "video/mp4", "über uns.mp4")
    assert (stored["seconds"], stored["size"]) == (9, len(content))
    assert await client.get(f"/media/{stored['id']}") == stored
    address = f"{client.service.address}{API}/media/{stored['id']}/content"
    async with client.http.get(address) as response:
        assert await response.read() == content
        assert response.headers["content-type"] == "video/mp4"
        assert response.headers["content-security-policy"] == "default-src 'none'; sandbox"
    for asked, expected in (
        ("bytes=0-99", content[:100]),
        ("bytes=100-", content[100:]),
        ("bytes=-50", content[-50:]),
        (f"bytes=10-{len(content) + 9}", content[10:]),
    ):
        async with client.http.get(address, headers={"Range": asked}) as response:
            assert response.status == 206
            assert await response.read() == expected
            assert response.headers["content-range"].endswith(f"/{len(content)}")
    async with client.http.get(address, headers={"Range": f"bytes={len(content)}-"}) as response:
        assert response.status == 416


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh", samples.pdf()[:100]])
async def test_file_that_cannot_be_published_is_refused(client: Client, content: bytes) -> None:
    answer = await client.upload(content, expect=422)
    assert [one["field"] for one in answer["problems"]] == ["media"]


async def test_quota_of_a_tenant(client: Client, service: Running) -> None:
    picture = samples.image()
    settings = replace(service.momentum.settings, media_quota=len(picture) + 10)
    listener = listen("127.0.0.1", 0)
    async with serving(build(replace(service.momentum, settings=settings)), listener):
        limited = replace(client, service=replace(service, address=address_of(listener)))
        await limited.upload(picture)
        answer = await limited.upload(picture, expect=422)
        assert [one["code"] for one in answer["problems"]] == ["media_too_large"]
        await client.upload(picture)  # elsewhere, where there is more
        assert (await limited.upload(picture, expect=413))["code"] == "media_quota"
