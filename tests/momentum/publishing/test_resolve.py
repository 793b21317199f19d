"""Posts in doubt: looked up, probed, or decided by a person."""

from __future__ import annotations

import pytest

import duetime as dt
from momentum.database import posts
from momentum.errors import Conflict, InvalidPost
from momentum.model import Account, Post, PostState
from momentum.publishing.parts import Skip
from tests.momentum.publishing.scene import Scene, StepContext


async def in_doubt(scene: Scene, account: Account, fault: str = "reset_after") -> Post:
    post = await scene.post(account)
    await scene.sandbox.faults(fault)
    assert (await scene.publish(post)).startswith("unknown")
    return post


async def jobs(scene: Scene, task: str) -> list[dt.JobHandle]:
    return [job for job in await scene.app.jobs(queue="linkedin") if job.task == task]


async def test_post_of_an_organization_is_found(scene: Scene) -> None:
    post = await in_doubt(scene, await scene.account(organization=7))
    assert len(await jobs(scene, "momentum.resolve")) == 1
    assert (await scene.resolve(post)).startswith("published: urn")
    stored = await scene.stored(post)
    assert stored.platform_id == (await scene.sandbox.posts())[0]["id"]
    assert await scene.outcomes(post) == ["published"]
    assert stored.error is None
    with pytest.raises(Skip, match="the post is published"):
        await scene.resolve(post)


async def test_post_that_is_not_there_waits_for_a_person(scene: Scene) -> None:
    post = await in_doubt(scene, await scene.account(organization=7), "error_before")
    context = StepContext()
    with pytest.raises(dt.Snooze):
        await scene.resolve(post, context=context)
    assert await scene.resolve(post, context=context) == "not found: a person decides"
    stored = await scene.stored(post)
    assert (stored.state, stored.error_code) == (PostState.UNKNOWN, "not_found")
    assert await jobs(scene, "momentum.publish") == []


async def test_post_that_is_not_there_is_published_again_if_allowed(scene: Scene) -> None:
    allowed = scene.with_options(republish=True)
    post = await in_doubt(scene, await scene.account(organization=7), "error_before")
    context = StepContext(last_checkpoint=1)
    assert await allowed.resolve(post, context=context) == "not found: it is published again"
    assert len(await jobs(scene, "momentum.publish")) == 1
    assert (await scene.publish(post)).startswith("published")
    assert len(await scene.texts()) == 1


async def test_member_without_a_probe_waits_for_a_person(scene: Scene) -> None:
    post = await in_doubt(scene, await scene.account())
    assert await scene.resolve(post) == "unknown: a person decides"
    assert await scene.sandbox.usage() == 1


@pytest.mark.parametrize("fault", ["reset_after", "error_before"])
async def test_probe_finds_the_first_post_or_publishes_it(scene: Scene, fault: str) -> None:
    post = await in_doubt(scene, await scene.account(probe=True), fault)
    assert (await scene.resolve(post)).startswith("published: urn")
    [there] = await scene.sandbox.posts()
    assert (await scene.stored(post)).platform_id == there["id"]
    assert await scene.outcomes(post) == ["unknown", "published"]


async def test_probe_without_an_answer_is_the_only_one(scene: Scene) -> None:
    post = await in_doubt(scene, await scene.account(probe=True))
    await scene.sandbox.faults("error_before")
    await scene.resolve(post)
    assert (await scene.stored(post)).state is PostState.UNKNOWN
    assert await scene.resolve(post) == "unknown: a person decides"
    assert await scene.sandbox.usage() <= 2


@pytest.mark.parametrize("fault", ["throttle_member", "conflict", "unauthorized"])
async def test_refused_probe_says_nothing_about_the_first_attempt(scene: Scene, fault: str) -> None:
    post = await in_doubt(scene, await scene.account(probe=True))
    await scene.sandbox.faults(fault)
    await scene.resolve(post)
    assert (await scene.stored(post)).state is PostState.UNKNOWN


async def test_probe_waits_until_the_first_one_must_be_stored(scene: Scene) -> None:
    patient = scene.with_options(probe_delay=scene.parts.options.lead)
    post = await in_doubt(scene, await scene.account(probe=True))
    with pytest.raises(dt.Snooze):
        await patient.resolve(post)
    assert await scene.sandbox.usage() == 1


@pytest.mark.parametrize(
    ("published", "then", "state"),
    [
        (True, "fail", PostState.PUBLISHED),
        (False, "publish", PostState.SCHEDULED),
        (False, "draft", PostState.DRAFT),
        (False, "fail", PostState.FAILED),
    ],
)
async def test_person_decides(scene: Scene, published: bool, then: str, state: PostState) -> None:
    post = await in_doubt(scene, await scene.account())
    publisher = scene.parts.publisher
    async with scene.database.transaction() as connection:
        unknown = await posts.get(connection, None, post.id)
        decided = await publisher.resolve(
            connection, unknown, published=published, then=then, url="https://example.org", actor="ann"
        )
        assert (decided.state, decided.version) == (state, 2)
        with pytest.raises(Conflict, match="nothing to decide"):
            await publisher.resolve(connection, decided, published=True)
        with pytest.raises(InvalidPost, match="then"):
            await publisher.resolve(connection, unknown, published=False, then="later")
    assert decided.url == ("https://example.org" if published else None)
    assert (await scene.timeline(post))[-1] == "resolved"
    assert len(await jobs(scene, "momentum.publish")) == (1 if state is PostState.SCHEDULED else 0)
