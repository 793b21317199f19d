"""Retention on PostgreSQL drops whole days of history: partitions, not rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from duetime.stores.postgres import PostgresStore
from duetime.testing.conformance.drafts import DAY, job, joined, settle, started, success

OLD = datetime.now(UTC) - timedelta(days=9)
PARENTS = ("history", "attempts")


@pytest.fixture
def old_day(postgres_database: str) -> list[str]:
    """Partitions of a day that has passed, as nodes made them ahead of it."""
    names = [f"{parent}_{OLD:%Y%m%d}" for parent in PARENTS]
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        for parent, name in zip(PARENTS, names, strict=True):
            connection.execute(
                f"CREATE TABLE duetime.{name} PARTITION OF duetime.{parent} "
                f"FOR VALUES FROM ('{OLD:%Y-%m-%d} 00:00+00') TO ('{OLD + timedelta(days=1):%Y-%m-%d} 00:00+00')"
            )
    return names


def tables(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT relname FROM pg_class WHERE relkind = 'r'").fetchall()
    return {str(name) for (name,) in rows}


async def test_prune_drops_the_partitions_of_old_days(
    store: PostgresStore, postgres_database: str, old_day: list[str]
) -> None:
    node, now = await joined(store), await store.time()
    old, recent = await started(store, node, job(now)), await started(store, node, job(now))
    assert await settle(store, [success(old, now), success(recent, now)]) == []
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("UPDATE duetime.history SET finished_at = %s WHERE id = %s", [OLD, old.id])
        assert connection.execute(f"SELECT id FROM duetime.{old_day[0]}").fetchall() == [(old.id,)]

    assert await store.prune(now - 5 * DAY) == 1

    left = tables(postgres_database)
    assert not left & set(old_day)
    assert {f"{parent}_{datetime.now(UTC):%Y%m%d}" for parent in PARENTS} <= left
    assert await store.get_job(old.tenant, old.id) is None
    assert await store.get_job(recent.tenant, recent.id) is not None
