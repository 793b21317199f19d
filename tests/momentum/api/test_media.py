"""Files over HTTP: uploaded as a stream, shown in parts, within the quota."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from momentum.api.server import address_of, listen, serving
from momentum.api.service import build
from momentum.database import media
from tests.momentum.api.scene import API, Client, Running
from tests.momentum.api.test_server import own, until
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


class Slow:
    """The body of an upload that stops after its first half until it may go on."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.go_on = asyncio.Event()
        self.half_sent = asyncio.Event()

    async def chunks(self) -> AsyncIterator[bytes]:
        half = len(self._content) // 2
        yield self._content[:half]
        self.half_sent.set()
        await self.go_on.wait()
        yield self._content[half:]


async def test_parallel_uploads_do_not_pass_the_quota(client: Client, service: Running) -> None:
    """Two processes: each knows only the files that it receives itself, the database knows all."""
    content = samples.mp4(5, size=400_000)
    quota = 2 * len(content) + 1_000
    async with own(service, media_quota=quota) as one, own(service, media_quota=quota) as two:
        slow = [Slow(content) for _ in range(6)]
        addresses = [f"{(one if number % 2 else two).address}{API}/media" for number in range(6)]

        async def send(address: str, body: Slow) -> tuple[int, str]:
            async with client.http.post(address, data=body.chunks()) as response:
                answer = await response.json()
                return response.status, answer.get("code", "")

        async with asyncio.timeout(60):
            sent = [asyncio.create_task(send(*pair)) for pair in zip(addresses, slow, strict=True)]
            for each in slow:
                await each.half_sent.wait()
            for each in slow:
                each.go_on.set()
            found = sorted(await asyncio.gather(*sent))
        assert found == [(201, "")] * 2 + [(413, "media_quota")] * 4
        for state in (one.app.state.service, two.app.state.service):
            assert not state.incoming._bytes
            assert not state.uploads._open
    async with service.momentum.database.reading() as connection:
        assert await media.used(connection, client.tenant) == 2 * len(content)
    assert len(list((service.folder / "media" / client.tenant).iterdir())) == 2


async def test_uploads_of_one_tenant_are_limited(
    client: Client, other_client: Client, service: Running
) -> None:
    async with own(service) as server, asyncio.timeout(60):
        server.app.state.service.uploads.max_per_key = 1
        address, picture = f"{server.address}{API}/media", samples.image()
        slow = Slow(picture)

        async def status(caller: Client, data: Any) -> int:
            async with caller.http.post(address, data=data) as response:
                assert response.status != 429 or (await response.json())["code"] == "uploads_exhausted"
                return response.status

        first = asyncio.create_task(status(client, slow.chunks()))
        await slow.half_sent.wait()
        await until(lambda: server.app.state.service.uploads._open)
        assert await status(client, picture) == 429
        assert await status(other_client, picture) == 201
        slow.go_on.set()
        assert await first == 201
        assert await status(client, picture) == 201
