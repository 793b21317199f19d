"""Statistics in answers."""

from __future__ import annotations

from pydantic import ConfigDict

from duetime.api.models.fields import OutId, OutInstant, Output
from duetime.api.models.jobs import JobSummaryOut


class LiveOut(Output):
    model_config = ConfigDict(title="Live")
    pending: int
    due: int
    running: int
    dead: int


class PointOut(Output):
    model_config = ConfigDict(title="Point")
    at: OutInstant
    succeeded: int
    failed: int
    retried: int
    dead: int
    cancelled: int
    skipped: int
    lateness_p50_ms: float | None
    lateness_p99_ms: float | None
    duration_p50_ms: float | None


class FailingOut(Output):
    model_config = ConfigDict(title="FailingTarget")
    target: str
    failed: int
    last_error: str
    sample: OutId


class UpcomingOut(Output):
    model_config = ConfigDict(title="Upcoming")
    schedule_id: OutId
    name: str
    at: OutInstant


class StatsOut(Output):
    model_config = ConfigDict(title="Stats")
    now: OutInstant
    live: LiveOut
    series: list[PointOut]
    failing: list[FailingOut]
    late: list[JobSummaryOut]
    next: list[UpcomingOut]
    leader: int | None
