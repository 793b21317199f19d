"""Bulk submission in the slow ways: of a batch some are stored already, some have finished, or all have keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import pytest

from duetime.errors import StoreError
from duetime.model.job import JobDraft
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.jobs import INSERT_AT_ONCE
from duetime.testing.conformance.drafts import HOUR, finished, job, jobs, joined

# As a server would that is slow, or a batch that is very large: a statement with more rows than this takes too long.
SCALES = f"""
CREATE FUNCTION weigh() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT count(*) FROM stored) > {INSERT_AT_ONCE} THEN
        RAISE EXCEPTION 'too many at once' USING ERRCODE = 'query_canceled';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER scales AFTER INSERT ON duetime.jobs REFERENCING NEW TABLE AS stored FOR EACH STATEMENT EXECUTE FUNCTION weigh();
"""


@pytest.fixture
async def weighing(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore.from_url(postgres_url)
    await store.migrate()
    await store.open()
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(SCALES)
    await connection.close()
    yield store
    await store.close()


async def held_up_by_nothing(store: PostgresStore, drafts: list[JobDraft]) -> list[UUID]:
    stored = await store.add_jobs(drafts)
    counted = await store.count_jobs()
    assert sum(queue.pending for queue in counted) == len(set(stored))
    return stored


async def test_a_large_batch_in_whose_time_another_job_has_finished(weighing: PostgresStore) -> None:
    now = await weighing.time()
    drafts = jobs(INSERT_AT_ONCE + 1, now + HOUR)
    await finished(weighing, await joined(weighing), job(drafts[INSERT_AT_ONCE // 2].due_at), now)
    assert await held_up_by_nothing(weighing, drafts) == [draft.id for draft in drafts]


async def test_a_large_batch_with_keys(weighing: PostgresStore) -> None:
    now = await weighing.time()
    drafts = [draft._replace(unique_key=str(number)) for number, draft in enumerate(jobs(INSERT_AT_ONCE + 1, now + HOUR))]
    drafts.append(job(now + HOUR, unique_key="0"))
    assert await held_up_by_nothing(weighing, drafts) == [*(draft.id for draft in drafts[:-1]), drafts[0].id]


async def test_all_of_it_or_nothing(weighing: PostgresStore) -> None:
    drafts = [draft._replace(unique_key=str(number)) for number, draft in enumerate(jobs(INSERT_AT_ONCE + 1, 0))]
    drafts[-1] = drafts[-1]._replace(unique_key="no\0text")
    with pytest.raises(StoreError):
        await weighing.add_jobs(drafts)
    assert await weighing.count_jobs() == []
