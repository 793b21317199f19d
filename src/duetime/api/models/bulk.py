"""Bulk actions in requests and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from duetime.api.models.fields import Input, Instant, Name, Note, Output
from duetime.app.bulk import MOST_ITEMS
from duetime.model.job import LONGEST_LINE
from duetime.model.target import HTTP

Label = Annotated[str, Field(pattern="^[^:]+:", max_length=300, description="key:value", examples=["team:billing"])]
TargetName = Annotated[Name, Field(description=f"A task's name, or {HTTP}.", examples=["report.build"])]
ErrorLine = Annotated[
    str, Field(min_length=1, max_length=LONGEST_LINE, description="The line of the error that says what went wrong, as GET /dead shows it.")
]
StateName = Literal["pending", "queued", "running", "succeeded", "dead", "cancelled", "skipped"]
_ONE_OF: dict[str, Any] = {"oneOf": [{"required": ["filter"]}, {"required": ["ids"]}]}


class JobFilterIn(Input):
    """What is left out or null may be anything."""

    model_config = ConfigDict(title="JobFilter")
    state: StateName | None = None
    queue: Name | None = None
    owner: Name | None = None
    schedule: Annotated[Name | None, Field(description="Its name or id.")] = None
    label: Label | None = None
    target: TargetName | None = None
    due_after: Annotated[Instant | None, Field(description="Included.")] = None
    due_before: Annotated[Instant | None, Field(description="Excluded.")] = None
    error: ErrorLine | None = None


class ScheduleFilterIn(Input):
    """What is left out or null may be anything."""

    model_config = ConfigDict(title="ScheduleFilter")
    text: Annotated[str | None, Field(min_length=1, max_length=128, description="A part of the name, upper and lower case alike.")] = None
    paused: bool | None = None
    owner: Name | None = None
    label: Label | None = None
    target: TargetName | None = None
    queue: Name | None = None


class BulkIn(Input):
    ids: Annotated[list[Annotated[str, Field(min_length=1, max_length=128)]], Field(min_length=1, max_length=MOST_ITEMS)] = Field(
        default_factory=list
    )
    dry_run: Annotated[bool, Field(description="Only count what would be acted upon.")] = False
    cursor: Annotated[
        str,
        Field(
            max_length=1_024,
            description="The next_cursor of the call before.",
            json_schema_extra={"format": "duetime-cursor", "minLength": 1},
        ),
    ] = ""


class JobBulkIn(BulkIn):
    """Jobs of states which the action does not concern are left out: final ones of `cancel`, all but dead letters of `retry` and
    `discard`, all but pending ones that are not due of `run`."""

    model_config = ConfigDict(
        title="JobBulk", json_schema_extra={**_ONE_OF, "examples": [{"action": "retry", "filter": {"target": "invoice.send"}}]}
    )
    action: Literal["cancel", "retry", "run", "discard"]
    filter: JobFilterIn = Field(default_factory=JobFilterIn)


class ScheduleBulkIn(BulkIn):
    model_config = ConfigDict(
        title="ScheduleBulk", json_schema_extra={**_ONE_OF, "examples": [{"action": "pause", "filter": {"owner": "billing"}}]}
    )
    action: Literal["pause", "resume", "trigger", "remove"]
    filter: ScheduleFilterIn = Field(default_factory=ScheduleFilterIn)
    note: Annotated[Note, Field(description="Of a pause.")] = ""


class BulkFailureOut(Output):
    model_config = ConfigDict(title="BulkFailure")
    id: str
    code: str
    detail: str


class BulkOut(Output):
    """What one call did. What is as wanted already counts as done."""

    model_config = ConfigDict(title="Bulk")
    matched: Annotated[int, Field(description="How many were looked at; in a dry run, how many would be.")]
    at_least: Annotated[bool, Field(description="Of a dry run: there are more, nobody counted further.")]
    done: int
    failed: list[BulkFailureOut]
    next_cursor: Annotated[str | None, Field(description="There is more to do: send the same again with it as `cursor`.")]
