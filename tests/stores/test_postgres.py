"""The PostgreSQL store against the conformance suite, directly and behind a pooler that lends a session per transaction (C19)."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from duetime.model.hint import JobHint
from duetime.model.job import Claimed
from duetime.store import Capabilities, ClaimRequest, Store
from duetime.stores.postgres import PostgresStore
from duetime.testing.conformance import StoreConformance
from duetime.testing.conformance.awaiting import AwaitConformance
from duetime.testing.conformance.claiming import ClaimantConformance, ClaimConformance
from duetime.testing.conformance.drafts import PRIORITY, new_id, of_schedule
from duetime.testing.conformance.events import EventConformance, EventOrderConformance
from duetime.testing.conformance.exclusive import ExclusiveConformance
from duetime.testing.conformance.firing import FireConformance
from duetime.testing.conformance.gates import GateConformance, GatedExclusiveConformance, GateRaceConformance, TurnConformance
from duetime.testing.conformance.hints import Ear, HintConformance
from duetime.testing.conformance.leases import LeaseConformance
from duetime.testing.conformance.nodes import BeatConformance, BuryConformance
from duetime.testing.conformance.notes import MarkConformance, NoteConformance
from duetime.testing.conformance.outside import DeadlineConformance, HandoverConformance, OutsideCancelConformance
from duetime.testing.conformance.queues import QueueConformance, QueueLimitConformance, QueuePauseConformance, QueueRateConformance
from duetime.testing.conformance.racing import RaceConformance
from duetime.testing.conformance.rates import NextStartConformance, RateConformance
from duetime.testing.conformance.records import RecordConformance, RecordVersionConformance
from duetime.testing.conformance.settling import SettleConformance
from duetime.testing.conformance.submitting import SubmitConformance, UniqueKeyConformance
from duetime.testing.conformance.transactions import TransactionConformance
from duetime.testing.conformance.unique import AdmissionConformance, AdmissionRaceConformance
from duetime.testing.conformance.upkeep import PruneConformance, TargetPruneConformance
from duetime.testing.conformance.versions import ScheduleVersionConformance, VersionNumberConformance
from tests.servers.pgbouncer import PgBouncer
from tests.stores.conftest import NAME


class Bound:
    """Two handles on one database."""

    kind = PostgresStore

    @pytest.fixture
    def url(self, postgres_database: str) -> str:
        return postgres_database

    @pytest.fixture
    async def store(self, url: str) -> AsyncIterator[Store]:
        store = self.kind.from_url(url)
        await store.open()
        yield store
        await store.close()

    @pytest.fixture
    async def second_store(self, store: Store) -> AsyncIterator[Store]:
        second = store.twin()
        await second.open()
        yield second
        await second.close()


class TestPostgres(Bound, StoreConformance):
    def test_it_can_do_everything(self) -> None:
        store = PostgresStore.from_url("postgresql://host/database")
        assert store.capabilities == Capabilities(durable=True, shared=True, hints=True, owner_gone=True, transactions=True)

    async def test_the_news_of_a_job_tells_whether_others_of_its_schedule_matter(self, store: Store) -> None:
        now, ear = await store.time(), Ear()
        store.subscribe(ear)
        for overlap in (None, "queue"):
            told = JobHint(f"overlap {overlap}", PRIORITY, now, overlap is not None)

            async def add_one(told: JobHint = told, overlap: str | None = overlap) -> None:
                await store.add_jobs([of_schedule(new_id(0), now, overlap, queue=told.queue)])

            assert await ear.hears(add_one, told.__eq__), ear.heard


async def test_a_short_answer_takes_little_memory(store: PostgresStore) -> None:
    await store.time()
    tracemalloc.start()
    try:
        await store.time()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 128 * 1024  # bytes: from there on malloc gets each piece from the kernel


class NewsFirst(PostgresStore):
    """Claims in two steps as a worker does that heard of a job: what needs no look at schedules that run one at a time, then the rest."""

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        news = await super().claim(replace(request, exclusive=False))
        return news + await super().claim(replace(request, room=request.room - len(news)))


class TestClaimsOfNews(
    Bound,
    ClaimConformance,
    ClaimantConformance,
    GateConformance,
    TurnConformance,
    QueuePauseConformance,
    QueueLimitConformance,
    QueueRateConformance,
):
    kind = NewsFirst


class TestBehindPooler(
    Bound,
    SubmitConformance,
    UniqueKeyConformance,
    AdmissionConformance,
    AdmissionRaceConformance,
    ClaimConformance,
    ExclusiveConformance,
    GateConformance,
    GatedExclusiveConformance,
    GateRaceConformance,
    TurnConformance,
    RateConformance,
    NextStartConformance,
    QueueConformance,
    QueuePauseConformance,
    QueueLimitConformance,
    QueueRateConformance,
    NoteConformance,
    MarkConformance,
    AwaitConformance,
    TransactionConformance,
    SettleConformance,
    HandoverConformance,
    DeadlineConformance,
    OutsideCancelConformance,
    RaceConformance,
    FireConformance,
    BeatConformance,
    BuryConformance,
    LeaseConformance,
    ScheduleVersionConformance,
    VersionNumberConformance,
    RecordConformance,
    RecordVersionConformance,
    EventConformance,
    EventOrderConformance,
    PruneConformance,
    TargetPruneConformance,
    HintConformance,
):
    @pytest.fixture
    def url(self, pgbouncer: PgBouncer, postgres_database: str) -> str:
        return f"{pgbouncer.url(NAME)}?pooler=transaction"

    async def test_what_needs_a_session_is_not_promised(self, store: Store) -> None:
        assert (store.capabilities.hints, store.capabilities.owner_gone) == (False, False)
