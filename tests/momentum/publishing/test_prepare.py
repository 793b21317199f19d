"""Files of posts: brought to the platform ahead of time, once, and resumed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

import duetime as dt
from momentum.database import media, posts
from momentum.model import Article, Content, MediaKind, MediaUse, Outcome, PostState
from momentum.publishing.parts import PostFailed, Skip, TryAgain
from tests.momentum.platforms.fixtures import PDF, PNG, video_bytes
from tests.momentum.publishing.scene import Scene, StepContext
from tests.momentum.samples import utc_now

MIB = 1024 * 1024


async def test_prepared_post_waits_for_its_time_and_is_published_with_its_files(scene: Scene) -> None:
    account = await scene.account()
    uses = [await scene.file(MediaKind.IMAGE, PNG), await scene.file(MediaKind.IMAGE, PNG + b"2")]
    due = utc_now() + timedelta(minutes=5)
    post = await scene.post_with(account, *uses, scheduled_at=due)
    assert await scene.prepare(post) == "ready"
    stored = await scene.stored(post)
    assert stored.state is PostState.READY
    job = await scene.app.get_job(str(stored.job_id))
    assert (job.task, abs(job.fire_time - due) < timedelta(seconds=1)) == ("momentum.publish", True)
    with pytest.raises(Skip, match="the post is ready"):
        await scene.prepare(post)
    later = replace(scene, parts=replace(scene.parts, now=lambda: due))
    assert (await later.publish(post)).startswith("published")
    [there] = await scene.sandbox.posts()
    assert len(there["content"]["multiImage"]["images"]) == 2
    assert len(await scene.sandbox.assets()) == 2
    assert await scene.timeline(post) == ["preparing", "ready", "publishing", "published"]


@pytest.mark.parametrize(
    ("kind", "content"), [(MediaKind.DOCUMENT, PDF), (MediaKind.VIDEO, video_bytes(5 * MIB))]
)
async def test_documents_and_videos(scene: Scene, kind: MediaKind, content: bytes) -> None:
    post = await scene.post_with(await scene.account(), await scene.file(kind, content))
    assert await scene.prepare(post) == "ready"
    assert (await scene.publish(post)).startswith("published")


async def test_picture_of_an_article_is_prepared_too(scene: Scene) -> None:
    picture = await scene.file(MediaKind.IMAGE, PNG)
    article = Article("https://example.org", "Title", thumbnail=picture.media_id)
    post = await scene.post(await scene.account(), content=Content("Read", article=article))
    assert await scene.prepare(post) == "ready"
    await scene.publish(post)
    [there] = await scene.sandbox.posts()
    assert there["content"]["article"]["thumbnail"] == (await scene.sandbox.assets())[0]["urn"]


async def test_post_of_the_same_account_uses_the_asset_again(scene: Scene) -> None:
    account = await scene.account()
    use = await scene.file(MediaKind.IMAGE, PNG)
    for _ in range(2):
        await scene.prepare(await scene.post_with(account, use))
    assert len(await scene.sandbox.assets()) == 1


async def test_processing_is_awaited_without_a_worker(scene: Scene) -> None:
    await scene.sandbox.change(processing_seconds=3600)
    post = await scene.post_with(await scene.account(), await scene.file(MediaKind.VIDEO, video_bytes(MIB)))
    context = StepContext()
    for polls in (1, 2):
        with pytest.raises(dt.Snooze):
            await scene.prepare(post, context)
        assert context.last_checkpoint["polls"] == polls
    hopeless = scene.with_options(max_processing=timedelta())
    with pytest.raises(PostFailed, match="processing_timeout"):
        await hopeless.prepare(post, context)
    assert len(await scene.sandbox.assets()) == 1


async def test_interrupted_upload_resumes_with_the_same_asset(scene: Scene) -> None:
    await scene.sandbox.faults("error_before", "upload", skip=2, status=503)
    post = await scene.post_with(
        await scene.account(), await scene.file(MediaKind.VIDEO, video_bytes(16 * MIB))
    )
    with pytest.raises(TryAgain):
        await scene.prepare(post)
    stored = await scene.stored(post)
    assert (stored.state, await scene.outcomes(post)) == (PostState.PREPARING, ["retry"])
    assert await scene.prepare(post) == "ready"
    [asset] = await scene.sandbox.assets()
    assert [part["number"] for part in asset["parts"]] == [0, 1, 2, 3]


async def test_uploads_leave_a_request_for_a_post_that_is_ready(scene: Scene) -> None:
    platform = scene.parts.platforms["linkedin"]
    platform.rules = replace(platform.rules, requests_per_account_per_day=3)
    account = await scene.account()
    ready = await scene.post_with(account, await scene.file(MediaKind.IMAGE, PNG))
    assert await scene.prepare(ready) == "ready"  # two requests
    another = await scene.post_with(account, await scene.file(MediaKind.IMAGE, PNG + b"2"))
    with pytest.raises(dt.Snooze, match="has used its 3 requests"):
        await scene.prepare(another)
    async with scene.database.transaction() as connection:
        await scene.parts.publisher.resume(connection, "linkedin", account.id)
    assert (await scene.publish(ready)).startswith("published")


async def test_missing_file_fails_with_its_name(scene: Scene) -> None:
    post = await scene.post_with(await scene.account(), MediaUse("med_gone"))
    with pytest.raises(PostFailed, match="med_gone"):
        await scene.prepare(post)
    [attempt] = await scene.attempts(post)
    assert (attempt.outcome, attempt.error_code) == (Outcome.FAILED, "media_missing")


async def test_edit_while_preparing_drops_the_older_message(scene: Scene) -> None:
    account = await scene.account()
    use = await scene.file(MediaKind.VIDEO, video_bytes(MIB))
    post = await scene.post_with(account, use)

    async def edit(*_: object) -> bool:
        async with scene.database.transaction() as connection:
            content = Content("Edited", (use,))
            await posts.update(connection, post.id, now=utc_now(), state=PostState.SCHEDULED, content=content)
        return True

    platform = scene.parts.platforms["linkedin"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(platform, "is_processed", edit)
        with pytest.raises(Skip, match="changed in the meantime"):
            await scene.prepare(post)
    edited = await scene.stored(post)
    assert (edited.state, edited.version) == (PostState.SCHEDULED, 2)
    assert await scene.prepare(edited) == "ready"
    assert (await scene.publish(edited)).startswith("published")
    assert await scene.texts() == ["Edited"]
    assert len(await scene.sandbox.assets()) == 1


async def test_progress_is_saved_after_each_part(scene: Scene) -> None:
    await scene.sandbox.faults("error_before", "upload", skip=1)
    account = await scene.account()
    use = await scene.file(MediaKind.VIDEO, video_bytes(9 * MIB))
    with pytest.raises(TryAgain):
        await scene.prepare(await scene.post_with(account, use))
    async with scene.database.reading() as connection:
        upload = await media.get_upload(connection, account.id, use.media_id)
    assert upload.asset
    assert ["etag" in part for part in upload.state["parts"]] == [True, False, False]
