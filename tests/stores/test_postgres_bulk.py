"""Bulk submission on the slow paths: some jobs are stored already, some have finished, or all have keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import pytest

from duetime.errors import StoreError
from duetime.model.job import JobDraft
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.jobs import INSERT_CHUNK
from duetime.testing.conformance.drafts import HOUR, finished, job, jobs, joined, live_counts

# As a slow server: a statement with more rows than this takes too long.
SIZE_CHECK = f"""
CREATE FUNCTION check_size() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT count(*) FROM stored) > {INSERT_CHUNK} THEN
        RAISE EXCEPTION 'too many at once' USING ERRCODE = 'query_canceled';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER size_check AFTER INSERT ON duetime.jobs REFERENCING NEW TABLE AS stored
  FOR EACH STATEMENT EXECUTE FUNCTION check_size();
"""


@pytest.fixture
async def checking(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore.from_url(postgres_url)
    await store.migrate()
    await store.open()
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(SIZE_CHECK)
    await connection.close()
    yield store
    await store.close()


async def stored_and_counted(store: PostgresStore, drafts: list[JobDraft]) -> list[UUID]:
    stored = await store.add_jobs(drafts)
    counted = (await live_counts(store)).values()
    assert sum(queue.pending for queue in counted) == len(set(stored))
    return stored


async def test_large_batch_is_stored_in_chunks_if_a_job_of_its_id_range_has_finished(
    checking: PostgresStore,
) -> None:
    now = await checking.time()
    drafts = jobs(INSERT_CHUNK + 1, now + HOUR)
    await finished(checking, await joined(checking), job(drafts[INSERT_CHUNK // 2].due_at), now)
    assert await stored_and_counted(checking, drafts) == [draft.id for draft in drafts]


async def test_large_batch_with_unique_keys_is_stored_in_chunks(checking: PostgresStore) -> None:
    now = await checking.time()
    drafts = [
        draft._replace(unique_key=str(number))
        for number, draft in enumerate(jobs(INSERT_CHUNK + 1, now + HOUR))
    ]
    drafts.append(job(now + HOUR, unique_key="0"))
    assert await stored_and_counted(checking, drafts) == [*(draft.id for draft in drafts[:-1]), drafts[0].id]


async def test_failing_batch_stores_nothing(checking: PostgresStore) -> None:
    drafts = [
        draft._replace(unique_key=str(number)) for number, draft in enumerate(jobs(INSERT_CHUNK + 1, 0))
    ]
    drafts[-1] = drafts[-1]._replace(unique_key="no\0text")
    with pytest.raises(StoreError):
        await checking.add_jobs(drafts)
    assert await live_counts(checking) == {}
