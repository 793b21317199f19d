"""The COPY encoder writes every column and every kind of value as the driver does."""

from __future__ import annotations

from itertools import cycle, islice
from random import Random

import asyncpg
import pytest

from duetime.model.ids import Ids
from duetime.model.job import JobDraft, Overlap
from duetime.model.permits import READY_PER_KEY
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.copy_encoder import ROWS_PER_CHUNK, encode_in_chunks
from duetime.stores.postgres.jobs import MIN_COPY
from duetime.testing.conformance.drafts import DAY, TENANT, job, jobs, live_counts, stored

FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # of the years 1 and 9999
TEXTS = (None, "", "plain", "Grüße, 世界 🦄", "a" * 3_000)
DATA = (None, b"", b"{}", bytes(range(256)), b"\xff" * 70_000)
IDS = (None, *(Ids().new(0) for _ in range(3)))


def variety(count: int) -> list[JobDraft]:
    """Every column with each kind of value, in many combinations."""
    chance = Random(7)
    drafts = []
    for due_at in islice(cycle((FIRST, -1, 0, 1, LAST)), count):
        texts, data, ids = chance.choices(TEXTS, k=4), chance.choices(DATA, k=4), chance.choices(IDS, k=2)
        drafts.append(
            job(0)._replace(
                due_at=due_at,
                fire_time=chance.choice((FIRST, 0, LAST)),
                schedule_id=ids[0],
                schedule=texts[0],
                priority=chance.randrange(10),
                overlap=chance.choice((None, *Overlap)),
                target=texts[1] or "task",
                target_spec=data[0],
                payload=data[1] or b"{}",
                policies=data[2],
                owner=texts[2],
                labels=data[3],
                retry_of=ids[1],
                limit_key=texts[3],
            )
        )
    return drafts


async def test_stored_rows_equal_the_drafts(store: PostgresStore) -> None:
    drafts = variety(2 * ROWS_PER_CHUNK + 1)
    assert await store.add_jobs(drafts) == [draft.id for draft in drafts]
    for draft in drafts:
        found = await stored(store, draft.id)
        assert tuple(getattr(found, name) for name in JobDraft._fields) == tuple(draft)


async def test_rows_equal_those_of_the_driver(store: PostgresStore) -> None:
    drafts = variety(300)
    await store.add_jobs(drafts)
    connection, columns = store._connections.submit, ", ".join(JobDraft._fields)

    async def written(connection: asyncpg.Connection, _is_retry: bool) -> list[asyncpg.Record]:
        rows: list[asyncpg.Record] = await connection.fetch(f"SELECT {columns} FROM duetime.jobs ORDER BY id")
        return rows

    ours = await connection.run(written)
    await connection.run(lambda connection, _: connection.execute("TRUNCATE duetime.jobs"))
    await connection.run(
        lambda connection, _: connection.copy_records_to_table(
            "jobs", schema_name="duetime", columns=JobDraft._fields, records=drafts
        )
    )
    assert await connection.run(written) == ours


@pytest.mark.parametrize("count", [0, 1, ROWS_PER_CHUNK - 1, ROWS_PER_CHUNK, ROWS_PER_CHUNK + 1])
async def test_chunks_are_not_too_large_and_complete(count: int) -> None:
    drafts = jobs(count, 0)
    chunks = [chunk async for chunk in encode_in_chunks(drafts, {})]
    assert len(chunks) == 2 + -(-count // ROWS_PER_CHUNK)
    assert b"".join(chunks).count(b"\x00\x13\x00\x00\x00\x10") == count


async def test_failed_encoding_stores_nothing_and_leaves_the_connection_usable(store: PostgresStore) -> None:
    now = await store.time()
    drafts = jobs(3 * ROWS_PER_CHUNK, now)
    with pytest.raises(UnicodeEncodeError):
        await store.add_jobs([*drafts[:-1], drafts[-1]._replace(owner="\ud800")])
    assert await live_counts(store) == {}
    assert len(await store.add_jobs(drafts)) == len(drafts)


async def test_batch_with_a_stored_job_adds_the_others(store: PostgresStore) -> None:
    drafts = jobs(3 * MIN_COPY, await store.time() + DAY)
    await store.add_jobs(drafts[MIN_COPY : MIN_COPY + 1])
    assert await store.add_jobs(drafts) == [draft.id for draft in drafts]
    assert sum(queue.pending for queue in (await live_counts(store)).values()) == len(drafts)
    assert (await store.get_job(TENANT, drafts[0].id)) is not None


async def test_waiting_jobs_are_stored_with_the_name_they_wait_for(store: PostgresStore) -> None:
    now = await store.time()
    await store.add_jobs(jobs(3 * MIN_COPY, now - DAY, limit_key="a"))
    rows = await store._connections.read.fetch(
        "SELECT waits_for, count(*) FROM duetime.jobs GROUP BY waits_for ORDER BY waits_for"
    )
    assert [tuple(row) for row in rows] == [("a", 3 * MIN_COPY - READY_PER_KEY), (None, READY_PER_KEY)]
