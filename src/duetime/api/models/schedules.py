"""Schedules, their previews, versions and backfills in requests."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from duetime.api.models.jobs import DeliveryName, JobOptions, RetryIn
from duetime.api.models.targets import (
    NO_ARGUMENTS,
    WHOLE,
    Input,
    Instant,
    Jitter,
    Json,
    Labels,
    Name,
    Note,
    PositiveDuration,
    Priority,
    RateText,
    Target,
    When,
    never,
)
from duetime.app.backfill import MAX_FIRES
from duetime.app.previews import MAX_PREVIEWED
from duetime.model.schedule import MAX_MISSED

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


class MissedIn(Input):
    """What to do with fires that did not start in time."""

    policy: MissedName = "latest"
    within: PositiveDuration = ""
    max: Annotated[int, Field(ge=1, le=MAX_MISSED), WHOLE] = 1
    waiting: Annotated[
        bool, Field(description="Whether a fire that waits for a limit counts as missed, too.")
    ] = False


class NewScheduleIn(JobOptions):
    model_config = ConfigDict(
        title="NewSchedule", json_schema_extra={**never(NO_ARGUMENTS), "examples": [_EXAMPLE]}
    )
    name: Name
    when: When
    overlap: OverlapName = "allow"
    missed: MissedIn = Field(default_factory=MissedIn)
    jitter: Jitter = "0s"
    start_at: Annotated[
        Instant, Field(description="No fire before it.", examples=["2027-01-01T00:00:00Z"])
    ] = ""
    end_at: Annotated[Instant, Field(description="No fire after it.", examples=["2040-01-01T00:00:00Z"])] = ""
    max_runs: Runs = 1
    expires: Annotated[
        PositiveDuration, Field(description="Skip a job that has not started this long after it is due.")
    ] = ""
    paused: bool = False


class SchedulePatchIn(Input):
    """Only the given fields change; null removes an optional value, or brings back that of the task."""

    model_config = ConfigDict(
        title="SchedulePatch",
        json_schema_extra={"minProperties": 1, "examples": [{"when": {"every": "10m"}}]},
    )
    when: When = Field(default_factory=dict)
    target: Target = Field(default_factory=dict)
    payload: Json = None
    queue: Name | None = None
    priority: Priority | None = None
    timeout: PositiveDuration | None = None
    expires: PositiveDuration | None = None
    retry: RetryIn | None = None
    delivery: DeliveryName | None = None
    owner: Name | None = None
    labels: Labels = Field(default_factory=dict)
    overlap: OverlapName = "allow"
    missed: MissedIn | None = None
    jitter: Jitter = "0s"
    start_at: Annotated[Instant | None, Field(examples=["2027-01-01T00:00:00Z"])] = None
    end_at: Annotated[Instant | None, Field(examples=["2040-01-01T00:00:00Z"])] = None
    max_runs: Runs | None = None
    paused: bool = False


class PauseIn(Input, title="Pause"):
    note: Note = ""


class PreviewIn(Input):
    model_config = ConfigDict(
        title="NewPreview",
        json_schema_extra={
            "examples": [{"when": {"cron": "30 2 * * MON-FRI", "tz": "Europe/Berlin"}, "count": 5}]
        },
    )
    when: When
    count: Annotated[int, Field(ge=1, le=MAX_PREVIEWED), WHOLE] = 10
    after: Annotated[Instant, Field(description="Default: now.", examples=["2030-03-30T00:00:00Z"])] = ""
    start_at: Annotated[
        Instant, Field(description="No fire before it.", examples=["2027-01-01T00:00:00Z"])
    ] = ""
    end_at: Annotated[Instant, Field(description="No fire after it.", examples=["2040-01-01T00:00:00Z"])] = ""


class RestoreIn(Input):
    model_config = ConfigDict(title="Restore", json_schema_extra={"examples": [{"version": 1}]})
    version: Annotated[
        int,
        Field(ge=1, le=1_000_000_000, description="The version to restore. The pause does not change."),
        WHOLE,
    ]


class BackfillIn(Input):
    """Jobs for past fires that have none."""

    model_config = ConfigDict(
        title="Backfill",
        json_schema_extra={
            "examples": [{"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "rate": "10/1s"}]
        },
    )
    start: Annotated[Instant, Field(alias="from", description="Included.", examples=["2026-01-01T00:00:00Z"])]
    end: Annotated[
        Instant,
        Field(
            alias="to",
            description="Excluded, and not in the future. Default: now.",
            examples=["2026-01-02T00:00:00Z"],
        ),
    ] = ""
    rate: Annotated[
        RateText,
        Field(
            description="How many become due in a period, also over several calls. Default: all immediately."
        ),
    ] = ""
    limit: Annotated[
        int, Field(ge=1, le=MAX_FIRES, description="Fires in one call; continue at next_from."), WHOLE
    ] = MAX_FIRES
