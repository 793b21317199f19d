"""Thousands that wait behind a job of their own schedule: claims look past them, and take what they would have taken otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from duetime.model.instant import SECOND
from duetime.store import ClaimRequest, Store
from duetime.stores.postgres import PostgresStore, work
from duetime.testing.conformance.claiming import ClaimantConformance, ClaimConformance
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    PRIORITY,
    QUEUE,
    TARGET,
    jobs,
    joined,
    new_id,
    of_schedule,
    request,
    started,
    success,
)
from duetime.testing.conformance.exclusive import ExclusiveConformance
from duetime.testing.conformance.racing import RaceConformance
from tests.stores.test_postgres_plans import fewest_blocks, plan, rows_looked_at

MANY = 2_000


def past_backlog(store: PostgresStore) -> PostgresStore:
    store._work._backlog_until = 1 << 62
    return store


class TestPastBacklog(ExclusiveConformance, ClaimConformance, ClaimantConformance, RaceConformance):
    """Whichever way a claim goes, it means the same."""

    @pytest.fixture
    async def store(self, postgres_database: str) -> AsyncIterator[Store]:
        store = past_backlog(PostgresStore.from_url(postgres_database))
        await store.open()
        yield store
        await store.close()

    @pytest.fixture
    async def second_store(self, store: PostgresStore) -> AsyncIterator[Store]:
        second = past_backlog(store.twin())
        await second.open()
        yield second
        await second.close()


async def backlog(store: PostgresStore, node: Any) -> None:
    """One runs, and many of its schedule wait for it."""
    behind, now = new_id(0), await store.time()
    await started(store, node, of_schedule(behind, now - DAY, "queue"))
    await store.add_jobs([of_schedule(behind, now - HOUR + number, "queue") for number in range(MANY)])


async def grown(store: PostgresStore, node: Any) -> None:
    """Leave the index by schedule higher than the one of exclusive jobs: to a planner that sees no jobs, it is the dearer of the two."""
    now = await store.time()
    await store.add_jobs([of_schedule(new_id(0), now - HOUR, None) for _ in range(MANY)])
    while claimed := await store.claim(request(node, room=1_000)):
        await store.settle([success(row, now) for row in claimed])


@pytest.mark.parametrize("analyzed", ["empty", "few", "full"])
async def test_of_a_backlog_each_is_read_once(store: PostgresStore, postgres_database: str, analyzed: str) -> None:
    """Whatever the statistics say: they may be those of another moment."""
    node = await joined(store)
    await grown(store, node)
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        if analyzed == "few":
            await store.add_jobs(jobs(5, await store.time()))
        if analyzed != "full":
            connection.execute("ANALYZE duetime.jobs")
        await backlog(store, node)
        if analyzed == "full":
            connection.execute("ANALYZE duetime.jobs")
    top = await plan(store._lines.claim, "claim_past_backlog", 100, node, [QUEUE], [PRIORITY], [0], 0, [TARGET])
    assert rows_looked_at(top, "jobs") <= MANY + 20


SCHEDULES = 100


async def test_claims_in_turns_find_what_else_a_schedule_has_by_schedule(store: PostgresStore, postgres_database: str) -> None:
    """Not among the exclusive jobs of all, though an index of them looks cheap to a planner that believes there are none."""
    node, now = await joined(store), await store.time()
    await grown(store, node)
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("ANALYZE duetime.jobs")
    await store.add_jobs([of_schedule(new_id(0), now - HOUR, "queue") for _ in range(SCHEDULES)])
    lane: tuple[Any, ...] = (SCHEDULES, node, [QUEUE], [PRIORITY], [0], 0, [TARGET], True)
    asked = (*lane, [], [], [], [], [], None, True, True, "", "", 1, [], [], [], [])
    alone = await fewest_blocks(store._lines.claim, "claim_in_turns", *asked)
    await store.add_jobs([of_schedule(new_id(0), now - SECOND, "queue") for _ in range(MANY)])
    assert await fewest_blocks(store._lines.claim, "claim_in_turns", *asked) < 2 * alone


async def test_what_is_not_due_is_not_read(store: PostgresStore) -> None:
    node, now = await joined(store), await store.time()
    await store.add_jobs([*jobs(MANY, now + DAY), *jobs(MANY, now + DAY, overlap="queue", schedule_id=new_id(0)), *jobs(5, now - HOUR)])
    top = await plan(store._lines.claim, "claim_past_backlog", 100, node, [QUEUE], [PRIORITY], [0], 0, [TARGET])
    assert rows_looked_at(top, "jobs") <= 10


async def test_a_claim_that_took_long_is_followed_by_ones_that_look_past(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    node, statements, run_claim = await joined(store), list[str](), work._run_claim

    async def noted(line: Any, statement: str, request: ClaimRequest) -> list[Any]:
        statements.append(statement)
        return await run_claim(line, statement, request)

    monkeypatch.setattr(work, "_run_claim", noted)
    monkeypatch.setattr(work, "SLOW", -1)  # whatever it takes is long
    for exclusive in (False, True, True, False):
        await store.claim(request(node, exclusive=exclusive))
    assert statements == ["claim_lane", "claim_with_exclusive", "claim_past_backlog", "claim_lane"]
