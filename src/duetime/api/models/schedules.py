"""Schedules in requests and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from duetime.api.models.fields import (
    WHOLE,
    Duration,
    Input,
    Instant,
    Json,
    Labels,
    Name,
    Note,
    OutId,
    OutInstant,
    OutJson,
    Output,
    OutTarget,
    PositiveDuration,
    Priority,
)
from duetime.api.models.jobs import DeliveryName, JobOptions, RetryIn
from duetime.api.models.targets import HTTP_TARGET, TASK_TARGET, Target, When

OverlapName = Literal["skip", "allow", "queue", "cancel_previous"]
MissedName = Literal["latest", "all", "skip"]
Runs = Annotated[int, Field(ge=1, le=1_000_000_000), WHOLE]
_EXAMPLE: dict[str, Any] = {
    "name": "nightly",
    "when": {"cron": "30 2 * * MON-FRI", "tz": "Europe/Berlin"},
    "target": {"type": "task", "name": "report.build"},
    "payload": {},
    "overlap": "skip",
}
_RULES: dict[str, Any] = {
    "anyOf": [{"properties": {"target": TASK_TARGET, "payload": {"type": "object"}}}, {"properties": {"target": HTTP_TARGET}}]
}


class MissedIn(Input):
    """What becomes of fires nobody could plan in time."""

    policy: MissedName = "latest"
    within: PositiveDuration = ""
    max: Runs = 1


class NewScheduleIn(JobOptions):
    model_config = ConfigDict(title="NewSchedule", json_schema_extra={**_RULES, "examples": [_EXAMPLE]})
    name: Name
    when: When
    overlap: OverlapName = "allow"
    missed: MissedIn = Field(default_factory=MissedIn)
    jitter: Duration = "0s"
    start_at: Annotated[Instant, Field(description="No fire before it.", examples=["2027-01-01T00:00:00Z"])] = ""
    end_at: Annotated[Instant, Field(description="No fire after it.", examples=["2040-01-01T00:00:00Z"])] = ""
    max_runs: Runs = 1
    paused: bool = False


class SchedulePatchIn(Input):
    """What is given replaces what is there; null takes away what may be absent. The rest stays."""

    model_config = ConfigDict(title="SchedulePatch", json_schema_extra={"minProperties": 1, "examples": [{"when": {"every": "10m"}}]})
    when: When = Field(default_factory=dict)
    target: Target = Field(default_factory=dict)
    payload: Json = None
    queue: Name = "default"
    priority: Priority = 5
    timeout: PositiveDuration | None = None
    retry: RetryIn | None = None
    delivery: DeliveryName = "at_least_once"
    owner: Name | None = None
    labels: Labels = Field(default_factory=dict)
    overlap: OverlapName = "allow"
    missed: MissedIn | None = None
    jitter: Duration = "0s"
    start_at: Annotated[Instant | None, Field(examples=["2027-01-01T00:00:00Z"])] = None
    end_at: Annotated[Instant | None, Field(examples=["2040-01-01T00:00:00Z"])] = None
    max_runs: Runs | None = None
    paused: bool = False


class PauseIn(Input):
    model_config = ConfigDict(title="Pause")
    note: Note = ""


class ScheduleOut(Output):
    model_config = ConfigDict(title="Schedule")
    id: OutId
    name: str
    version: int
    when: dict[str, str]
    description: Annotated[str, Field(description="When it fires, in words.", examples=["at 02:30, Monday to Friday, Europe/Berlin time"])]
    target: OutTarget
    payload: OutJson
    queue: str
    priority: int
    timeout: str | None
    retry: dict[str, Any] | None
    delivery: DeliveryName
    owner: str | None
    labels: dict[str, str]
    overlap: OverlapName
    missed: dict[str, Any]
    jitter: str
    start_at: OutInstant | None
    end_at: OutInstant | None
    max_runs: int | None
    paused: bool
    pause_note: str | None
    runs: int
    next_fire_time: OutInstant | None
    last_fire_time: OutInstant | None
    created_at: OutInstant
    updated_at: OutInstant


class SchedulePageOut(Output):
    model_config = ConfigDict(title="SchedulePage")
    items: list[ScheduleOut]
    next_cursor: str | None
