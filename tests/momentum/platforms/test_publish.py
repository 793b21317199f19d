"""The create call on the local LinkedIn: what is sent, and what readers see."""

from __future__ import annotations

from dataclasses import replace

import pytest

from momentum.model import Article, MediaKind, MediaUse
from momentum.platform import Attachment, Rejected, Upload
from momentum.platforms.linkedin import LinkedIn
from momentum.platforms.little_text import RESERVED
from tests.momentum.platforms.fixtures import PNG, CountingMeter, Sandbox, SavedUploads, media_file, post_of


async def test_text_is_published_with_the_urn_of_the_header(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access, meter = await sandbox.access(), CountingMeter()
    published = await linkedin.publish(access, post_of("Hello (world) #tag_1 x@y"), [], meter)
    [post] = await sandbox.posts()
    assert published.id == post["id"]
    assert published.id.startswith("urn:li:share:")
    assert published.url == f"{sandbox.url}/feed/update/{published.id}/"
    assert post["text"] == "Hello (world) #tag_1 x@y"
    assert not post["truncated"]
    assert meter.requests == 1
    assert await sandbox.usage("m-1_a") == 1


async def test_3000_characters_of_all_kinds_arrive_unchanged(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    typed = ("👩🏽‍🚀 @[A (B)](urn:li:person:x_1) https://x.org/a_b#c #tag\n" + RESERVED) * 60
    typed = typed[:2993] + " the end"[:7]
    assert len(typed) == 3000
    await linkedin.publish(await sandbox.access(), post_of(typed), [], CountingMeter())
    [post] = await sandbox.posts()
    assert post["typed"] == typed
    assert not post["truncated"]


async def test_longer_text_is_refused(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    with pytest.raises(Rejected) as caught:
        await linkedin.publish(await sandbox.access(), post_of("_" * 3001), [], CountingMeter())
    assert caught.value.code == "field_length_too_long"


async def test_visibility_is_sent(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    post = post_of("Hello", visibility="CONNECTIONS")
    await linkedin.publish(await sandbox.access(), post, [], CountingMeter())
    assert (await sandbox.posts())[0]["visibility"] == "CONNECTIONS"


async def test_article_has_plain_strings_and_its_thumbnail(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access, file, upload = await sandbox.access(), media_file(MediaKind.IMAGE, PNG), Upload()
    await linkedin.upload(access, file, upload, SavedUploads(), CountingMeter())
    article = Article("https://x.org/a_b", "A (title) #1", "About_it", thumbnail=file.media.id)
    attachments = [Attachment(file.media, str(upload.asset))]
    await linkedin.publish(access, post_of("Read", article=article), attachments, CountingMeter())
    [post] = await sandbox.posts()
    assert post["content"] == {
        "article": {
            "source": "https://x.org/a_b",
            "title": "A (title) #1",
            "description": "About_it",
            "thumbnail": upload.asset,
        }
    }


async def test_organization_publishes_in_its_own_name(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access = await sandbox.access("boss", organization=77)
    await linkedin.publish(access, post_of("We are hiring"), [], CountingMeter())
    assert (await sandbox.posts())[0]["author"] == "urn:li:organization:77"


async def test_organization_of_another_member_is_refused(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    owner, other = (
        await sandbox.access("boss", organization=77),
        await sandbox.access("other", organization=78),
    )
    with pytest.raises(Rejected) as caught:
        await linkedin.publish(replace(owner, token=other.token), post_of("x"), [], CountingMeter())
    assert caught.value.code == "access_denied"


async def test_document_has_a_title(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access, file = await sandbox.access(), media_file(MediaKind.DOCUMENT, b"%PDF-1.4", "slides.pdf")
    upload = Upload()
    await linkedin.upload(access, file, upload, SavedUploads(), CountingMeter())
    post = post_of("Slides", media=(MediaUse(file.media.id),))
    await linkedin.publish(access, post, [Attachment(file.media, str(upload.asset))], CountingMeter())
    assert (await sandbox.posts())[0]["content"]["media"]["title"] == "slides.pdf"
