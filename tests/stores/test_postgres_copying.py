"""Bulk submission writes rows itself: every column, every kind of value, as the driver would have written them."""

from __future__ import annotations

from itertools import cycle, islice
from random import Random

import asyncpg
import pytest

from duetime.model.ids import Ids
from duetime.model.job import JobDraft, Overlap
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.copying import ROWS_IN_A_PIECE, in_pieces
from duetime.stores.postgres.jobs import COPY_FROM
from duetime.testing.conformance.drafts import DAY, TENANT, job, jobs, stored

FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # of the years 1 and 9999
TEXTS = (None, "", "plain", "Grüße, 世界 🦄", "a" * 3_000)
DATA = (None, b"", b"{}", bytes(range(256)), b"\xff" * 70_000)
IDS = (None, *(Ids().new(0) for _ in range(3)))


def variety(count: int) -> list[JobDraft]:
    """Every column with each of its kinds, in all sorts of company."""
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
                gate=texts[3],
            )
        )
    return drafts


async def test_rows_come_back_as_they_were(store: PostgresStore) -> None:
    drafts = variety(2 * ROWS_IN_A_PIECE + 1)
    assert await store.add_jobs(drafts) == [draft.id for draft in drafts]
    for draft in drafts:
        found = await stored(store, draft.id)
        assert tuple(getattr(found, name) for name in JobDraft._fields) == tuple(draft)


async def test_they_are_the_rows_that_the_driver_would_have_written(store: PostgresStore) -> None:
    drafts = variety(300)
    await store.add_jobs(drafts)
    line, columns = store._lines.submit, ", ".join(JobDraft._fields)

    async def written(connection: asyncpg.Connection) -> list[asyncpg.Record]:
        rows: list[asyncpg.Record] = await connection.fetch(f"SELECT {columns} FROM duetime.jobs ORDER BY id")
        return rows

    ours = await line.run(written)
    await line.run(lambda connection: connection.execute("TRUNCATE duetime.jobs"))
    await line.run(
        lambda connection: connection.copy_records_to_table("jobs", schema_name="duetime", columns=JobDraft._fields, records=drafts)
    )
    assert await line.run(written) == ours


@pytest.mark.parametrize("count", [0, 1, ROWS_IN_A_PIECE - 1, ROWS_IN_A_PIECE, ROWS_IN_A_PIECE + 1])
async def test_pieces_are_not_too_large_and_hold_all(count: int) -> None:
    drafts = jobs(count, 0)
    pieces = [piece async for piece in in_pieces(drafts)]
    assert len(pieces) == 2 + -(-count // ROWS_IN_A_PIECE)
    assert b"".join(pieces).count(b"\x00\x12\x00\x00\x00\x10") == count


async def test_what_cannot_be_written_leaves_nothing_behind_and_the_line_sound(store: PostgresStore) -> None:
    now = await store.time()
    drafts = jobs(3 * ROWS_IN_A_PIECE, now)
    with pytest.raises(UnicodeEncodeError):
        await store.add_jobs([*drafts[:-1], drafts[-1]._replace(owner="\ud800")])
    assert await store.count_jobs() == []
    assert len(await store.add_jobs(drafts)) == len(drafts)


async def test_a_batch_of_which_one_is_stored_already_adds_the_others(store: PostgresStore) -> None:
    drafts = jobs(3 * COPY_FROM, await store.time() + DAY)
    await store.add_jobs(drafts[COPY_FROM : COPY_FROM + 1])
    assert await store.add_jobs(drafts) == [draft.id for draft in drafts]
    assert sum(queue.pending for queue in await store.count_jobs()) == len(drafts)
    assert (await store.get_job(TENANT, drafts[0].id)) is not None
