"""Every outcome of publishing, on SQLite and PostgreSQL, against the local LinkedIn."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

import duetime as dt
from momentum.database import posts, usage
from momentum.errors import PostPublishing
from momentum.model import PLANNED, AccountState, Attempt, Content, MediaKind, Outcome, Post, PostState
from momentum.platform import Access, NotSent, PlatformError, Published, ReconnectNeeded, Throttled
from momentum.platforms.linkedin import LinkedIn
from momentum.publishing import prepare
from momentum.publishing.decide import Answer, Decision
from momentum.publishing.options import SECOND
from momentum.publishing.parts import PostFailed, TryAgain, Work, load
from momentum.publishing.publish import call, judge, store_intent
from momentum.publishing.record import record
from tests.momentum.platforms.fixtures import PNG
from tests.momentum.publishing.scene import Scene
from tests.momentum.samples import utc_now


async def judged(scene: Scene, work: Work, attempt: Attempt, answer: Answer) -> Decision:
    return await judge(scene.parts, work, attempt, answer, scene.known.tokens[work.account.id])


async def test_post_is_published_once(scene: Scene) -> None:
    post = await scene.post(await scene.account())
    assert (await scene.publish(post)).startswith("published: urn:li:share:")
    assert await scene.publish(post) == "skipped: the post is published"
    [there] = await scene.sandbox.posts()
    stored = await scene.stored(post)
    assert stored.state is PostState.PUBLISHED
    assert (stored.platform_id, stored.url) == (
        there["id"],
        f"{scene.sandbox.url}/feed/update/{there['id']}/",
    )
    assert stored.published_at is not None
    [attempt] = await scene.attempts(post)
    assert (attempt.outcome, attempt.worker, attempt.error) == (Outcome.PUBLISHED, "worker-1", None)
    assert attempt.scheduled_at == post.scheduled_at
    assert await scene.timeline(post) == ["publishing", "published"]


async def test_message_of_an_older_version_is_dropped(scene: Scene) -> None:
    post = await scene.post(await scene.account())
    assert (
        await scene.publish(replace(post, version=0))
        == "skipped: the post has version 1, this message is for 0"
    )
    assert "there is no post" in await scene.publish(replace(post, id="post_gone"))
    async with scene.database.transaction() as connection:
        changed = await posts.update(connection, post.id, now=utc_now(), state=PostState.CANCELLED)
    assert await scene.publish(changed) == "skipped: the post is cancelled"
    assert await scene.texts() == []


async def test_early_message_is_put_back_for_the_rest_of_the_time(scene: Scene) -> None:
    post = await scene.post(await scene.account(), scheduled_at=utc_now() + timedelta(hours=2))
    with pytest.raises(dt.Snooze) as put_back:
        await scene.publish(post)
    assert timedelta(hours=1.99) < timedelta(microseconds=put_back.value.delay) <= timedelta(hours=2)
    assert await scene.attempts(post) == []
    assert await scene.sandbox.usage() == 0


@pytest.mark.parametrize(
    "fault", ["timeout_after", "reset_after", "error_after", "error_before", "reset_before"]
)
async def test_call_without_a_clear_answer_is_never_repeated(scene: Scene, fault: str) -> None:
    post = await scene.post(await scene.account())
    await scene.sandbox.faults(fault)
    impatient = scene.with_options(call_timeout=0.5 * SECOND) if fault == "timeout_after" else scene
    assert (await impatient.publish(post)).startswith("unknown: ")
    assert (await scene.stored(post)).state is PostState.UNKNOWN
    assert await scene.outcomes(post) == ["unknown"]
    assert await scene.publish(post) == "skipped: the post is unknown"
    assert len(await scene.texts()) == (1 if fault.endswith("after") else 0)


async def test_error_in_a_client_leaves_doubt(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any) -> Published:
        raise KeyError("x-restli-id")

    monkeypatch.setattr(scene.parts.platforms["linkedin"], "publish", broken)
    post = await scene.post(await scene.account())
    assert await scene.publish(post) == "unknown: client_failed: KeyError: 'x-restli-id'"


async def test_worker_that_ended_during_the_call_leaves_doubt(scene: Scene) -> None:
    post = await scene.post(await scene.account())
    await store_intent(scene.parts, await load(scene.parts, post.id, 1), [PostState.SCHEDULED])
    assert (await scene.publish(post)).startswith("unknown: worker_lost: worker-1 ended during the call")
    assert await scene.texts() == []
    assert await scene.timeline(post) == ["publishing", "unknown"]


@pytest.mark.parametrize("decided", [False, True])
async def test_late_answer_replaces_doubt_and_nothing_else(scene: Scene, decided: bool) -> None:
    post = await scene.post(await scene.account())
    work = await load(scene.parts, post.id, 1)
    attempt = await store_intent(scene.parts, work, [PostState.SCHEDULED])
    await scene.publish(post)  # another worker takes the job over
    if decided:
        async with scene.database.transaction() as connection:
            unknown = await posts.get(connection, None, post.id)
            await scene.parts.publisher.resolve(connection, unknown, published=False, then="draft")
    await record(scene.parts, work, attempt, await judged(scene, work, attempt, Published("urn:li:share:1")))
    state = (await scene.stored(post)).state
    assert state is (PostState.DRAFT if decided else PostState.PUBLISHED)
    assert (await scene.timeline(post))[-1] == ("late_answer" if decided else "published")
    assert await scene.outcomes(post) == ["published"]


async def test_paused_worker_does_not_make_the_call(scene: Scene) -> None:
    account = await scene.account()
    post = await scene.post(account)
    work = await load(scene.parts, post.id, 1)
    attempt = await store_intent(scene.parts, work, [PostState.SCHEDULED])
    long_ago = replace(attempt, started_at=utc_now() - timedelta(minutes=1))
    answer = await call(scene.parts, work, long_ago, scene.known.tokens[account.id], [])
    assert isinstance(answer, NotSent)
    assert await scene.texts() == []


async def test_refused_connection_is_tried_again_up_to_the_limit(scene: Scene) -> None:
    gone = LinkedIn(scene.sandbox.settings(api_url="http://127.0.0.1:9"))
    nowhere = replace(scene, parts=replace(scene.parts, platforms={"linkedin": gone}))
    post = await scene.post(await scene.account())
    with pytest.raises(TryAgain):
        await nowhere.publish(post)
    assert (await scene.stored(post)).state is PostState.READY
    with pytest.raises(PostFailed):
        await nowhere.publish(post, last_try=True)
    stored = await scene.stored(post)
    assert (stored.state, await scene.outcomes(post)) == (PostState.FAILED, ["retry", "failed"])
    assert stored.error
    await gone.close()


async def test_conflict_is_tried_again(scene: Scene) -> None:
    post = await scene.post(await scene.account())
    await scene.sandbox.faults("conflict")
    with pytest.raises(TryAgain, match="conflict"):
        await scene.publish(post)
    assert (await scene.publish(post)).startswith("published")
    first, second = await scene.attempts(post)
    assert (first.outcome, first.status, second.outcome) == (Outcome.RETRY, 409, Outcome.PUBLISHED)
    assert first.request_id


async def test_throttled_member_waits_until_the_next_day_alone(scene: Scene) -> None:
    patient = scene.with_options(recheck=timedelta(hours=2))  # looks at most every 30 hours
    ann, bob = await scene.account("m-1_a"), await scene.account("m-2_b")
    first, second, other = await scene.post(ann), await scene.post(ann), await scene.post(bob)
    await scene.sandbox.faults("throttle_member")
    for post in (first, first, second, second):
        with pytest.raises(dt.Snooze) as held:
            await patient.publish(post)
        now = utc_now()
        midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        assert abs(timedelta(microseconds=held.value.delay) - (midnight - now)) < timedelta(seconds=5)
    with pytest.raises(dt.Snooze) as rechecked:
        await scene.publish(first)
    assert rechecked.value.delay == 15 * 100_000
    assert await scene.outcomes(first) == await scene.outcomes(second) == ["held"]
    assert (await scene.stored(first)).state is PostState.READY
    assert (await scene.publish(other)).startswith("published")
    tomorrow = replace(scene, parts=replace(scene.parts, now=lambda: utc_now() + timedelta(days=1)))
    assert (await tomorrow.publish(first)).startswith("published")


async def test_throttled_app_stops_the_whole_platform(scene: Scene) -> None:
    first, other = (
        await scene.post(await scene.account("m-1_a")),
        await scene.post(await scene.account("m-2_b")),
    )
    await scene.sandbox.faults("throttle_app")
    for post in (first, other):
        with pytest.raises(dt.Snooze):
            await scene.publish(post)
    assert await scene.texts() == []


async def test_ended_api_version_stops_the_platform_until_it_is_resumed(scene: Scene) -> None:
    first, other = (
        await scene.post(await scene.account("m-1_a")),
        await scene.post(await scene.account("m-2_b")),
    )
    await scene.sandbox.faults("version")
    for post in (first, other, first):
        with pytest.raises(dt.Snooze) as held:
            await scene.publish(post)
        assert held.value.delay == 100_000  # the recheck
    async with scene.database.transaction() as connection:
        hold = await usage.hold_on(connection, "linkedin", first.account_id, utc_now())
        assert hold is not None
        assert (hold.account_id, hold.until, hold.code) == ("", None, "version_ended")
        assert await scene.parts.publisher.resume(connection, "linkedin")
    assert (await scene.publish(first)).startswith("published")
    assert await scene.outcomes(first) == ["held", "published"]


async def test_revoked_token_needs_a_person(scene: Scene) -> None:
    account = await scene.account()
    post, next_post = await scene.post(account), await scene.post(account)
    await scene.sandbox.faults("unauthorized")
    with pytest.raises(PostFailed):
        await scene.publish(post)
    assert (await scene.stored(post)).error_code == "needs_reconnection"
    assert await scene.account_state(account) is AccountState.EXPIRED
    with pytest.raises(PostFailed):
        await scene.publish(next_post)
    assert (await scene.stored(next_post)).error_code == "needs_reconnection"
    assert await scene.sandbox.usage() <= 1


async def test_token_is_refreshed_once_where_it_was_granted(scene: Scene) -> None:
    account = await scene.account(can_refresh=True)
    post = await scene.post(account)
    scene.known.refreshed[account.id] = await scene.sandbox.access()
    await scene.sandbox.faults("unauthorized")
    with pytest.raises(TryAgain):
        await scene.publish(post)
    assert (await scene.publish(post)).startswith("published")
    scene.known.refreshed[account.id] = ReconnectNeeded("invalid_grant")
    refused = await scene.post(account)
    await scene.sandbox.faults("unauthorized")
    with pytest.raises(PostFailed):
        await scene.publish(refused)
    assert await scene.account_state(account) is AccountState.EXPIRED


@pytest.mark.parametrize("can_refresh", [True, False])
async def test_answer_to_an_old_token_ends_no_new_one(
    scene: Scene, can_refresh: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is replaced during the call: by another process, or by a person who connects the account again."""
    account = await scene.account(can_refresh=can_refresh)
    post = await scene.post(account)
    await scene.sandbox.faults("unauthorized")
    new = await scene.sandbox.access()
    publish = LinkedIn.publish

    async def publish_slowly(*arguments: Any) -> Published:
        scene.known.tokens[account.id] = new
        return await publish(*arguments)

    monkeypatch.setattr(LinkedIn, "publish", publish_slowly)
    with pytest.raises(TryAgain):
        await scene.publish(post)
    monkeypatch.undo()
    assert (await scene.publish(post)).startswith("published: ")
    assert scene.known.tokens[account.id] is new


async def test_refresh_without_an_answer_does_not_expire_the_account(scene: Scene) -> None:
    account = await scene.account(can_refresh=True)
    scene.known.refreshed[account.id] = NotSent("no connection")
    await scene.sandbox.faults("unauthorized")
    with pytest.raises(TryAgain):
        await scene.publish(await scene.post(account))
    assert await scene.account_state(account) is AccountState.ACTIVE


async def test_refused_content_fails_for_good(scene: Scene) -> None:
    post = await scene.post(await scene.account(), content=Content("x", visibility="FRIENDS"))
    with pytest.raises(PostFailed):
        await scene.publish(post)
    stored = await scene.stored(post)
    assert (stored.state, await scene.outcomes(post)) == (PostState.FAILED, ["failed"])
    assert stored.error is not None


async def test_duplicate_of_another_post_fails_with_its_link(scene: Scene) -> None:
    account = await scene.account()
    first = await scene.post(account, content=Content("Same words"))
    await scene.publish(first)
    second = await scene.post(account, content=Content("Same words"))
    with pytest.raises(PostFailed, match="duplicate_content"):
        await scene.publish(second)
    stored = await scene.stored(second)
    assert stored.error is not None
    assert str((await scene.stored(first)).url) in stored.error
    assert len(await scene.texts()) == 1


async def test_duplicate_after_doubt_is_the_post_itself(scene: Scene) -> None:
    """A person said "not published", and was wrong: the platform's answer counts."""
    post = await scene.post(await scene.account())
    await scene.sandbox.faults("reset_after")
    await scene.publish(post)
    async with scene.database.transaction() as connection:
        unknown = await posts.get(connection, None, post.id)
        again = await scene.parts.publisher.resolve(connection, unknown, published=False, then="publish")
    assert again.state is PostState.SCHEDULED
    await scene.publish(again)
    [there] = await scene.sandbox.posts()
    stored = await scene.stored(post)
    assert (stored.state, stored.platform_id) == (PostState.PUBLISHED, there["id"])


async def test_change_before_the_intent_wins_and_after_it_is_refused(scene: Scene) -> None:
    account = await scene.account()
    edited, cancelled = await scene.post(account), await scene.post(account)
    work = await load(scene.parts, edited.id, 1)
    async with scene.database.transaction() as connection:
        new = await posts.update(connection, edited.id, now=utc_now(), content=Content("Edited"))
    with pytest.raises(Exception, match="changed in the meantime"):
        await store_intent(scene.parts, work, [PostState.SCHEDULED])
    assert (await scene.publish(new)).startswith("published")
    await store_intent(scene.parts, await load(scene.parts, cancelled.id, 1), [PostState.SCHEDULED])
    async with scene.database.transaction() as connection:
        with pytest.raises(PostPublishing):
            await posts.update(connection, cancelled.id, now=utc_now(), state=PostState.CANCELLED)
    assert await scene.texts() == ["Edited"]


async def test_budget_of_the_day_is_kept(scene: Scene) -> None:
    platform = scene.parts.platforms["linkedin"]
    platform.rules = replace(platform.rules, requests_per_account_per_day=1)
    account = await scene.account()
    first, second = await scene.post(account), await scene.post(account)
    assert (await scene.publish(first)).startswith("published")
    with pytest.raises(dt.Snooze, match="has used its 1 requests"):
        await scene.publish(second)
    assert await scene.sandbox.usage() == 1
    assert await scene.outcomes(second) == ["held"]


async def test_answer_is_recorded_although_the_database_was_away(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = await scene.post(await scene.account())
    work = await load(scene.parts, post.id, 1)
    attempt = await store_intent(scene.parts, work, [PostState.SCHEDULED])
    decision = await judged(scene, work, attempt, Published("urn:li:share:1"))
    real, failures = scene.database.engine.connect, iter([OSError("no connection"), OSError("no connection")])

    def connect() -> Any:
        for failure in failures:
            raise failure
        return real()

    monkeypatch.setattr(scene.database, "engine", SimpleNamespace(connect=connect))
    monkeypatch.setattr("momentum.publishing.record.RECORD_DELAYS", (0.01, 0.01))
    await record(scene.parts, work, attempt, decision)
    assert (await scene.stored(post)).state is PostState.PUBLISHED


async def taken_while_published(scene: Scene, post: Post, monkeypatch: pytest.MonkeyPatch) -> Attempt:
    """A worker that only seemed to be dead stores its intent just before another worker of the same job. The
    other one puts its job back."""
    found: list[Attempt] = []
    read = scene.known.access

    async def access(account_id: str) -> Access:
        found.append(await store_intent(scene.parts, await load(scene.parts, post.id, 1), PLANNED))
        return await read(account_id)

    monkeypatch.setattr(scene.known, "access", access)
    with pytest.raises(dt.Snooze, match="another attempt is publishing") as put_back:
        await scene.publish(post)
    assert put_back.value.delay >= scene.parts.options.call_timeout / timedelta(microseconds=1)
    monkeypatch.undo()
    return found[0]


async def test_job_goes_on_while_another_attempt_of_it_publishes(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = await scene.post(await scene.account())
    attempt = await taken_while_published(scene, post, monkeypatch)
    work = await load(scene.parts, post.id, 1)
    decision = await judged(scene, work, attempt, NotSent("no connection"))
    await record(scene.parts, work, attempt, decision)  # its job does not hear of it: it has a newer attempt
    assert (await scene.stored(post)).state is PostState.READY
    assert (await scene.publish(post)).startswith("published: ")
    assert len(await scene.texts()) == 1


async def test_job_ends_when_another_attempt_of_it_has_published(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = await scene.post(await scene.account())
    attempt = await taken_while_published(scene, post, monkeypatch)
    work = await load(scene.parts, post.id, 1)
    access = await scene.known.access(work.account.id)
    answer = await call(scene.parts, work, attempt, access, ())
    await record(scene.parts, work, attempt, await judged(scene, work, attempt, answer))
    assert await scene.publish(post) == "skipped: the post is published"
    assert len(await scene.texts()) == 1


@pytest.mark.parametrize(
    "answer",
    [NotSent("no connection"), Throttled("too many requests", until=utc_now() + timedelta(hours=1))],
    ids=["retry", "hold"],
)
async def test_late_answer_that_nothing_was_published_gives_the_post_a_job(
    scene: Scene, answer: PlatformError
) -> None:
    post = await scene.post(await scene.account(), planned=True)
    work = await load(scene.parts, post.id, 1)
    attempt = await store_intent(scene.parts, work, PLANNED)
    assert (await scene.publish(post)).startswith("unknown: worker_lost")  # and so its job ends
    ended = str((await scene.stored(post)).job_id)
    await scene.app.cancel_job(ended)
    await record(scene.parts, work, attempt, await judged(scene, work, attempt, answer))
    stored = await scene.stored(post)
    assert (stored.state, stored.job_id != ended) == (PostState.READY, True)
    assert (await scene.app.get_job(str(stored.job_id))).state is dt.State.PENDING


async def test_prepared_post_that_another_attempt_has_is_put_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    use = await scene.file(MediaKind.IMAGE, PNG)
    post = await scene.post_with(await scene.account(), use)
    before = await load(scene.parts, post.id, 1)
    async with scene.database.transaction() as connection:
        await posts.advance(connection, post, PLANNED, PostState.PREPARING, now=utc_now())

    async def seen_earlier(*_: object) -> Work:
        return before

    monkeypatch.setattr(prepare, "load", seen_earlier)
    with pytest.raises(dt.Snooze, match="another attempt has the post"):
        await scene.prepare(post)


async def test_worker_without_the_platform_uses_up_no_attempt(scene: Scene) -> None:
    post = await scene.post(await scene.account())
    with pytest.raises(dt.Snooze, match="does not know the platform 'linkedin'"):
        await load(replace(scene.parts, platforms={}), post.id, 1)
