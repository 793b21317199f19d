"""Posts on a running node: retries, early messages, files, holds, all by Duetime."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from momentum.model import Content, MediaKind, Post, PostState
from momentum.publishing.tasks import make_tasks
from tests.momentum.platforms.fixtures import PNG
from tests.momentum.publishing.scene import Scene
from tests.momentum.samples import utc_now

FINAL = (PostState.PUBLISHED, PostState.FAILED, PostState.UNKNOWN)


async def ended(scene: Scene, post: Post, states: tuple[PostState, ...] = FINAL) -> Post:
    found = post

    async def is_final() -> bool:
        nonlocal found
        found = await scene.stored(post)
        return found.state in states

    await until(is_final)
    return found


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await holds():
            await asyncio.sleep(0.02)


async def test_posts_are_published_when_they_are_due(scene: Scene) -> None:
    scene.app.include(make_tasks(scene.parts))
    account, other = await scene.account("m-1"), await scene.account("m-2", organization=7)
    due = utc_now() + timedelta(seconds=0.7)
    picture = Content("Picture", (await scene.file(MediaKind.IMAGE, PNG),))
    await scene.sandbox.faults("conflict", author=account.author.urn)
    await scene.sandbox.faults("reset_after", author=other.author.urn)
    async with scene.app.running(queues=["linkedin"]):
        planned = [
            await scene.post(account, scheduled_at=due, planned=True),  # tried again after a conflict
            await scene.post(account, scheduled_at=due, planned=True, content=picture),
            await scene.post(other, scheduled_at=due, planned=True),  # in doubt, then found
        ]
        for post in planned:
            stored = await ended(scene, post, (PostState.PUBLISHED,))
            assert stored.published_at is not None
            assert stored.published_at >= due
    assert len(await scene.texts()) == 3
    assert sorted([await scene.outcomes(post) for post in planned]) == [
        ["published"],
        ["published"],
        ["retry", "published"],
    ]


async def test_post_fails_after_the_last_try_and_blocks_no_other(scene: Scene) -> None:
    scene.app.include(make_tasks(scene.parts))
    account = await scene.account()
    await scene.sandbox.faults("conflict", times=3)
    async with scene.app.running(queues=["linkedin"]):
        failing = await scene.post(account, planned=True)
        assert (await ended(scene, failing)).state is PostState.FAILED
        assert (await ended(scene, await scene.post(account, planned=True))).state is PostState.PUBLISHED
    assert await scene.outcomes(failing) == ["retry", "retry", "failed"]
    job = await scene.app.get_job(str((await scene.stored(failing)).job_id))
    assert job.state == "dead"
    assert "conflict" in str(job.error)


async def test_message_that_comes_early_is_put_back_and_runs_twice(scene: Scene) -> None:
    scene.app.include(make_tasks(scene.parts))
    due = utc_now() + timedelta(seconds=3)
    async with scene.app.running(queues=["linkedin"]):
        post = await scene.post(await scene.account(), scheduled_at=due)
        job = await scene.app.submit(
            "momentum.publish",
            post_id=post.id,
            post_version=1,
            account_id=post.account_id,
            scheduled_at=due,
            queue="linkedin",
        )
        stored = await ended(scene, post)
        assert stored.published_at is not None
        assert stored.published_at >= due
        assert (await job.wait(timeout="10s")).attempt == 2  # no polling in between


async def test_unexpected_error_ends_as_a_failed_post(scene: Scene) -> None:
    scene.app.include(make_tasks(scene.parts))
    account = await scene.account()
    scene.known.tokens.clear()  # reading the token raises KeyError
    async with scene.app.running(queues=["linkedin"]):
        post = await ended(scene, await scene.post(account, planned=True))
    assert (post.state, post.error_code) == (PostState.FAILED, "internal_error")


async def test_held_posts_go_on_when_the_platform_is_resumed(scene: Scene) -> None:
    scene.app.include(make_tasks(scene.parts))
    await scene.sandbox.faults("version")
    account = await scene.account()
    async with scene.app.running(queues=["linkedin"]):
        held = [await scene.post(account, planned=True) for _ in range(2)]

        async def both_held() -> bool:
            return [await scene.outcomes(post) for post in held] == [["held"], ["held"]]

        await until(both_held)
        async with scene.database.transaction() as connection:
            await scene.parts.publisher.resume(connection, "linkedin")
        for post in held:
            assert (await ended(scene, post)).state is PostState.PUBLISHED
