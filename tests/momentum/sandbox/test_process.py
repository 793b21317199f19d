"""The sandbox as a process: its state, scripted faults, pages and speed."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import aiohttp
import pytest

from momentum.model import Article, MediaKind
from momentum.platform import Attachment, OutcomeUnknown, PlatformError, Upload
from momentum.platforms.linkedin import LinkedIn
from tests.momentum.platforms.fixtures import (
    PNG,
    CountingMeter,
    Sandbox,
    SavedUploads,
    media_file,
    post_of,
    running_sandbox,
)


async def test_restart_keeps_accounts_and_posts(tmp_path: Path) -> None:
    with running_sandbox(tmp_path) as process:
        async with aiohttp.ClientSession() as http:
            sandbox = Sandbox(process.url, http)
            access = await sandbox.access()
            linkedin = LinkedIn(sandbox.settings())
            await linkedin.publish(access, post_of("Before"), [], CountingMeter())
            process.stop()
            process.start()
            await linkedin.publish(access, post_of("After"), [], CountingMeter())
            assert [post["text"] for post in await sandbox.posts()] == ["Before", "After"]
            await linkedin.close()


async def test_200_posts_take_a_small_part_of_a_minute(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    accesses = [await sandbox.access(f"m{number}") for number in range(10)]

    async def publish(count: int) -> float:
        began = time.monotonic()
        await asyncio.gather(
            *(
                linkedin.publish(
                    accesses[number % 10], post_of(f"Post {number} of {count}"), [], CountingMeter()
                )
                for number in range(count)
            )
        )
        return time.monotonic() - began

    few = await publish(10)
    assert await publish(200) < 15 + 20 * few, "on a busy machine a few take long, too"
    assert len({post["id"] for post in await sandbox.posts()}) == 210


async def outcomes(sandbox: Sandbox, linkedin: LinkedIn, members: list[str]) -> list[bool]:
    """Whether each post, by these members in order, was published without an error."""
    found = []
    for number, member in enumerate(members):
        try:
            await linkedin.publish(await sandbox.access(member), post_of(f"{number}"), [], CountingMeter())
            found.append(True)
        except PlatformError:
            found.append(False)
    return found


async def test_fault_is_for_one_author(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    await sandbox.faults("conflict", author="urn:li:person:b")
    assert await outcomes(sandbox, linkedin, ["a", "b", "a", "b"]) == [True, False, True, True]


async def test_fault_strikes_every_nth_request_after_some(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    await sandbox.faults("conflict", skip=1, every=2, times=2)
    found = await outcomes(sandbox, linkedin, ["a"] * 8)
    assert found == [True, True, False, True, False, True, True, True]


@pytest.mark.parametrize("kind", ["error_after", "reset_after"])
async def test_fault_after_accepting_leaves_the_post(sandbox: Sandbox, linkedin: LinkedIn, kind: str) -> None:
    await sandbox.faults(kind)
    with pytest.raises(OutcomeUnknown):
        await linkedin.publish(await sandbox.access(), post_of("Hello"), [], CountingMeter())
    assert [post["text"] for post in await sandbox.posts()] == ["Hello"]


@pytest.mark.parametrize(
    ("body", "named"), [({"kind": "no such"}, "'no such'"), ({"kind": "slow", "path": "x"}, "path")]
)
async def test_unknown_fault_is_refused(sandbox: Sandbox, body: dict[str, str], named: str) -> None:
    async with sandbox.http.post(f"{sandbox.url}/sandbox/faults", json=body) as response:
        assert response.status == 422
        assert named in await response.text()


async def test_unknown_setting_is_refused(sandbox: Sandbox) -> None:
    async with sandbox.http.post(f"{sandbox.url}/sandbox/settings", json={"limit": 1}) as response:
        assert response.status == 422
        assert "member_daily_limit" in await response.text()


async def test_feed_shows_posts_as_readers_see_them(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access, file, upload = await sandbox.access("x_1"), media_file(MediaKind.IMAGE, PNG), Upload()
    await linkedin.upload(access, file, upload, SavedUploads(), CountingMeter())
    picture = Attachment(file.media, str(upload.asset), alt_text="A <picture>")
    published = await linkedin.publish(access, post_of("Hi <b> #tag_1"), [picture], CountingMeter())
    article = Article("https://x.org/?a=1&b=2", "A title")
    await linkedin.publish(access, post_of("Read", article=article), [], CountingMeter())
    async with sandbox.http.get(f"{sandbox.url}/feed") as response:
        page = await response.text()
    assert 'Hi &lt;b&gt; <span class="hashtag">#tag_1</span>' in page
    assert 'alt="A &lt;picture&gt;"' in page
    assert "https://x.org/?a=1&amp;b=2" in page
    async with sandbox.http.get(f"{sandbox.url}/files/{upload.asset}") as response:
        assert (response.content_type, await response.read()) == ("image/png", PNG)
    assert published.url is not None
    async with sandbox.http.get(published.url) as response:
        assert "#tag_1" in await response.text()
    async with sandbox.http.get(f"{sandbox.url}/feed/update/urn:li:share:1/") as response:
        assert response.status == 404


async def test_consent_page_refuses_a_foreign_app(sandbox: Sandbox) -> None:
    query = {
        "client_id": "other",
        "redirect_uri": "https://x.org",
        "response_type": "code",
        "scope": "openid",
    }
    for fields in (query, {**query, "client_id": "momentum", "redirect_uri": "http://x.org"}):
        async with sandbox.http.get(f"{sandbox.url}/oauth/v2/authorization", params=fields) as response:
            assert response.status == 400
