"""Schedules as the service shows them: as they are, as they were, and what they will do."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from duetime.model.when import When, restore


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    id: UUID
    name: str
    version: int
    when: dict[str, Any]  # as JSON has it; `rule` is the value
    description: str = ""
    target: dict[str, Any]
    payload: Any = None
    queue: str
    priority: int
    timeout: str | None = None
    retry: dict[str, Any] | None = None
    delivery: str = "at_least_once"
    owner: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    overlap: str = "allow"
    missed: dict[str, Any] = field(default_factory=dict)
    jitter: str = "0s"
    start_at: datetime | None = None
    end_at: datetime | None = None
    max_runs: int | None = None
    paused: bool = False
    pause_note: str | None = None
    runs: int = 0
    next_fire_time: datetime | None = None
    last_fire_time: datetime | None = None
    created_at: datetime
    updated_at: datetime

    @property
    def task(self) -> str | None:
        """The name of the task it runs; None when its target is another."""
        return self.target.get("name")

    @property
    def rule(self) -> When:
        """As `dt.Cron`, `dt.Every`, `dt.At` or `dt.RRule`."""
        return restore(self.when)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    field: str
    before: Any = None
    after: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What a schedule was after a change, and who made it."""

    version: int
    at: datetime
    author: str | None = None
    change: str
    paused: bool = False
    schedule_id: UUID | None = None  # another than today's where an earlier schedule had the name
    definition: dict[str, Any] = field(default_factory=dict)
    diff: list[Difference] = field(default_factory=list)  # against the version before


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
    at: datetime
    local: datetime | None = None  # in the zone of the schedule
    note: str | None = None  # what a change of the clocks does to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    words: str | None = None
    fires: list[Fire]
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FireChanges:
    kept: int = 0
    added: list[datetime] = field(default_factory=list)
    withdrawn: list[datetime] = field(default_factory=list)
    moved: list[dict[str, datetime]] = field(default_factory=list)  # each "from" and "to"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCounts:
    """Of all fires within the horizon."""

    kept: int = 0
    added: int = 0
    withdrawn: int = 0
    moved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an edit would change."""

    version: int | None = None
    diff: list[Difference] = field(default_factory=list)
    words: Words = field(default_factory=Words)
    fires: FireChanges = field(default_factory=FireChanges)  # the first of each kind
    counts: PlanCounts = field(default_factory=PlanCounts)
    jobs_withdrawn: int = 0
    warnings: list[str] = field(default_factory=list)
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfilled:
    added: int
    existing: int
    next_from: datetime | None = None  # where the next call goes on; None: the range is done
