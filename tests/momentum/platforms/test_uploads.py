"""Files on their way to LinkedIn: whole, in parts, interrupted and resumed."""

from __future__ import annotations

import asyncio
import json
from copy import deepcopy
from dataclasses import asdict
from datetime import UTC, datetime

import pytest

from momentum.model import AuthorKind, MediaKind, MediaUse
from momentum.platform import Access, Attachment, MediaFile, Rejected, Throttled, TryLater, Upload
from momentum.platforms.linkedin import LinkedIn
from tests.momentum.platforms.fixtures import (
    PDF,
    PNG,
    CountingMeter,
    Sandbox,
    SandboxProcess,
    SavedUploads,
    media_file,
    post_of,
    video_bytes,
)

MB = 1024 * 1024


def stored(process: SandboxProcess, asset: str | None) -> bytes:
    return (process.folder / "files" / str(asset).rsplit(":", 1)[1]).read_bytes()


def from_database(upload: Upload) -> Upload:
    """As another process gets it."""
    return Upload(**json.loads(json.dumps(asdict(upload))))


async def uploaded(
    linkedin: LinkedIn, access: Access, file: MediaFile, upload: Upload | None = None
) -> Upload:
    upload = upload or Upload()
    await linkedin.upload(access, file, upload, SavedUploads(), CountingMeter())
    return upload


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (MediaKind.IMAGE, PNG + b"x" * 300_000),
        (MediaKind.DOCUMENT, PDF),
        (MediaKind.VIDEO, video_bytes(9 * MB)),
    ],
)
async def test_file_arrives_unchanged_and_is_published(
    sandbox: Sandbox, sandbox_process: SandboxProcess, linkedin: LinkedIn, kind: MediaKind, content: bytes
) -> None:
    access, file, meter = await sandbox.access(), media_file(kind, content), CountingMeter()
    upload = Upload()
    await linkedin.upload(access, file, upload, SavedUploads(), meter)
    assert upload.sent
    assert stored(sandbox_process, upload.asset) == content
    assert await linkedin.is_processed(access, file.media, upload, meter)
    attachment = Attachment(file.media, str(upload.asset), alt_text="What it shows")
    post = post_of("With a file", media=(MediaUse(file.media.id),))
    published = await linkedin.publish(access, post, [attachment], meter)
    [shown] = await sandbox.posts()
    assert shown["content"]["media"]["id"] == upload.asset
    assert published.id.startswith("urn:li:ugcPost:" if kind is MediaKind.VIDEO else "urn:li:share:")
    assert meter.requests == await sandbox.usage("m-1_a")


async def test_asset_is_saved_before_the_first_byte(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    await sandbox.faults("error_before", "upload", times=9)
    saved = SavedUploads()
    with pytest.raises(TryLater):
        await linkedin.upload(
            await sandbox.access(), media_file(MediaKind.IMAGE, PNG), Upload(), saved, CountingMeter()
        )
    [upload] = saved.saved
    [asset] = await sandbox.assets()
    assert upload.asset == asset["urn"]
    assert not upload.sent
    assert asset["sent_at"] is None


async def test_video_of_40_mb_resumes_after_a_kill_without_a_second_asset(
    sandbox: Sandbox, sandbox_process: SandboxProcess, linkedin: LinkedIn
) -> None:
    access, content, saved = await sandbox.access(), video_bytes(40 * MB + 123), SavedUploads()
    file = media_file(MediaKind.VIDEO, content)
    await sandbox.faults("timeout_before", "upload", skip=5, seconds=20)
    task = asyncio.create_task(linkedin.upload(access, file, Upload(), saved, CountingMeter()))
    while len(saved.saved) < 6 and not task.done():  # the asset, and five parts
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await sandbox.no_faults()

    resumed = from_database(saved.saved[-1])
    other_process = LinkedIn(sandbox.settings())
    meter = CountingMeter()
    await other_process.upload(access, file, resumed, SavedUploads(), meter)
    await other_process.close()

    [asset] = await sandbox.assets()
    assert asset["urn"] == resumed.asset
    assert [part["times"] for part in asset["parts"]] == [1] * 11
    assert meter.requests == 6 + 1  # the other parts, and finalize
    assert stored(sandbox_process, resumed.asset) == content


async def test_image_resumes_with_the_same_asset(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    await sandbox.faults("reset_before", "upload", times=2)
    access, file, saved = await sandbox.access(), media_file(MediaKind.IMAGE, PNG), SavedUploads()
    with pytest.raises(TryLater):
        await linkedin.upload(access, file, Upload(), saved, CountingMeter())
    await sandbox.no_faults()
    upload = await uploaded(linkedin, access, file, from_database(saved.saved[-1]))
    [asset] = await sandbox.assets()
    assert asset["urn"] == upload.asset


async def test_finished_upload_makes_no_request(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access, file = await sandbox.access(), media_file(MediaKind.IMAGE, PNG)
    upload = await uploaded(linkedin, access, file)
    meter = CountingMeter()
    await linkedin.upload(access, file, upload, SavedUploads(), meter)
    assert meter.requests == 0


@pytest.mark.parametrize(
    ("kind", "content"), [(MediaKind.IMAGE, PNG), (MediaKind.VIDEO, video_bytes(100_000))]
)
async def test_expired_upload_url_begins_a_new_upload(
    sandbox: Sandbox, linkedin: LinkedIn, kind: MediaKind, content: bytes
) -> None:
    access, file, saved = await sandbox.access(), media_file(kind, content), SavedUploads()
    await sandbox.change(upload_url_seconds=-1)
    await sandbox.faults("error_before", "upload")
    with pytest.raises(TryLater):
        await linkedin.upload(access, file, Upload(), saved, CountingMeter())
    await sandbox.change(upload_url_seconds=60)
    upload = await uploaded(linkedin, access, file, from_database(saved.saved[-1]))
    first, second = await sandbox.assets()
    assert (saved.saved[0].asset, upload.asset) == (first["urn"], second["urn"])
    assert upload.sent


@pytest.mark.parametrize("lost", [0, 1, 2])
async def test_upload_url_that_expires_on_the_way_begins_a_new_upload(
    sandbox: Sandbox, sandbox_process: SandboxProcess, linkedin: LinkedIn, lost: int
) -> None:
    content = video_bytes(9 * MB)
    body = {"code": "EXPIRED_UPLOAD_URL", "message": "The upload URL has expired"}
    await sandbox.faults("answer", "upload", skip=lost, status=400, body=body)
    upload = await uploaded(linkedin, await sandbox.access(), media_file(MediaKind.VIDEO, content))
    assert upload.sent
    assert stored(sandbox_process, upload.asset) == content
    assert len(await sandbox.assets()) == 2


async def test_lost_answer_to_finalize_is_not_a_failure(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access, file, saved = (
        await sandbox.access(),
        media_file(MediaKind.VIDEO, video_bytes(100_000)),
        SavedUploads(),
    )
    await sandbox.faults("reset_after", "videos.begin", skip=1)
    with pytest.raises(TryLater):
        await linkedin.upload(access, file, Upload(), saved, CountingMeter())
    upload = await uploaded(linkedin, access, file, from_database(saved.saved[-1]))
    assert upload.sent
    assert len(await sandbox.assets()) == 1


async def test_wrong_etags_are_refused(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access, file, saved = (
        await sandbox.access(),
        media_file(MediaKind.VIDEO, video_bytes(100_000)),
        SavedUploads(),
    )
    await sandbox.faults("error_before", "videos.begin", skip=1)
    with pytest.raises(TryLater):
        await linkedin.upload(access, file, Upload(), saved, CountingMeter())
    upload = deepcopy(saved.saved[-1])
    upload.state["parts"][0]["etag"] = "another"
    with pytest.raises(Rejected):
        await uploaded(linkedin, access, file, upload)


async def test_used_up_budget_stops_before_the_request(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    class Budget(CountingMeter):
        async def spend(self, requests: int = 1) -> None:
            await super().spend(requests)
            if self.requests > 2:
                raise Throttled("used up", until=datetime.now(UTC))

    access, file, saved = (
        await sandbox.access(),
        media_file(MediaKind.VIDEO, video_bytes(9 * MB)),
        SavedUploads(),
    )
    with pytest.raises(Throttled):
        await linkedin.upload(access, file, Upload(), saved, Budget())
    assert await sandbox.usage("m-1_a") == 2
    assert (await uploaded(linkedin, access, file, from_database(saved.saved[-1]))).sent
    assert len(await sandbox.assets()) == 1


async def test_member_waits_a_while_for_an_image_that_cannot_be_looked_up(sandbox: Sandbox) -> None:
    linkedin = LinkedIn(sandbox.settings(grace=30.0))
    access, file, meter = await sandbox.access(), media_file(MediaKind.IMAGE, PNG), CountingMeter()
    upload = await uploaded(linkedin, access, file)
    assert not await linkedin.is_processed(access, file.media, upload, meter)
    upload.state["sent_at"] -= 31
    assert await linkedin.is_processed(access, file.media, upload, meter)
    assert meter.requests == 0
    await linkedin.close()


@pytest.mark.parametrize("kind", [MediaKind.IMAGE, MediaKind.VIDEO])
async def test_processing_is_looked_up_where_it_may_be(
    sandbox: Sandbox, linkedin: LinkedIn, kind: MediaKind
) -> None:
    content = PNG if kind is MediaKind.IMAGE else video_bytes(100_000)
    access, file = await sandbox.access(organization=77), media_file(kind, content)
    await sandbox.change(processing_seconds=60)
    upload = await uploaded(linkedin, access, file)
    assert access.author.kind is AuthorKind.ORGANIZATION
    assert not await linkedin.is_processed(access, file.media, upload, CountingMeter())
    attachment = Attachment(file.media, str(upload.asset), title="A title")
    with pytest.raises(TryLater) as caught:
        await linkedin.publish(access, post_of("Too early"), [attachment], CountingMeter())
    assert caught.value.code == "media_processing"
    await sandbox.change(processing_seconds=0)
    assert await linkedin.is_processed(access, file.media, upload, CountingMeter())
    assert upload.ready
    await linkedin.publish(access, post_of("Now"), [attachment], CountingMeter())


async def test_failed_processing_is_permanent(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access, file = await sandbox.access(), media_file(MediaKind.VIDEO, b"not a video" * 1000, "clip.mp4")
    upload = await uploaded(linkedin, access, file)
    with pytest.raises(Rejected, match=r"clip\.mp4 \(INVALID_FORMAT\)") as caught:
        await linkedin.is_processed(access, file.media, upload, CountingMeter())
    assert caught.value.code == "media_processing_failed"


async def test_post_with_a_failed_image_is_refused(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access, file = await sandbox.access(), media_file(MediaKind.IMAGE, b"not an image")
    upload = await uploaded(linkedin, access, file)
    attachment = Attachment(file.media, str(upload.asset))
    with pytest.raises(Rejected) as caught:
        await linkedin.publish(access, post_of("x"), [attachment], CountingMeter())
    assert caught.value.code == "media_asset_processing_failed"


async def test_several_images_keep_their_order(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access = await sandbox.access()
    files = [media_file(MediaKind.IMAGE, PNG + bytes([n]), media_id=f"med_{n}") for n in range(3)]
    uploads = [await uploaded(linkedin, access, file) for file in files]
    attachments = [
        Attachment(file.media, str(upload.asset), alt_text=f"picture {number}")
        for number, (file, upload) in enumerate(zip(files, uploads, strict=True))
    ]
    await linkedin.publish(access, post_of("Three"), attachments, CountingMeter())
    [post] = await sandbox.posts()
    assert [image["altText"] for image in post["content"]["multiImage"]["images"]] == [
        "picture 0",
        "picture 1",
        "picture 2",
    ]
    assert [image["id"] for image in post["content"]["multiImage"]["images"]] == [u.asset for u in uploads]


async def test_another_authors_asset_is_refused(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    file = media_file(MediaKind.IMAGE, PNG)
    upload = await uploaded(linkedin, await sandbox.access("owner"), file)
    attachment = Attachment(file.media, str(upload.asset))
    with pytest.raises(Rejected) as caught:
        await linkedin.publish(await sandbox.access("other"), post_of("x"), [attachment], CountingMeter())
    assert caught.value.code == "invalid_image_id"
