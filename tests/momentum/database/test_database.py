"""The database: transactions, guards and the jobs that join them, on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

import duetime as dt
from momentum.database import Database, accounts, attempts, events, media, posts, usage
from momentum.database.usage import Hold
from momentum.errors import ConfigError, Conflict, NotFound, PostPublishing
from momentum.model import Article, Content, MediaUse, Outcome, PostState
from momentum.platform import Upload
from momentum.publishing.options import PublishingOptions
from momentum.publishing.publisher import PREPARE, PUBLISH, Publisher
from tests.momentum.samples import sample_post, stored_account, stored_post, utc_now
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import PostgresServer

CONTENT = Content(
    "Hello", (MediaUse("med_1", "a cat"),), Article("https://example.org", "Title"), "CONNECTIONS"
)


async def test_several_processes_migrate_at_the_same_time(database_url: str) -> None:
    several = [Database.of(database_url) for _ in range(4)]
    await asyncio.gather(*(each.migrate() for each in several))
    await asyncio.gather(*(each.migrate() for each in several))
    for each in several:
        await each.close()


async def test_post_is_read_as_it_was_stored(database: Database) -> None:
    async with database.transaction() as connection:
        account = await stored_account(connection)
        post = await stored_post(connection, account, content=CONTENT, labels=("a", "b"))
    async with database.reading() as connection:
        assert await posts.get(connection, "default", post.id) == post
        assert await accounts.get(connection, None, account.id) == account
        with pytest.raises(NotFound):
            await posts.get(connection, "another", post.id)


async def test_change_raises_the_version_and_refuses_a_stale_one(database: Database) -> None:
    async with database.transaction() as connection:
        post = await stored_post(connection, await stored_account(connection))
        changed = await posts.update(
            connection,
            post.id,
            now=utc_now(),
            expect_version=1,
            content=Content("new"),
            state=PostState.DRAFT,
        )
        assert (changed.version, changed.content.text, changed.state) == (2, "new", PostState.DRAFT)
        with pytest.raises(Conflict, match="version 2, not 1"):
            await posts.update(connection, post.id, now=utc_now(), expect_version=1)


async def test_post_that_is_being_published_cannot_be_changed(database: Database) -> None:
    async with database.transaction() as connection:
        post = await stored_post(connection, await stored_account(connection), state=PostState.PUBLISHING)
        with pytest.raises(PostPublishing):
            await posts.update(connection, post.id, now=utc_now(), state=PostState.CANCELLED)


async def test_post_and_job_are_stored_together_or_not_at_all(database: Database, app: dt.App) -> None:
    publisher = Publisher(app, PublishingOptions())
    due = utc_now() + timedelta(hours=1)
    async with database.transaction() as connection:
        account = await stored_account(connection)
        post = await stored_post(connection, account, scheduled_at=due)
        job_id = await publisher.plan(connection, post)
    job = await app.get_job(job_id)
    assert (job.task, job.queue, job.labels) == (PUBLISH, "linkedin", {"post": post.id})
    assert abs(job.fire_time - due) < timedelta(milliseconds=1)
    async with database.reading() as connection:
        assert (await posts.get(connection, None, post.id)).job_id == job_id

    async with database.engine.connect() as connection:
        lost = await publisher.plan(connection, await stored_post(connection, account))
        await connection.rollback()
    with pytest.raises(dt.JobNotFound):
        await app.get_job(lost)
    await publisher.drop(lost)  # does not raise
    await publisher.drop(job_id)
    await publisher.drop(job_id)
    assert (await app.get_job(job_id)).state == dt.State.CANCELLED


async def test_post_with_files_is_prepared_ahead(database: Database, app: dt.App) -> None:
    due = utc_now() + timedelta(hours=1)
    async with database.transaction() as connection:
        account = await stored_account(connection)
        post = await stored_post(connection, account, scheduled_at=due, content=CONTENT)
        job_id = await Publisher(app, PublishingOptions()).plan(connection, post)
    job = await app.get_job(job_id)
    assert job.task == PREPARE
    assert abs(job.fire_time - (due - timedelta(minutes=10))) < timedelta(milliseconds=1)


async def test_many_transactions_at_the_same_time(database: Database, app: dt.App) -> None:
    publisher = Publisher(app, PublishingOptions())
    async with database.transaction() as connection:
        account = await stored_account(connection)

    async def store() -> None:
        async with database.transaction() as connection:
            await publisher.plan(connection, await stored_post(connection, account))

    await asyncio.gather(*(store() for _ in range(40)), *(app.submit("other", n=n) for n in range(40)))
    assert len(await app.jobs(queue="linkedin", limit=100)) == 40


async def test_later_outcome_replaces_only_doubt(database: Database) -> None:
    async with database.transaction() as connection:
        post = await stored_post(connection, await stored_account(connection))
        first = await attempts.begin(connection, post, "worker", utc_now())
        assert await attempts.end(connection, first.id, Outcome.UNKNOWN, utc_now(), error="no answer")
        assert await attempts.is_in_doubt(connection, post, before=2)
        assert await attempts.end(connection, first.id, Outcome.PUBLISHED, utc_now())
        assert not await attempts.end(connection, first.id, Outcome.FAILED, utc_now())
        second = await attempts.begin(connection, post, "worker", utc_now())
        assert [each.number for each in await attempts.of_post(connection, post.id)] == [1, 2]
        assert await attempts.last_in_doubt(connection, post.id) == second


async def test_upload_is_saved_and_found_again(database: Database) -> None:
    async with database.transaction() as connection:
        assert await media.get_upload(connection, "acc_1", "med_1") == Upload()
        await media.save_upload(connection, "acc_1", "med_1", Upload("urn:1", {"part": 1}), utc_now())
        await media.save_upload(connection, "acc_1", "med_1", Upload("urn:1", {"part": 2}, True), utc_now())
        assert await media.get_upload(connection, "acc_1", "med_1") == Upload("urn:1", {"part": 2}, True)


async def test_requests_are_counted_up_to_the_limit(database: Database) -> None:
    async def spend(requests: int, limit: int | None) -> bool:
        async with database.transaction() as connection:
            return await usage.spend(connection, "linkedin", "acc_1", "2030-01-01", requests, limit)

    assert (await asyncio.gather(*(spend(1, 10) for _ in range(15)))).count(True) == 10
    assert not await spend(1, 10)
    assert await spend(5, None)
    assert not await spend(11, 10)
    async with database.transaction() as connection:
        assert await usage.used(connection, "linkedin", "acc_1", "2030-01-01") == 15
        assert await usage.prune(connection, "2030-01-02") == 1


async def test_hold_without_end_outlasts_others(database: Database) -> None:
    now = utc_now()
    short = Hold("linkedin", "acc_1", now + timedelta(hours=1), "throttled", "too many", now)
    endless = Hold("linkedin", usage.WHOLE, None, "stopped", "dead version", now)
    async with database.transaction() as connection:
        assert await usage.hold_on(connection, "linkedin", "acc_1", now) is None
        await usage.hold(connection, short)
        assert await usage.hold_on(connection, "linkedin", "acc_1", now) == short
        assert await usage.hold_on(connection, "linkedin", "acc_2", now) is None
        await usage.hold(connection, endless)
        await usage.hold(connection, replace(endless, until=now + timedelta(hours=1)))
        assert await usage.hold_on(connection, "linkedin", "acc_1", now) == endless
        assert await usage.release(connection, "linkedin")
        assert not await usage.release(connection, "linkedin")
        later = now + timedelta(hours=2)
        assert await usage.hold_on(connection, "linkedin", "acc_1", later) is None
        await usage.hold(connection, replace(short, since=later, until=later + timedelta(hours=1)))
        again = await usage.hold_on(connection, "linkedin", "acc_1", later)
        assert again is not None
        assert again.since == later


async def test_timeline_is_in_order(database: Database) -> None:
    async with database.transaction() as connection:
        post = sample_post(await stored_account(connection))
        await events.add(connection, post, "created", now=utc_now(), actor="ann")
        await events.add(connection, post, "published", "urn", now=utc_now())
        assert [(each.kind, each.actor) for each in await events.of_post(connection, post.id)] == [
            ("created", "ann"),
            ("published", "publisher"),
        ]


@pytest.mark.parametrize("url", ["mysql://host/db", "sqlite://", "sqlite:///:memory:", "momentum.db"])
def test_wrong_url_says_what_to_write(url: str) -> None:
    with pytest.raises(ConfigError, match=r'database: .*use "sqlite:///momentum.db"'):
        Database.of(url)


async def test_pooler_that_changes_sessions_between_transactions(
    momentum_postgres: PostgresServer, pgbouncer: PgBouncer
) -> None:
    momentum_postgres.create_database("momentum_pooled", "momentum_template")
    url = f"{pgbouncer.url('momentum_pooled')}?pooler=transaction"
    database, app = Database.of(url), dt.App(url)
    await app.open()
    publisher = Publisher(app, PublishingOptions())

    for _ in range(5):
        async with database.transaction() as connection:
            account = await stored_account(connection)
            await publisher.plan(connection, await stored_post(connection, account))
    assert len(await app.jobs(queue="linkedin")) == 5
    await app.close()
    await database.close()
