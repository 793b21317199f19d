"""The conformance suite for stores: whatever the contract in `duetime.store` says, as tests.

A store binds to it by giving two fixtures, both open handles on the same fresh, migrated data:

    class TestMyStore(StoreConformance):
        @pytest.fixture
        async def store(self) -> AsyncIterator[Store]: ...

        @pytest.fixture
        async def second_store(self, store: Store) -> AsyncIterator[Store]: ...

The tests are coroutines: run them with pytest-asyncio in its auto mode. Where stores may differ, the suite
asks their
`capabilities`, never their names. Times are relative to the store's own clock; nothing sleeps.
"""

from __future__ import annotations

import pytest

_TESTS = (
    "announce batching change checkpoints claim due_times events external fire hints leases lifecycle limits "
    "listing nodes overlap queues races "
    "rates records retention rows running_jobs schedules search settle submit successors tenants tickets "
    "transactions unique versions"
)
pytest.register_assert_rewrite(
    *(
        f"{__name__}.{part}"
        for part in (*_TESTS.split(), "author_rules", "base", "drafts", "model", "state_machine")
    )
)

# pytest must hear of these modules before they are imported: hence E402.
from duetime.testing.conformance import (  # noqa: E402
    announce,
    batching,
    change,
    checkpoints,
    claim,
    due_times,
    events,
    external,
    fire,
    hints,
    leases,
    lifecycle,
    limits,
    listing,
    nodes,
    overlap,
    queues,
    races,
    rates,
    records,
    retention,
    rows,
    running_jobs,
    schedules,
    search,
    settle,
    submit,
    successors,
    tenants,
    tickets,
    transactions,
    unique,
    versions,
)

__all__ = ["StoreConformance"]


class StoreConformance(
    lifecycle.LifeConformance,
    submit.SubmitConformance,
    submit.UniqueKeyConformance,
    unique.AdmissionConformance,
    unique.AdmissionRaceConformance,
    listing.LookupConformance,
    listing.ListingConformance,
    listing.CountConformance,
    search.JobSearchConformance,
    search.MatchingConformance,
    search.ErrorSearchConformance,
    search.PayloadSearchConformance,
    search.ScheduleSearchConformance,
    change.CancelConformance,
    change.RescheduleConformance,
    change.DeadLetterConformance,
    batching.JobBatchConformance,
    claim.ClaimConformance,
    claim.ClaimantConformance,
    claim.NextDueConformance,
    due_times.DueTimeConformance,
    tickets.TicketConformance,
    tickets.DueJobsConformance,
    overlap.OverlapConformance,
    limits.LimitConformance,
    limits.LimitWithOverlapConformance,
    limits.FairTurnConformance,
    limits.LimitRaceConformance,
    rates.RateConformance,
    rates.NextStartConformance,
    queues.QueueConformance,
    tenants.TenantConformance,
    queues.QueuePauseConformance,
    queues.QueueLimitConformance,
    queues.QueueRateConformance,
    successors.SuccessorConformance,
    settle.SettleConformance,
    settle.FencingConformance,
    settle.RepeatConformance,
    settle.AttemptConformance,
    external.ExternalJobConformance,
    external.DeadlineConformance,
    external.ExternalLimitConformance,
    external.ExternalCancelConformance,
    running_jobs.NodeJobsConformance,
    running_jobs.RecordStartConformance,
    checkpoints.CheckpointConformance,
    checkpoints.OnceConformance,
    announce.AnnounceConformance,
    transactions.TaskTransactionConformance,
    transactions.CallerTransactionConformance,
    schedules.ScheduleConformance,
    schedules.VersionConformance,
    schedules.PauseConformance,
    schedules.WithdrawConformance,
    schedules.DueScheduleConformance,
    batching.ScheduleBatchConformance,
    versions.ScheduleVersionConformance,
    versions.VersionNumberConformance,
    versions.VersionPruneConformance,
    versions.RemovalConformance,
    fire.FireConformance,
    fire.FireOnceConformance,
    nodes.NodeConformance,
    nodes.BeatConformance,
    nodes.ExpireNodesConformance,
    nodes.OrphanConformance,
    leases.LeaseConformance,
    records.RecordConformance,
    records.RecordVersionConformance,
    records.RecordExpiryConformance,
    records.RecordListConformance,
    events.EventConformance,
    events.EventOrderConformance,
    events.EventPruneConformance,
    retention.PruneConformance,
    retention.TargetPruneConformance,
    retention.ForgetConformance,
    rows.RowReadConformance,
    rows.RowWriteConformance,
    rows.RowLifeConformance,
    races.RaceConformance,
    hints.HintConformance,
):
    """All of it."""
