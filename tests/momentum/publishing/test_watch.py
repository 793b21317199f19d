"""What is watched: tokens that end, and posts without a job."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import insert, select

import duetime as dt
from momentum.database import tables, usage
from momentum.model import AccountState, PostState
from momentum.platform import NotSent, ReconnectNeeded
from momentum.publishing import watch
from momentum.publishing.parts import load
from momentum.publishing.publish import store_intent
from tests.momentum.publishing.scene import Scene
from tests.momentum.samples import utc_now

DAY = timedelta(days=1)


async def test_owner_is_warned_once_and_later_posts_are_marked(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    account = await scene.account(expires_at=utc_now() + 10 * DAY)
    before = await scene.post(account, scheduled_at=utc_now() + 9 * DAY)
    after = await scene.post(account, scheduled_at=utc_now() + 11 * DAY)
    assert await watch.watch_tokens(scene.parts) == "1 tokens end soon"
    await watch.watch_tokens(scene.parts)
    assert (await scene.timeline(before), await scene.timeline(after)) == ([], ["needs_reconnection"])
    assert [record.message.count("before 1 scheduled posts") for record in caplog.records] == [1]


async def test_token_is_refreshed_ahead_where_it_was_granted(scene: Scene) -> None:
    renewed = await scene.account("m-1", can_refresh=True, expires_at=utc_now() + DAY)
    refused = await scene.account("m-2", can_refresh=True, expires_at=utc_now() + DAY)
    unreachable = await scene.account("m-3", can_refresh=True, expires_at=utc_now() + DAY)
    ended = await scene.account("m-4", expires_at=utc_now() - DAY)
    scene.known.refreshed = {
        renewed.id: await scene.sandbox.access("m-1"),
        refused.id: ReconnectNeeded("invalid_grant"),
        unreachable.id: NotSent("no connection"),
    }
    await watch.watch_tokens(scene.parts)
    assert scene.known.tokens[renewed.id] is scene.known.refreshed[renewed.id]
    states = [await scene.account_state(each) for each in (renewed, refused, unreachable, ended)]
    active, expired = AccountState.ACTIVE, AccountState.EXPIRED
    assert states == [active, expired, active, expired]


async def test_late_post_without_a_job_gets_one(scene: Scene) -> None:
    account, hour_ago = await scene.account(), utc_now() - timedelta(hours=1)
    lost, kept, fresh = [
        await scene.post(account, scheduled_at=at, planned=planned)
        for at, planned in ((hour_ago, False), (hour_ago, True), (utc_now(), False))
    ]
    dead = await scene.post(account, scheduled_at=hour_ago, planned=True)
    await scene.app.cancel_job(str((await scene.stored(dead)).job_id))
    job_ids = [(await scene.stored(post)).job_id for post in (kept, dead)]
    assert await watch.watch_posts(scene.parts) == "2 posts had no job"
    assert await watch.watch_posts(scene.parts) == "0 posts had no job"
    assert (await scene.app.get_job(str((await scene.stored(lost)).job_id))).state == dt.State.PENDING
    assert (await scene.stored(kept)).job_id == job_ids[0]
    assert (await scene.stored(dead)).job_id != job_ids[1]
    assert (await scene.stored(fresh)).job_id is None


async def test_intent_without_a_job_becomes_doubt(scene: Scene) -> None:
    post = await scene.post(await scene.account(), scheduled_at=utc_now() - timedelta(hours=1))
    await store_intent(scene.parts, await load(scene.parts, post.id, 1), [PostState.SCHEDULED])
    await watch.watch_posts(scene.parts)
    assert (await scene.stored(post)).state is PostState.UNKNOWN


async def test_old_rows_are_removed(scene: Scene) -> None:
    row = {"tenant": "default", "platform": "linkedin", "server": "", "verifier": b"sealed"}
    old, new = utc_now() - 2 * DAY, utc_now() + DAY
    async with scene.database.transaction() as connection:
        for state, at in (("old", old), ("new", new)):
            await connection.execute(insert(tables.authorizations).values(state=state, expires_at=at, **row))
        await usage.spend(connection, "linkedin", "", "2020-01-01", 1, None)
    assert await watch.prune(scene.parts) == "removed 1 unfinished authorizations and 1 days of usage"
    async with scene.database.reading() as connection:
        states = (await connection.execute(select(tables.authorizations.c.state))).scalars().all()
    assert states == ["new"]
