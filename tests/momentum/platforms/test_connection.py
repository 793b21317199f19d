"""What a broken connection proves about the post."""

from __future__ import annotations

import asyncio

import pytest

from momentum.model import MediaKind
from momentum.platform import NotSent, OutcomeUnknown, TryLater, Upload
from momentum.platforms.linkedin import LinkedIn
from tests.momentum.platforms.fixtures import PNG, CountingMeter, Sandbox, SavedUploads, media_file, post_of
from tests.servers.process import free_port


@pytest.mark.parametrize(
    "api_url",
    [
        f"http://127.0.0.1:{free_port()}",
        "http://no-such-host.invalid",
        "https://{sandbox}",  # it does not speak TLS
        "http://a b",
    ],
    ids=["refused", "no name", "no TLS", "no URL"],
)
async def test_no_connection_proves_that_nothing_was_sent(sandbox: Sandbox, api_url: str) -> None:
    api_url = api_url.format(sandbox=sandbox.url.removeprefix("http://"))
    linkedin = LinkedIn(sandbox.settings(api_url=api_url))
    with pytest.raises(NotSent) as caught:
        await linkedin.publish(await sandbox.access(), post_of("Hello"), [], CountingMeter())
    assert caught.value.code == "no_connection"
    await linkedin.close()


@pytest.mark.parametrize(
    ("kind", "published"),
    [("timeout_after", 1), ("timeout_before", 0), ("reset_after", 1), ("reset_before", 0)],
)
async def test_lost_answer_to_the_create_call_leaves_doubt(
    sandbox: Sandbox, kind: str, published: int
) -> None:
    linkedin = LinkedIn(sandbox.settings(publish_timeout=0.3))
    await sandbox.faults(kind, seconds=1)
    with pytest.raises(OutcomeUnknown) as caught:
        await linkedin.publish(await sandbox.access(), post_of("Hello"), [], CountingMeter())
    assert caught.value.code == "no_answer"
    assert len(await sandbox.posts()) == published
    await linkedin.close()


@pytest.mark.parametrize("kind", ["timeout_before", "reset_before", "reset_after"])
@pytest.mark.parametrize("route", ["images.begin", "upload"])
async def test_lost_answer_before_the_create_call_is_tried_later(
    sandbox: Sandbox, kind: str, route: str
) -> None:
    linkedin = LinkedIn(sandbox.settings(timeout=0.3))
    await sandbox.faults(kind, route, seconds=1, times=2)  # PUT may be repeated on a new connection
    file, upload, saved = media_file(MediaKind.IMAGE, PNG), Upload(), SavedUploads()
    access = await sandbox.access()
    with pytest.raises(TryLater):
        await linkedin.upload(access, file, upload, saved, CountingMeter())
    assert not upload.sent
    await sandbox.no_faults()
    await linkedin.upload(access, file, upload, saved, CountingMeter())
    assert upload.sent
    await linkedin.close()


async def test_create_call_uses_a_new_connection(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    """A kept connection that the server closes would leave doubt about a post that was never created."""
    access = await sandbox.access()
    await linkedin.publish(access, post_of("One"), [], CountingMeter())
    connector = linkedin._http._creating().connector
    assert connector is not None
    assert connector.force_close


async def test_answer_that_comes_in_time_is_not_a_doubt(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    await sandbox.faults("slow", seconds=0.3)
    published = await linkedin.publish(await sandbox.access(), post_of("Hello"), [], CountingMeter())
    assert [post["id"] for post in await sandbox.posts()] == [published.id]


async def test_posts_of_many_accounts_are_published_at_the_same_time(
    sandbox: Sandbox, linkedin: LinkedIn
) -> None:
    accesses = [await sandbox.access(f"m{number}") for number in range(20)]
    posts = [linkedin.publish(access, post_of("Hello"), [], CountingMeter()) for access in accesses]
    published = await asyncio.gather(*posts)
    assert {post["id"] for post in await sandbox.posts()} == {each.id for each in published}
