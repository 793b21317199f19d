"""The PostgreSQL store against the conformance suite, directly and behind a pooler that assigns a session per
transaction."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator

import pytest

from duetime.store import Capabilities, Store
from duetime.stores.postgres import PostgresStore
from duetime.testing.conformance import (
    StoreConformance,
    announce,
    change,
    checkpoints,
    claim,
    events,
    external,
    fire,
    hints,
    leases,
    limits,
    nodes,
    overlap,
    queues,
    races,
    rates,
    records,
    retention,
    settle,
    submit,
    successors,
    transactions,
    unique,
    versions,
)
from tests.servers.pgbouncer import PgBouncer
from tests.stores.conftest import NAME


class TwoHandles:
    """Two handles on one database."""

    @pytest.fixture
    def url(self, postgres_database: str) -> str:
        return postgres_database

    @pytest.fixture
    async def store(self, url: str) -> AsyncIterator[Store]:
        store = PostgresStore.from_url(url)
        await store.open()
        yield store
        await store.close()

    @pytest.fixture
    async def second_store(self, store: Store) -> AsyncIterator[Store]:
        second = store.clone()
        await second.open()
        yield second
        await second.close()


class TestPostgres(TwoHandles, StoreConformance):
    def test_store_has_every_capability_of_a_shared_store(self) -> None:
        store = PostgresStore.from_url("postgresql://host/database")
        assert store.capabilities == Capabilities(
            durable=True, shared=True, hints=True, owner_gone=True, transactions=True, replicas=True
        )


async def test_short_reply_allocates_little_memory(store: PostgresStore) -> None:
    await store.time()
    tracemalloc.start()
    try:
        await store.time()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 128 * 1024  # bytes: malloc gets larger blocks from the kernel each time


class TestBehindPooler(
    TwoHandles,
    submit.SubmitConformance,
    submit.UniqueKeyConformance,
    unique.AdmissionConformance,
    unique.AdmissionRaceConformance,
    change.CancelConformance,
    claim.ClaimConformance,
    overlap.OverlapConformance,
    limits.LimitConformance,
    limits.LimitWithOverlapConformance,
    limits.LimitRaceConformance,
    limits.FairTurnConformance,
    rates.RateConformance,
    rates.NextStartConformance,
    queues.QueueConformance,
    queues.QueuePauseConformance,
    queues.QueueLimitConformance,
    queues.QueueRateConformance,
    successors.SuccessorConformance,
    checkpoints.CheckpointConformance,
    checkpoints.OnceConformance,
    announce.AnnounceConformance,
    transactions.TaskTransactionConformance,
    settle.SettleConformance,
    external.ExternalJobConformance,
    external.DeadlineConformance,
    external.ExternalCancelConformance,
    races.RaceConformance,
    fire.FireConformance,
    nodes.BeatConformance,
    nodes.ExpireNodesConformance,
    leases.LeaseConformance,
    versions.ScheduleVersionConformance,
    versions.VersionNumberConformance,
    records.RecordConformance,
    records.RecordVersionConformance,
    events.EventConformance,
    events.EventOrderConformance,
    retention.PruneConformance,
    retention.TargetPruneConformance,
    hints.HintConformance,
):
    @pytest.fixture
    def url(self, pgbouncer: PgBouncer, postgres_database: str) -> str:
        return f"{pgbouncer.url(NAME)}?pooler=transaction"

    async def test_store_does_not_claim_capabilities_that_need_a_session(self, store: Store) -> None:
        assert (store.capabilities.hints, store.capabilities.owner_gone) == (False, False)
