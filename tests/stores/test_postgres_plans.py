"""How the server executes the frequent statements, whatever its statistics say: see the remarks in the .sql
files."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from duetime.model.ids import SEGMENTS, Ids
from duetime.model.instant import SECOND
from duetime.store import ScheduleState
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.connection import PostgresConnection
from duetime.stores.postgres.connections import SQL
from duetime.stores.postgres.jobs import columns as draft_columns
from duetime.stores.postgres.schedules import _fire_columns as fire_columns
from duetime.stores.postgres.schedules import _values as schedule_values
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    LANE,
    PRIORITY,
    QUEUE,
    TARGET,
    TENANT,
    claim,
    death,
    firing,
    hand_over,
    job,
    jobs,
    joined,
    limit,
    put,
    request,
    schedule,
    set_limits,
    settle,
    started,
    success,
)

MANY = 3_000
FEW_BLOCKS = 60


@pytest.fixture
async def store(postgres_database: str) -> AsyncIterator[PostgresStore]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        # Dead entries that earlier tests left in the indexes must not count as read.
        connection.execute("VACUUM (INDEX_CLEANUP ON) duetime.jobs, duetime.queues, duetime.nodes")
    store = PostgresStore.from_url(postgres_database)
    await store.open()
    yield store
    await store.close()


async def plan(connection: PostgresConnection, statement: str, *arguments: Any) -> dict[str, Any]:
    """How the connection executes the statement, which is rolled back."""

    async def work(connection: Any, _is_retry: bool) -> str:
        await connection.execute("BEGIN")
        try:
            text: str = await connection.fetchval(
                f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {SQL[statement]}", *arguments
            )
        finally:
            await connection.execute("ROLLBACK")
        return text

    [explained] = json.loads(await connection.run(work))
    top: dict[str, Any] = explained["Plan"]
    return top


async def fewest_blocks(connection: PostgresConnection, statement: str, *arguments: Any) -> int:
    """Of some executions: one after autovacuum, or after many writes, reads catalogues again and cleans
    up."""
    tops = [await plan(connection, statement, *arguments) for _ in range(4)]
    return min(int(top["Shared Hit Blocks"] + top["Shared Read Blocks"]) for top in tops)


def nodes(top: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield top
    for below in top.get("Plans", ()):
        yield from nodes(below)


def ways(top: dict[str, Any], table: str) -> set[str]:
    """The indexes, or other ways, by which rows of this table were found."""
    return {
        each.get("Index Name", each["Node Type"])
        for each in nodes(top)
        if each.get("Relation Name") == table and "Scan" in each["Node Type"] and each["Actual Loops"]
    }


def rows_read(top: dict[str, Any], table: str) -> float:
    scans = [
        each for each in nodes(top) if each.get("Relation Name") == table and "Scan" in each["Node Type"]
    ]
    return float(
        sum(
            (each["Actual Rows"] + each.get("Rows Removed by Filter", 0)) * each["Actual Loops"]
            for each in scans
        )
    )


async def test_list_of_nodes_that_is_not_counted_does_not_grow_with_dead_rows(
    store: PostgresStore, postgres_database: str
) -> None:
    """Planners and alerts ask for it every second, also while a long transaction keeps the rows of past jobs."""
    node, now = await joined(store), await store.time()
    read = store._connections.read
    with psycopg.connect(postgres_database) as held:
        held.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        held.execute("SELECT count(*) FROM duetime.nodes")
        await store.add_jobs([job(now) for _ in range(MANY)])
        claimed = (await store.claim(request(node, LANE, room=MANY))).jobs
        await store.settle([success(one, now) for one in claimed])
        assert await fewest_blocks(read, "nodes", True, False) < FEW_BLOCKS / 10
        assert await fewest_blocks(read, "nodes", True, True) > FEW_BLOCKS


def mislead(url: str) -> None:
    """Have the statistics say that the table is empty, as autoanalyze does when it runs at such a moment."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE duetime.jobs")


async def drained(store: PostgresStore, node: Any) -> None:
    """Leave many dead entries in every index."""
    now = await store.time()
    await store.add_jobs(jobs(MANY, now - HOUR))
    while claimed := await claim(store, request(node, room=1_000)):
        await settle(store, [success(row, now) for row in claimed])


def lane_of(statement: str, *lane: object) -> list[Any]:
    """One lane as the statement takes it."""
    return list(lane) if statement == "claim_lane" else [[value] for value in lane]


def successes(columns: list[Any]) -> list[Any]:
    """Settlements, column by column, as the statement for successes takes them."""
    return [columns[0], columns[1][0], columns[7], columns[8], columns[9], None]


NO_SUCCESSORS = (None, 0, (), ())


@pytest.mark.parametrize("statement", ["claim", "claim_lane"])
async def test_claim_does_not_read_jobs_that_are_not_due(store: PostgresStore, statement: str) -> None:
    node, now = await joined(store), await store.time()
    await store.add_jobs(
        [
            *jobs(MANY, now + DAY),
            *jobs(MANY, now + DAY, overlap="queue", schedule_id=Ids().new(0)),
            *jobs(5, now - HOUR),
        ]
    )
    asked = (100, node, *lane_of(statement, QUEUE, PRIORITY, 0, TENANT), 0, [TARGET])
    top = await plan(store._connections.claim, statement, *asked)
    assert ways(top, "jobs") <= {"jobs_due", "jobs_needing_permit", "Tid Scan"}
    assert rows_read(top, "jobs") <= 11
    assert (
        await fewest_blocks(store._connections.claim, statement, *asked) < MANY // 3
    )  # one for each that is not due, if they were read


@pytest.mark.parametrize("statement", ["claim", "claim_lane"])
async def test_claim_reads_from_its_lower_bound(store: PostgresStore, statement: str) -> None:
    """Dead entries below the bound cost nothing, even while an open transaction keeps them."""
    node, now = await joined(store), await store.time()
    await store.add_jobs([*jobs(MANY, now - HOUR), *jobs(3, now - SECOND)])
    lane = LANE._replace(low=now - 2 * SECOND)
    top = await plan(store._connections.claim, statement, 100, node, *lane_of(statement, *lane), 0, [TARGET])
    assert rows_read(top, "jobs") == 6


async def test_claim_of_named_jobs_reads_only_these(store: PostgresStore, postgres_database: str) -> None:
    """By their ids, also when the statistics say that any index is as good as the primary key."""
    node, now = await joined(store), await store.time()
    mislead(postgres_database)
    named = jobs(50, now - HOUR)
    await store.add_jobs([*jobs(MANY, now - DAY), *named, *jobs(MANY, now + DAY)])
    ids, attempts = [draft.id for draft in named], [0] * len(named)
    asked = (100, node, ids, attempts, 0, [TARGET])
    top = await plan(store._connections.claim, "claim_named", *asked)
    assert ways(top, "jobs") <= {"jobs_pkey", "Tid Scan"}
    assert rows_read(top, "jobs") == 2 * len(named)


async def test_candidates_among_named_jobs_cost_the_same_beside_many_other_jobs(
    store: PostgresStore, postgres_database: str
) -> None:
    node, now = await joined(store), await store.time()
    await set_limits(store, limit(2))
    named = [job(now - HOUR + at, limit_key=f"{at % 10}") for at in range(40)]
    await store.add_jobs(named)
    ids, attempts = [draft.id for draft in named], [0] * len(named)
    locks = (node, ids, attempts, 0, [TARGET], True)
    asked: tuple[Any, ...] = (node, 100, 0, 0, True, [QUEUE], [], [], [], 0, [TARGET], ids)

    async def blocks() -> int:
        connection = store._connections.claim
        locked = await fewest_blocks(connection, "lock_named", *locks)
        return locked + await fewest_blocks(connection, "named_candidates", *asked)

    alone = await blocks()
    mislead(postgres_database)
    await store.add_jobs(
        [
            *jobs(MANY, now - DAY),
            *(job(now - DAY + at, limit_key=f"other {at}") for at in range(MANY)),
            *jobs(MANY, now - DAY, limit_key="flood"),
        ]
    )
    assert await blocks() < 3 * alone


async def test_listing_of_due_jobs_reads_only_due_jobs_from_the_lower_bound(
    store: PostgresStore, postgres_database: str
) -> None:
    now = await store.time()
    mislead(postgres_database)
    await store.add_jobs(
        [
            *jobs(MANY, now - DAY),
            *jobs(10, now - SECOND),
            *jobs(5, now - HOUR, overlap="queue", schedule_id=Ids().new(0)),
            *jobs(MANY, now + DAY),
            *jobs(MANY, now + DAY, overlap="queue", schedule_id=Ids().new(0)),
        ]
    )
    lane = LANE._replace(low=now - 2 * SECOND)
    asked = (*([value] for value in lane), list(range(SEGMENTS)), 0, 100)
    top = await plan(store._connections.claim, "due_jobs", *asked)
    assert ways(top, "jobs") == {"jobs_due", "jobs_needing_permit"}
    assert rows_read(top, "jobs") == 17  # and one of each kind that falls due next


async def test_claim_without_limits_reads_only_empty_indexes_of_limits(store: PostgresStore) -> None:
    node, now = await joined(store), await store.time()
    await store.add_jobs(jobs(50, now - HOUR))
    top = await plan(
        store._connections.claim, "claim", 100, node, [QUEUE], [PRIORITY], [0], [TENANT], 0, [TARGET]
    )
    looks = [
        each
        for each in nodes(top)
        if each.get("Relation Name") == "queues" or each.get("Index Name") == "jobs_needing_permit"
    ]
    assert {each["Index Name"] for each in looks} == {
        "queues_paused",
        "queues_limited",
        "jobs_needing_permit",
    }
    assert [each["Actual Rows"] for each in looks] == [0] * 3


async def blocks_of_candidates(store: PostgresStore, node: Any) -> int:
    asked = (node, 100, 300, 116, True, [QUEUE], [PRIORITY], [0], [TENANT], 0, [TARGET])
    return await fewest_blocks(store._connections.claim, "claim_candidates", *asked)


async def test_candidates_cost_the_same_beside_many_other_jobs(
    store: PostgresStore, postgres_database: str
) -> None:
    """Jobs of other lanes, not due, without a limit key, or waiting for a permit: none of them is read."""
    node, now = await joined(store), await store.time()
    await set_limits(store, limit(2))
    await store.add_jobs([job(now - HOUR + at, limit_key=f"{at % 10}") for at in range(40)])
    alone = await blocks_of_candidates(store, node)
    mislead(postgres_database)
    await store.add_jobs(
        [
            *jobs(MANY, now + DAY),
            *(job(now + DAY + at, limit_key=f"{at % 10}") for at in range(MANY)),
            *(job(now + DAY + at, limit_key=f"later {at % 300}") for at in range(MANY)),
            *(job(now - HOUR, limit_key=f"{at % 10}", queue="other") for at in range(MANY)),
            *jobs(MANY, now - DAY, limit_key="flood"),
        ]
    )
    assert await blocks_of_candidates(store, node) < 3 * alone


async def test_waiting_jobs_of_a_schedule_are_not_read(store: PostgresStore, postgres_database: str) -> None:
    """One job of the schedule runs; thousands wait for it. The statistics may be those of another time."""
    node, now, behind = await joined(store), await store.time(), Ids().new(0)
    await started(store, node, job(now - DAY, schedule_id=behind, schedule="schedule", overlap="queue"))
    mislead(postgres_database)
    await store.add_jobs(
        [job(now - HOUR + at, schedule_id=behind, schedule="schedule", overlap="queue") for at in range(MANY)]
    )
    assert await claim(store, request(node)) == []
    assert (await store.claim(request(node))).more is False
    assert await blocks_of_candidates(store, node) < FEW_BLOCKS


async def test_passing_a_permit_on_reads_only_the_next_waiting_jobs(
    store: PostgresStore, postgres_database: str
) -> None:
    node, now = await joined(store), await store.time()
    await set_limits(store, limit(2))
    mislead(postgres_database)
    await store.add_jobs([*jobs(MANY, now - HOUR, limit_key="a"), *jobs(MANY, now - HOUR, limit_key="b")])
    decisions = [success(row, now) for row in await claim(store, request(node))]
    assert len(decisions) == 4
    wanted = (node, 100, [QUEUE], [TARGET])
    asked = (*zip(*decisions, strict=True), [1] * len(decisions), *wanted)
    assert await fewest_blocks(store._connections.settle, "settle", *asked) < 10 * FEW_BLOCKS


@pytest.mark.parametrize("statement", ["waiting_names", "promote"])
async def test_sweep_for_free_permits_reads_one_job_of_each_name(
    store: PostgresStore, statement: str
) -> None:
    node, now = await joined(store), await store.time()
    await store.add_jobs([job(now - HOUR, limit_key=f"{at % 10}") for at in range(MANY)])
    await set_limits(store, limit(1))
    await claim(store, request(node))
    asked = {"waiting_names": ("", 500), "promote": ([f"{at}" for at in range(10)], [1] * 10)}[statement]
    top = await plan(store._connections.sweep, statement, *asked)
    assert rows_read(top, "jobs") <= 40


async def test_settling_jobs_with_a_limit_key_uses_the_primary_key(
    store: PostgresStore, postgres_database: str
) -> None:
    """Not the index of running jobs by limit key."""
    node, now = await joined(store), await store.time()
    await store.add_jobs([job(now - HOUR + at, limit_key=f"{at}") for at in range(200)])
    decisions = [success(row, now) for row in await claim(store, request(node, room=200))]
    assert len(decisions) == 200
    mislead(postgres_database)
    columns = list(zip(*decisions, strict=True))
    nothing = [None] * 200
    for statement, arguments in (
        ("settle_successes", successes(columns)),
        ("settle", [*columns, [1] * 200, *NO_SUCCESSORS]),
        ("save_progress", [columns[0], columns[1], [b"x"] * 200, nothing, [False] * 200, nothing]),
    ):
        connections = store._connections
        top = await plan(
            connections.progress if statement == "save_progress" else connections.settle,
            statement,
            *arguments,
        )
        assert "jobs_pkey" in ways(top, "jobs") <= {"jobs_pkey", "Tid Scan"}, statement
        assert rows_read(top, "jobs") <= 3 * len(decisions), statement


async def test_unique_keys_are_found_by_key(store: PostgresStore) -> None:
    await drained(store, await joined(store))
    asked = (TENANT, "key", ["succeeded"], None)
    for statement in ("holder", "finished_holder"):
        top = await plan(store._connections.submit, statement, *asked)
        assert not any(each["Node Type"] == "Seq Scan" for each in nodes(top)), statement
        assert sum(each["Actual Rows"] * each["Actual Loops"] for each in nodes(top)) == 0, statement


@pytest.mark.parametrize("statement", ["settle_successes", "settle"])
async def test_settling_uses_the_primary_key(
    store: PostgresStore, postgres_database: str, statement: str
) -> None:
    """With statistics of an empty table, and thousands of dead entries that a reordered join would read."""
    node, now = await joined(store), await store.time()
    await drained(store, node)
    mislead(postgres_database)
    await store.add_jobs(jobs(200, now - HOUR))
    decisions = [success(row, now) for row in await claim(store, request(node, room=200))]
    columns = list(zip(*decisions, strict=True))
    arguments = (
        successes(columns)
        if statement == "settle_successes"
        else [*columns, [1] * len(decisions), *NO_SUCCESSORS]
    )
    top = await plan(store._connections.settle, statement, *arguments)
    assert ways(top, "jobs") <= {"jobs_pkey", "Tid Scan"}
    assert rows_read(top, "jobs") <= 3 * len(decisions)


async def test_external_jobs_use_the_primary_key_and_the_index_of_deadlines(
    store: PostgresStore, postgres_database: str
) -> None:
    node, now = await joined(store), await store.time()
    await store.add_jobs(jobs(MANY, now - HOUR))
    claimed = await claim(store, request(node, room=1_000))
    mislead(postgres_database)
    decisions = [hand_over(row, now + at, now) for at, row in enumerate(claimed[:200])]
    top = await plan(
        store._connections.settle,
        "settle",
        *zip(*decisions, strict=True),
        [1] * len(decisions),
        *NO_SUCCESSORS,
    )
    assert ways(top, "jobs") == {"jobs_pkey", "Tid Scan"}
    assert await settle(store, decisions) == []
    assert await settle(store, [hand_over(row, now + DAY, now) for row in claimed[200:]]) == []
    top = await plan(store._connections.sweep, "jobs_past_deadline", 500)
    assert ways(top, "jobs") == {"jobs_external"}
    assert rows_read(top, "jobs") == 200


async def test_refused_settlements_are_found_by_id(store: PostgresStore, postgres_database: str) -> None:
    node, now = await joined(store), await store.time()
    await drained(store, node)
    mislead(postgres_database)
    ids = [draft.id for draft in jobs(50, now)]
    top = await plan(store._connections.settle, "refused", ids, [1] * 50, ["succeeded"] * 50, [now] * 50)
    assert (
        sum(rows_read(top, table) for table in {each.get("Relation Name", "") for each in nodes(top)} - {""})
        == 0
    )


async def test_firing_uses_the_primary_key(store: PostgresStore) -> None:
    """Thousands of schedules share one cursor at midnight: by the index of cursors each would cost a look at
    all."""
    now = await store.time()
    made = [await put(store, schedule(f"schedule {number}"), now) for number in range(100)]
    top = await plan(
        store._connections.plan, "fire", *fire_columns([firing(each, now + HOUR, now) for each in made])
    )
    assert ways(top, "schedules") <= {"schedules_pkey", "Tid Scan"}
    assert rows_read(top, "schedules") <= 2 * len(made)


async def test_storing_reads_the_history_only_by_id(store: PostgresStore) -> None:
    node, now = await joined(store), await store.time()
    await drained(store, node)
    drafts = jobs(50, now - HOUR)  # within the ids of finished jobs: each must be looked up
    top = await plan(store._connections.submit, "add_jobs", *draft_columns(drafts, {}))
    assert not any(each["Node Type"] == "Seq Scan" for each in nodes(top))
    assert sum(each.get("Rows Removed by Filter", 0) * each["Actual Loops"] for each in nodes(top)) <= 100


FEW = 4


async def test_changes_of_a_few_jobs_read_no_others(store: PostgresStore, postgres_database: str) -> None:
    mislead(postgres_database)
    now = await store.time()
    drafts = jobs(MANY, now + DAY)
    await store.add_jobs(drafts)
    chosen = [draft.id for draft in drafts[:: MANY // FEW][:FEW]]
    for statement, *values in (
        ("cancel_jobs", ["why"] * FEW),
        ("reschedule_jobs", [now] * FEW, [None] * FEW),
    ):
        top = await plan(store._connections.submit, statement, [TENANT] * FEW, chosen, *values)
        assert rows_read(top, "jobs") <= 4 * FEW, statement
        assert ways(top, "jobs") <= {"jobs_pkey", "Tid Scan"}, statement


async def test_dead_letters_are_found_by_id(store: PostgresStore) -> None:
    node, now = await joined(store), await store.time()
    drafts = jobs(MANY, now)
    await store.add_jobs(drafts)
    while claimed := await claim(store, request(node, room=1_000)):
        await settle(store, [death(row, now) for row in claimed])
    chosen = [draft.id for draft in drafts[:: MANY // FEW][:FEW]]
    top = await plan(
        store._connections.submit, "resolve_dead_jobs", [TENANT] * FEW, chosen, ["discarded"] * FEW
    )
    looked = sum(
        each["Actual Rows"] * each["Actual Loops"]
        for each in nodes(top)
        if each.get("Relation Name", "").startswith("history")
    )
    assert looked <= 3 * FEW


async def test_changes_of_a_few_schedules_read_no_others(
    store: PostgresStore, postgres_database: str
) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("ANALYZE duetime.schedules")
    mislead(postgres_database)
    now = await store.time()
    made = [await put(store, schedule(f"s{number:03}"), now + HOUR) for number in range(300)]
    await store.add_jobs([job(now + DAY, schedule_id=one.id, schedule=one.draft.name) for one in made])
    names, ids = [one.draft.name for one in made[:FEW]], [one.id for one in made[:FEW]]
    submit = store._connections.submit
    states = [
        (TENANT, one.draft.name, *schedule_values(ScheduleState(one.draft, now)), one.id)
        for one in made[:FEW]
    ]
    plans = {
        "lock_schedules": await plan(submit, "lock_schedules", [TENANT] * FEW, names, [1] * FEW),
        "update_schedules": await plan(submit, "update_schedules", *zip(*states, strict=True)),
        "withdraw_jobs": await plan(submit, "withdraw_jobs", ids),
        "record_changes": await plan(
            submit, "record_changes", ids, [1] * FEW, [None] * FEW, ["paused"] * FEW, now
        ),
        "get_schedules": await plan(store._connections.read, "get_schedules", [TENANT] * FEW, names),
    }
    assert {name for name, top in plans.items() if rows_read(top, "schedules") > FEW * FEW} == set()
    assert {name for name, top in plans.items() if rows_read(top, "jobs") > FEW} == set()
