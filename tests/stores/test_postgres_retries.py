"""Repeated drafts whose jobs are just ending: none of them runs a second time."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from duetime.model.job import JobFilter
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.jobs import MIN_COPY
from duetime.testing.conformance.drafts import TENANT, job, jobs, live_counts
from tests.servers.proxy import Proxy
from tests.stores.test_postgres_limits import until_waiting

# As a settlement does.
FINISH = """
WITH d AS (DELETE FROM duetime.jobs WHERE id = ANY (%s) RETURNING *)
INSERT INTO duetime.history (id, tenant, fire_time, due_at, queue, priority, target, payload, unique_key,
  state, finished_at)
SELECT id, tenant, fire_time, due_at, queue, priority, target, payload, unique_key,
  'succeeded', clock_timestamp()
  FROM d
"""


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("number", [1, 3, MIN_COPY])
async def test_repeated_drafts_are_not_stored_while_their_jobs_finish(
    store: PostgresStore, postgres_database: str, number: int, keyed: bool
) -> None:
    drafts = jobs(number, await store.time())
    if keyed:
        drafts = [draft._replace(unique_key=f"key {draft.id}") for draft in drafts]
    ids = await store.add_jobs(drafts)
    with psycopg.connect(postgres_database) as settling:
        settling.execute(FINISH, [ids])
        again = asyncio.create_task(store.add_jobs(drafts, is_retry=True))
        await until_waiting(postgres_database, "submit")
        settling.commit()
    assert await again == ids
    assert sorted(row.id for row in await store.list_jobs(JobFilter(TENANT), 100)) == sorted(ids)
    assert sum(count.pending for count in (await live_counts(store)).values()) == 0


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("number", [1, 3, MIN_COPY])
async def test_jobs_that_finish_before_the_retry_are_not_stored_again(
    far: PostgresStore,
    proxy: Proxy,
    postgres_database: str,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    keyed: bool,
) -> None:
    """The connection itself repeats a call whose reply was lost."""
    now, connection, they_end = await far.time(), far._connections.submit, asyncio.Event()
    await far.add_jobs(jobs(number, now))
    connect = connection._connect

    async def connect_late() -> Any:
        await they_end.wait()
        return await connect()

    monkeypatch.setattr(connection, "_connect", connect_late)
    drafts = [*jobs(number - 1, now), job(now, payload=b"MARKER", unique_key="a key" if keyed else None)]
    ids = [draft.id for draft in drafts]
    proxy.drop_after(b"COMMIT" if keyed and number > 1 else b"MARKER")
    adding = asyncio.create_task(far.add_jobs(drafts))
    await proxy.dropped.wait()
    with psycopg.connect(postgres_database) as settling:
        assert settling.execute(FINISH, [ids]).rowcount == number
        they_end.set()
        await until_waiting(postgres_database, "submit")
        settling.commit()
    assert await adding == ids
    found = [row.id for row in await far.list_jobs(JobFilter(TENANT), 100)]
    assert sorted(found) == sorted(set(found)), "one was stored twice"
    assert sum(count.pending for count in (await live_counts(far)).values()) == number
