"""The conformance suite for stores: whatever the contract in `duetime.store` says, as tests.

A store binds to it by giving two fixtures, both open handles on the same fresh, migrated data:

    class TestMyStore(StoreConformance):
        @pytest.fixture
        async def store(self) -> AsyncIterator[Store]: ...

        @pytest.fixture
        async def second_store(self, store: Store) -> AsyncIterator[Store]: ...

The tests are coroutines: run them with pytest-asyncio in its auto mode. Where stores may differ, the suite asks their
`capabilities`, never their names. Times are relative to the store's own clock; nothing sleeps.
"""

from __future__ import annotations

import pytest

_TESTS = (
    "ahead awaiting changing claiming crowds events exclusive firing gates hints holding leases life nodes notes outside queues racing "
    "rates reading records schedules searching settling submitting transactions unique upkeep versions"
)
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in (*_TESTS.split(), "drafts", "frame", "ledger", "machine", "tools")))

# pytest must hear of these modules before they are imported: hence E402.
from duetime.testing.conformance import (  # noqa: E402
    ahead,
    awaiting,
    changing,
    claiming,
    crowds,
    events,
    exclusive,
    firing,
    gates,
    hints,
    holding,
    leases,
    life,
    nodes,
    notes,
    outside,
    queues,
    racing,
    rates,
    reading,
    records,
    schedules,
    searching,
    settling,
    submitting,
    transactions,
    unique,
    upkeep,
    versions,
)

__all__ = ["StoreConformance"]


class StoreConformance(
    life.LifeConformance,
    submitting.SubmitConformance,
    submitting.UniqueKeyConformance,
    unique.AdmissionConformance,
    unique.AdmissionRaceConformance,
    reading.LookupConformance,
    reading.ListingConformance,
    reading.CountConformance,
    searching.JobSearchConformance,
    searching.MatchingConformance,
    searching.ErrorSearchConformance,
    searching.ScheduleSearchConformance,
    changing.CancelConformance,
    changing.MoveConformance,
    changing.DeadLetterConformance,
    crowds.JobCrowdConformance,
    claiming.ClaimConformance,
    claiming.ClaimantConformance,
    claiming.NextDueConformance,
    exclusive.ExclusiveConformance,
    gates.GateConformance,
    ahead.AheadConformance,
    ahead.AheadRaceConformance,
    gates.GatedExclusiveConformance,
    gates.TurnConformance,
    gates.GateRaceConformance,
    rates.RateConformance,
    rates.NextStartConformance,
    queues.QueueConformance,
    queues.QueuePauseConformance,
    queues.QueueLimitConformance,
    queues.QueueRateConformance,
    settling.SettleConformance,
    settling.FencingConformance,
    settling.RepeatConformance,
    settling.AttemptConformance,
    outside.HandoverConformance,
    outside.DeadlineConformance,
    outside.OutsideLimitConformance,
    outside.OutsideCancelConformance,
    holding.HeldConformance,
    holding.BeginConformance,
    notes.NoteConformance,
    notes.MarkConformance,
    awaiting.AwaitConformance,
    transactions.TransactionConformance,
    transactions.GuestConformance,
    schedules.ScheduleConformance,
    schedules.VersionConformance,
    schedules.PauseConformance,
    schedules.WithdrawConformance,
    schedules.DueScheduleConformance,
    crowds.ScheduleCrowdConformance,
    versions.ScheduleVersionConformance,
    versions.VersionNumberConformance,
    versions.VersionPruneConformance,
    versions.RemovalConformance,
    firing.FireConformance,
    firing.FireOnceConformance,
    nodes.NodeConformance,
    nodes.BeatConformance,
    nodes.BuryConformance,
    nodes.OrphanConformance,
    leases.LeaseConformance,
    records.RecordConformance,
    records.RecordVersionConformance,
    records.RecordExpiryConformance,
    records.RecordListConformance,
    events.EventConformance,
    events.EventOrderConformance,
    events.EventPruneConformance,
    upkeep.PruneConformance,
    upkeep.TargetPruneConformance,
    upkeep.ForgetConformance,
    racing.RaceConformance,
    hints.HintConformance,
):
    """All of it."""
