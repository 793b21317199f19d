"""Numbers over time: what was done, and what is to come."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    pending: int = 0
    due: int = 0
    running: int = 0
    dead: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What ended in one step of the series."""

    at: datetime
    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    dead: int = 0
    cancelled: int = 0
    skipped: int = 0
    lateness_p50_ms: float | None = None
    lateness_p99_ms: float | None = None
    duration_p50_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    target: str
    failed: int
    last_error: str | None = None
    sample: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextFire:
    schedule_id: UUID
    name: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    now: datetime
    live: Live
    series: list[Point] = field(default_factory=list)
    failing: list[Failing] = field(default_factory=list)
    late: list[dict[str, Any]] = field(default_factory=list)
    next: list[NextFire] = field(default_factory=list)
    leader: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarBucket:
    at: datetime
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """How many fires each stretch of the coming time has."""

    bucket: str
    buckets: list[CalendarBucket]
    complete: bool = True
    note: str | None = None
