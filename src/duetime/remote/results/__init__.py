"""What the service answers, as frozen values: instants are aware, states are enums, and what a newer service adds is left out."""

from duetime.remote.results.events import Event
from duetime.remote.results.fleet import Key, KnownTask, Lease, Me, NewKey, Node, Queue
from duetime.remote.results.jobs import Attempt, Batch, Bulk, BulkFailure, DeadGroup, DeadGroups, Job, JobSummary, Submitted, Why
from duetime.remote.results.schedules import (
    Backfilled,
    Difference,
    Fire,
    FireChanges,
    Plan,
    PlanCounts,
    Preview,
    Schedule,
    Version,
    Words,
)
from duetime.remote.results.stats import Calendar, CalendarBucket, Failing, Live, NextFire, Point, Stats

__all__ = [
    "Attempt", "Backfilled", "Batch", "Bulk", "BulkFailure", "Calendar", "CalendarBucket", "DeadGroup", "DeadGroups", "Difference",
    "Event", "Failing", "Fire", "FireChanges", "Job", "JobSummary", "Key", "KnownTask", "Lease", "Live", "Me", "NewKey", "NextFire",
    "Node", "Plan", "PlanCounts", "Point", "Preview", "Queue", "Schedule", "Stats", "Submitted", "Version", "Why", "Words",
]  # fmt: skip
