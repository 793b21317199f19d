"""Bulk actions in requests."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from duetime.api.models.fields import Input, Instant, Name, Note
from duetime.app.bulk import MAX_ITEMS
from duetime.model.job import MAX_ERROR_LINE
from duetime.model.target import HTTP

Label = Annotated[
    str, Field(pattern="^[^:]+:", max_length=300, description="key:value", examples=["team:billing"])
]
TargetName = Annotated[Name, Field(description=f"The name of a task, or {HTTP}.", examples=["report.build"])]
ErrorLine = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_ERROR_LINE,
        description="The line of the error that names the cause, as in GET /dead.",
    ),
]
StateName = Literal["pending", "queued", "running", "succeeded", "dead", "cancelled", "skipped"]
_ONE_OF: dict[str, Any] = {"oneOf": [{"required": ["filter"]}, {"required": ["ids"]}]}


class JobFilterIn(Input):
    """A field that is null or left out matches everything."""

    model_config = ConfigDict(title="JobFilter")
    state: StateName | None = None
    queue: Name | None = None
    owner: Name | None = None
    schedule: Annotated[Name | None, Field(description="The name or id of the schedule.")] = None
    label: Label | None = None
    target: TargetName | None = None
    due_after: Annotated[Instant | None, Field(description="Included.")] = None
    due_before: Annotated[Instant | None, Field(description="Excluded.")] = None
    error: ErrorLine | None = None


class ScheduleFilterIn(Input):
    """A field that is null or left out matches everything."""

    model_config = ConfigDict(title="ScheduleFilter")
    text: Annotated[
        str | None, Field(min_length=1, max_length=128, description="Part of the name; case does not matter.")
    ] = None
    paused: bool | None = None
    owner: Name | None = None
    label: Label | None = None
    target: TargetName | None = None
    queue: Name | None = None


class BulkIn(Input):
    ids: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=128)]], Field(min_length=1, max_length=MAX_ITEMS)
    ] = Field(default_factory=list)
    dry_run: Annotated[bool, Field(description="Only count the matching items.")] = False
    cursor: Annotated[
        str,
        Field(
            max_length=1_024,
            description="The next_cursor of the previous answer.",
            json_schema_extra={"format": "duetime-cursor", "minLength": 1},
        ),
    ] = ""


class JobBulkIn(BulkIn):
    """`cancel` applies to live jobs, `retry` and `discard` to dead letters, `run` to pending jobs that are
    not due. Other jobs are ignored."""

    model_config = ConfigDict(
        title="JobBulk",
        json_schema_extra={
            **_ONE_OF,
            "examples": [{"action": "retry", "filter": {"target": "invoice.send"}}],
        },
    )
    action: Literal["cancel", "retry", "run", "discard"]
    filter: JobFilterIn = Field(default_factory=JobFilterIn)


class ScheduleBulkIn(BulkIn):
    model_config = ConfigDict(
        title="ScheduleBulk",
        json_schema_extra={**_ONE_OF, "examples": [{"action": "pause", "filter": {"owner": "billing"}}]},
    )
    action: Literal["pause", "resume", "trigger", "remove"]
    filter: ScheduleFilterIn = Field(default_factory=ScheduleFilterIn)
    note: Annotated[Note, Field(description="The reason of a pause.")] = ""
