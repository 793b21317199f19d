"""How the server carries out the hot statements, whatever its statistics say: see the traps in the .sql files."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from duetime.model.ids import Ids
from duetime.model.instant import SECOND
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.jobs import columns as draft_columns
from duetime.stores.postgres.line import Line
from duetime.stores.postgres.lines import SQL
from duetime.stores.postgres.schedules import _fire_columns as fire_columns
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    LANE,
    PRIORITY,
    QUEUE,
    TARGET,
    TENANT,
    bound,
    death,
    firing,
    hand_over,
    job,
    jobs,
    joined,
    put,
    request,
    schedule,
    success,
)

MANY = 3_000
FEW_BLOCKS = 60


@pytest.fixture
async def store(postgres_database: str) -> AsyncIterator[PostgresStore]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        # What earlier tests left dead in the indexes is not to be counted as read by these.
        connection.execute("VACUUM (INDEX_CLEANUP ON) duetime.jobs, duetime.queues, duetime.nodes")
    store = PostgresStore.from_url(postgres_database)
    await store.open()
    yield store
    await store.close()


async def plan(line: Line, statement: str, *arguments: Any) -> dict[str, Any]:
    """How the line carries the statement out; what it changes is undone."""

    async def work(connection: Any) -> str:
        await connection.execute("BEGIN")
        try:
            text: str = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {SQL[statement]}", *arguments)
        finally:
            await connection.execute("ROLLBACK")
        return text

    [explained] = json.loads(await line.run(work))
    top: dict[str, Any] = explained["Plan"]
    return top


async def fewest_blocks(line: Line, statement: str, *arguments: Any) -> int:
    """Of some looks: one that comes after autovacuum, or after much was written, reads catalogues again and cleans up."""
    tops = [await plan(line, statement, *arguments) for _ in range(4)]
    return min(int(top["Shared Hit Blocks"] + top["Shared Read Blocks"]) for top in tops)


def nodes(top: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield top
    for below in top.get("Plans", ()):
        yield from nodes(below)


def ways(top: dict[str, Any], table: str) -> set[str]:
    """By which index, or other way, rows of this table were found."""
    return {
        each.get("Index Name", each["Node Type"])
        for each in nodes(top)
        if each.get("Relation Name") == table and "Scan" in each["Node Type"]
    }


def rows_looked_at(top: dict[str, Any], table: str) -> float:
    scans = [each for each in nodes(top) if each.get("Relation Name") == table and "Scan" in each["Node Type"]]
    return float(sum((each["Actual Rows"] + each.get("Rows Removed by Filter", 0)) * each["Actual Loops"] for each in scans))


def mislead(url: str) -> None:
    """Have the statistics say that the table is empty, as autoanalyze does when it comes by at such a moment."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE duetime.jobs")


async def drained(store: PostgresStore, node: Any) -> None:
    """Leave many dead entries in every index."""
    now = await store.time()
    await store.add_jobs(jobs(MANY, now - HOUR))
    while claimed := await store.claim(request(node, room=1_000)):
        await store.settle([success(row, now) for row in claimed])


def lane_of(statement: str, *lane: object) -> list[Any]:
    """One lane as the statement takes it."""
    return list(lane) if statement == "claim_lane" else [[value] for value in lane]


def successes(columns: list[Any]) -> list[Any]:
    """Settlements, column by column, as the statement for successes takes them."""
    return [columns[0], columns[1][0], columns[7], columns[8], columns[9], None]


@pytest.mark.parametrize("statement", ["claim", "claim_lane", "claim_with_exclusive"])
async def test_a_claim_does_not_touch_what_is_not_due(store: PostgresStore, statement: str) -> None:
    node, now = await joined(store), await store.time()
    await store.add_jobs([*jobs(MANY, now + DAY), *jobs(MANY, now + DAY, overlap="queue", schedule_id=Ids().new(0)), *jobs(5, now - HOUR)])
    asked = (100, node, *lane_of(statement, QUEUE, PRIORITY, 0), 0, [TARGET])
    top = await plan(store._lines.claim, statement, *asked)
    assert ways(top, "jobs") <= {"jobs_due", "jobs_exclusive", "jobs_schedule", "jobs_gated", "jobs_gated_due", "Tid Scan"}
    assert rows_looked_at(top, "jobs") <= 10
    assert await fewest_blocks(store._lines.claim, statement, *asked) < MANY // 3  # one for each that is not due, if they were touched


@pytest.mark.parametrize("statement", ["claim", "claim_lane"])
async def test_a_claim_reads_from_its_bound_on(store: PostgresStore, statement: str) -> None:
    """C15: dead entries below the bound cost nothing, even while somebody keeps them alive."""
    node, now = await joined(store), await store.time()
    await store.add_jobs([*jobs(MANY, now - HOUR), *jobs(3, now - SECOND)])
    lane = LANE._replace(low=now - 2 * SECOND)
    top = await plan(store._lines.claim, statement, 100, node, *lane_of(statement, *lane), 0, [TARGET])
    assert rows_looked_at(top, "jobs") == 6


async def blocks_of_gated_claim(store: PostgresStore, node: Any, ahead: int) -> int:
    """How many blocks a claim in turns looks at, at most two of a gate running."""
    asked = (100, node, [QUEUE], [PRIORITY], [0], 0, [TARGET], True, [TARGET], [2], [ahead], [None], [None], None)
    return await fewest_blocks(store._lines.claim, "claim_in_turns", *asked, False, True, "", "", 1, [], [], [], [])


@pytest.mark.parametrize("ahead", [0, 8])
async def test_a_claim_in_turns_costs_the_same_beside_many_others(store: PostgresStore, postgres_database: str, ahead: int) -> None:
    """Jobs of other lanes and targets, ahead in time, without a gate, or behind a full one: none of them is read one by one."""
    node, now = await joined(store), await store.time()
    await store.add_jobs([job(now - HOUR + at, gate=f"{at % 10}") for at in range(40)])
    await store.claim(request(node, room=1, bounds=(bound(most=2),)))
    alone = await blocks_of_gated_claim(store, node, ahead)
    await store.add_jobs(
        [
            *jobs(MANY, now + DAY),
            *(job(now + DAY + at, gate=f"{at % 10}") for at in range(MANY)),
            *(job(now + DAY + at, gate=f"ahead {at % 300}") for at in range(MANY)),
            *(job(now - HOUR, gate=f"{at % 10}", queue="other") for at in range(MANY)),
            *(job(now - HOUR, gate="elsewhere", target="other") for at in range(MANY)),
            *jobs(MANY, now - DAY, gate="full"),
        ]
    )
    assert len(await store.claim(request(node, room=1_000, bounds=(bound(most=2),)))) == 21
    await store.add_jobs([job(now - HOUR + at, gate=f"{at % 10}") for at in range(40)])
    for row in await store.held(node):
        if row.gate != "full":
            await store.settle([success(row, now)])
    mislead(postgres_database)
    # Every gate that has anything waiting here is visited once, by one descent of an index: there are three hundred more of them.
    assert await blocks_of_gated_claim(store, node, ahead) < 3 * alone + 310 * 5


@pytest.mark.parametrize("ahead", [0, 8])
async def test_a_claim_in_turns_reads_no_more_of_a_flood_than_it_takes(store: PostgresStore, ahead: int) -> None:
    node, now = await joined(store), await store.time()
    await store.add_jobs([job(now - HOUR + at, gate=f"{at % 10}") for at in range(200)])
    few = await blocks_of_gated_claim(store, node, ahead)
    await store.add_jobs([job(now - HOUR + at, gate=f"{at % 10}") for at in range(2 * MANY)])
    assert await blocks_of_gated_claim(store, node, ahead) < 2 * few


async def test_settling_gated_jobs_goes_by_the_primary_key_too(store: PostgresStore, postgres_database: str) -> None:
    """The index of running jobs by gate must not tempt the planner."""
    node, now = await joined(store), await store.time()
    await store.add_jobs([job(now - HOUR + at, gate="a") for at in range(200)])
    decisions = [success(row, now) for row in await store.claim(request(node, room=200))]
    mislead(postgres_database)
    columns = list(zip(*decisions, strict=True))
    for statement, arguments in (
        ("settle_successes", successes(columns)),
        ("settle", columns),
        ("save_notes", [columns[0], columns[1], [b"x"] * 200, [None] * 200]),
    ):
        top = await plan(store._lines.note if statement == "save_notes" else store._lines.settle, statement, *arguments)
        assert "jobs_pkey" in ways(top, "jobs") <= {"jobs_pkey", "Tid Scan"}, statement
        assert rows_looked_at(top, "jobs") <= 3 * len(decisions), statement


async def test_what_nobody_limits_is_looked_up_in_empty_indexes(store: PostgresStore) -> None:
    """The price of limits for those who have none: a look into three empty indexes."""
    node, now = await joined(store), await store.time()
    await store.add_jobs(jobs(50, now - HOUR))
    top = await plan(store._lines.claim, "claim_with_exclusive", 100, node, [QUEUE], [PRIORITY], [0], 0, [TARGET])
    looks = [each for each in nodes(top) if each.get("Relation Name") == "queues" or each.get("Index Name", "").startswith("jobs_gated")]
    assert {each["Index Name"] for each in looks} <= {"queues_paused", "queues_limited", "jobs_gated", "jobs_gated_due"}
    assert [each["Actual Rows"] for each in looks] == [0] * 3
    assert not any("goes_in_turns" in str(each.get("Output", "")) and each["Actual Loops"] for each in nodes(top))


async def test_unique_keys_are_looked_up_by_key(store: PostgresStore) -> None:
    await drained(store, await joined(store))
    asked = (TENANT, "key", ["succeeded"], None)
    for statement in ("holder", "finished_holder"):
        top = await plan(store._lines.submit, statement, *asked)
        assert not any(each["Node Type"] == "Seq Scan" for each in nodes(top)), statement
        assert sum(each["Actual Rows"] * each["Actual Loops"] for each in nodes(top)) == 0, statement


@pytest.mark.parametrize("statement", ["settle_successes", "settle"])
async def test_settling_goes_by_the_primary_key(store: PostgresStore, postgres_database: str, statement: str) -> None:
    """The plan trap: statistics of an empty table, and thousands of dead entries that a plan turned round would walk."""
    node, now = await joined(store), await store.time()
    await drained(store, node)
    mislead(postgres_database)
    await store.add_jobs(jobs(200, now - HOUR))
    decisions = [success(row, now) for row in await store.claim(request(node, room=200))]
    columns = list(zip(*decisions, strict=True))
    arguments = successes(columns) if statement == "settle_successes" else columns
    top = await plan(store._lines.settle, statement, *arguments)
    assert ways(top, "jobs") <= {"jobs_pkey", "Tid Scan"}
    assert rows_looked_at(top, "jobs") <= 3 * len(decisions)


async def test_handing_over_goes_by_the_primary_key_and_deadlines_by_their_own_index(store: PostgresStore, postgres_database: str) -> None:
    node, now = await joined(store), await store.time()
    await store.add_jobs(jobs(MANY, now - HOUR))
    claimed = await store.claim(request(node, room=1_000))
    mislead(postgres_database)
    decisions = [hand_over(row, now + at, now) for at, row in enumerate(claimed[:200])]
    top = await plan(store._lines.settle, "settle", *zip(*decisions, strict=True))
    assert ways(top, "jobs") == {"jobs_pkey", "Tid Scan"}
    assert await store.settle(decisions) == []
    assert await store.settle([hand_over(row, now + DAY, now) for row in claimed[200:]]) == []
    top = await plan(store._lines.sweep, "overdue", 500)
    assert ways(top, "jobs") == {"jobs_outside"}
    assert rows_looked_at(top, "jobs") == 200


async def test_refusals_are_looked_up_by_id(store: PostgresStore, postgres_database: str) -> None:
    node, now = await joined(store), await store.time()
    await drained(store, node)
    mislead(postgres_database)
    ids = [draft.id for draft in jobs(50, now)]
    top = await plan(store._lines.settle, "refused", ids, [1] * 50, ["succeeded"] * 50, [now] * 50)
    assert sum(rows_looked_at(top, table) for table in {each.get("Relation Name", "") for each in nodes(top)} - {""}) == 0


async def test_firing_goes_by_the_primary_key(store: PostgresStore) -> None:
    """Thousands of schedules share one cursor at midnight: found by the index of cursors, each would cost a look at all."""
    now = await store.time()
    made = [await put(store, schedule(f"schedule {number}"), now) for number in range(100)]
    top = await plan(store._lines.plan, "fire", *fire_columns([firing(each, now + HOUR, now) for each in made]))
    assert ways(top, "schedules") <= {"schedules_pkey", "Tid Scan"}
    assert rows_looked_at(top, "schedules") <= 2 * len(made)


async def test_storing_looks_into_the_past_only_by_id(store: PostgresStore) -> None:
    node, now = await joined(store), await store.time()
    await drained(store, node)
    drafts = jobs(50, now - HOUR)  # among the ids of those that finished: each must be looked up
    top = await plan(store._lines.submit, "add_jobs", *draft_columns(drafts))
    assert not any(each["Node Type"] == "Seq Scan" for each in nodes(top))
    assert sum(each.get("Rows Removed by Filter", 0) * each["Actual Loops"] for each in nodes(top)) <= 100


FEW = 4


async def test_what_is_done_to_a_few_jobs_together_looks_at_no_others(store: PostgresStore, postgres_database: str) -> None:
    mislead(postgres_database)
    now = await store.time()
    drafts = jobs(MANY, now + DAY)
    await store.add_jobs(drafts)
    chosen = [draft.id for draft in drafts[:: MANY // FEW][:FEW]]
    for statement, *values in (("cancel_jobs", ["why"] * FEW), ("change_jobs", [now] * FEW, [None] * FEW)):
        top = await plan(store._lines.submit, statement, [TENANT] * FEW, chosen, *values)
        assert rows_looked_at(top, "jobs") <= 4 * FEW, statement
        assert ways(top, "jobs") <= {"jobs_pkey", "Tid Scan"}, statement


async def test_dead_letters_dealt_with_together_are_found_by_their_ids(store: PostgresStore) -> None:
    node, now = await joined(store), await store.time()
    drafts = jobs(MANY, now)
    await store.add_jobs(drafts)
    while claimed := await store.claim(request(node, room=1_000)):
        await store.settle([death(row, now) for row in claimed])
    chosen = [draft.id for draft in drafts[:: MANY // FEW][:FEW]]
    top = await plan(store._lines.submit, "dispose_jobs", [TENANT] * FEW, chosen, ["discarded"] * FEW)
    looked = sum(each["Actual Rows"] * each["Actual Loops"] for each in nodes(top) if each.get("Relation Name", "").startswith("history"))
    assert looked <= 3 * FEW


async def test_what_is_done_to_a_few_schedules_together_looks_at_no_others(store: PostgresStore, postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("ANALYZE duetime.schedules")
    mislead(postgres_database)
    now = await store.time()
    made = [await put(store, schedule(f"s{number:03}"), now + HOUR) for number in range(300)]
    await store.add_jobs([job(now + DAY, schedule_id=one.id, schedule=one.draft.name) for one in made])
    names, ids = [one.draft.name for one in made[:FEW]], [one.id for one in made[:FEW]]
    nothing, line = [None] * FEW, store._lines.submit
    plans = {
        "lock_schedules": await plan(line, "lock_schedules", [TENANT] * FEW, names, nothing),
        "pause_schedules": await plan(line, "pause_schedules", ids, nothing),
        "resume_schedules": await plan(line, "resume_schedules", [TENANT] * FEW, names, [now] * FEW, nothing, nothing),
        "withdraw_jobs": await plan(line, "withdraw_jobs", ids),
        "record_withdrawals": await plan(line, "record_withdrawals", ids, [1] * FEW, nothing, now, "paused"),
        "get_schedules": await plan(store._lines.read, "get_schedules", [TENANT] * FEW, names),
    }
    assert {name for name, top in plans.items() if rows_looked_at(top, "schedules") > FEW * FEW} == set()
    assert {name for name, top in plans.items() if rows_looked_at(top, "jobs") > FEW} == set()
