"""Jobs in requests."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from duetime.api.models.targets import (
    NO_ARGUMENTS,
    WHOLE,
    Duration,
    Expiry,
    Input,
    Instant,
    Jitter,
    Json,
    Labels,
    Name,
    Note,
    PositiveDuration,
    Priority,
    Target,
    UniqueKey,
    both,
    neither,
    never,
)
from duetime.app.bulk import MAX_ITEMS
from duetime.model.publish import PUBLISH
from duetime.model.retry import DEFAULT_LOSSES, MAX_ATTEMPTS, MAX_LOSSES
from duetime.model.target import HTTP

MAX_BATCH = 10_000
MAX_OUTPUT_LINES = 1_000  # of one job in one request
DeliveryName = Literal["at_least_once", "at_most_once"]
OnConflictName = Literal["skip", "replace", "reschedule"]
_EXAMPLES: list[Any] = [{"target": {"type": "task", "name": "invoice.send"}, "payload": {"customer": "c1"}}]
_RULES = never(both("at", "delay"), NO_ARGUMENTS)


class RetryIn(Input):
    """The number and the delays of retries."""

    max_attempts: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS, description="1: no retry."), WHOLE] = 5
    first_delay: Duration = "5s"
    multiplier: Annotated[float, Field(ge=1, le=100)] = 2.0
    max_delay: Duration = "1h"
    backoff: Annotated[
        Literal["exponential", "linear"], Field(description="linear: the n-th delay is n times the first.")
    ] = "exponential"
    delays: Annotated[
        list[Duration],
        Field(
            min_length=1,
            max_length=MAX_ATTEMPTS,
            description="The delays themselves, in place of those above; the last one is repeated.",
        ),
    ] = Field(default_factory=list)
    jitter: Annotated[
        bool,
        Field(description="Each delay is a random part of the full delay. With `delays`: false."),
    ] = True
    max_age: Annotated[
        PositiveDuration, Field(description="No attempt begins later than this after the fire time.")
    ] = ""
    max_losses: Annotated[
        int,
        Field(ge=1, le=MAX_LOSSES, description="Workers that may die while they run this job in quarantine."),
        WHOLE,
    ] = DEFAULT_LOSSES


class JobOptions(Input):
    """The options that jobs and schedules share."""

    target: Target
    payload: Json = None
    queue: Name = "default"
    priority: Priority = 5
    timeout: PositiveDuration = ""
    retry: RetryIn = Field(default_factory=RetryIn)
    delivery: DeliveryName = "at_least_once"
    owner: Name = ""
    labels: Labels = Field(default_factory=dict)


class BatchJobIn(JobOptions):
    """A job to run now, at an instant, or after a delay."""

    model_config = ConfigDict(title="BatchJob", json_schema_extra={**_RULES, "examples": _EXAMPLES})
    at: Instant = ""
    delay: Duration = ""
    expires: Expiry = ""
    jitter: Jitter = "0s"
    unique_key: UniqueKey = ""


class NewJobIn(BatchJobIn):
    """A job to run now, at an instant, or after a delay, with a rule for a taken unique key."""

    model_config = ConfigDict(
        title="NewJob",
        json_schema_extra={
            **_RULES,
            "dependentRequired": {"on_conflict": ["unique_key"]},
            "examples": _EXAMPLES,
        },
    )
    on_conflict: Annotated[
        OnConflictName, Field(description="What to do while another job with the unique key is live.")
    ] = "skip"


class JobBatchIn(Input, title="JobBatch"):
    """All jobs are stored, or none."""

    jobs: Annotated[list[BatchJobIn], Field(min_length=1, max_length=MAX_BATCH)]


class JobPatchIn(Input):
    """A new due time or priority."""

    model_config = ConfigDict(
        title="JobPatch",
        json_schema_extra={
            "minProperties": 1,
            **never(both("at", "delay")),
            "examples": [{"delay": "2h"}],
        },
    )
    at: Instant = ""
    delay: Duration = ""
    priority: Priority = 5


class RetryJobIn(Input, title="RetryJob"):
    """A payload replaces the payload of the job."""

    payload: Annotated[dict[str, Any], Field(examples=[{"customer": "c1"}])] = Field(default_factory=dict)


class OutputLineIn(Input, title="NewOutputLine"):
    text: Annotated[str, Field(min_length=1, max_length=8_000, examples=["page 7 does not answer"])]
    stream: Literal["log", "stdout", "stderr"] = "log"
    level: Literal["debug", "info", "warning", "error", "critical"] = "info"


class ReportIn(Input):
    token: Annotated[
        str,
        Field(
            min_length=1,
            max_length=400,
            description="The Duetime-Report-Token header of the call; no key is needed.",
        ),
    ]
    output: Annotated[
        list[OutputLineIn],
        Field(max_length=MAX_OUTPUT_LINES, description="What the attempt logged since its last report."),
    ] = Field(default_factory=list)


class CompleteIn(ReportIn, title="Complete"):
    result: Json = None


class FailIn(ReportIn, title="Fail"):
    error: Annotated[str, Field(min_length=1, max_length=8_000)]
    retry: Annotated[bool, Field(description="Another attempt may succeed.")] = True


class ProgressIn(Input):
    done: float
    total: float = 0
    note: Annotated[str, Field(max_length=500)] = ""


class HeartbeatIn(ReportIn, title="Heartbeat"):
    progress: ProgressIn = ProgressIn(done=0)
    checkpoint: Json = None


# Bulk actions in requests.


_PAIR = {"pattern": r"^(\\.|[^:\\])+:"}
Label = Annotated[
    str,
    Field(
        max_length=300,
        description=r"key:value; a colon in the key is \:",
        examples=["team:billing"],
        json_schema_extra=_PAIR,
    ),
]
TargetName = Annotated[
    Name,
    Field(description=f"The name of a task, {HTTP}, or {PUBLISH}:DESTINATION.", examples=["report.build"]),
]
ErrorText = Annotated[
    str, Field(min_length=1, max_length=500, description="Part of the error; case does not matter.")
]
ErrorGroupName = Annotated[
    str, Field(max_length=1_000, description="The group of the error, as in GET /dead.")
]
PayloadField = Annotated[
    str,
    Field(
        max_length=500,
        description=r"A field of the payload and its value, as path:value; a colon in the path is \:",
        examples=["customer:c1", "order.id:17"],
        json_schema_extra=_PAIR,
    ),
]
StateName = Literal["pending", "queued", "running", "succeeded", "dead", "cancelled", "skipped"]
_ONE_OF = never(both("filter", "ids"), neither("filter", "ids"))


class JobFilterIn(Input, title="JobFilter"):
    """A field that is null or left out matches everything."""

    state: StateName | None = None
    queue: Name | None = None
    owner: Name | None = None
    schedule: Annotated[Name | None, Field(description="The name or id of the schedule.")] = None
    label: Label | None = None
    target: TargetName | None = None
    due_after: Annotated[Instant | None, Field(description="Included.")] = None
    due_before: Annotated[Instant | None, Field(description="Excluded.")] = None
    error: ErrorText | None = None
    error_group: ErrorGroupName | None = None
    payload: PayloadField | None = None


class ScheduleFilterIn(Input, title="ScheduleFilter"):
    """A field that is null or left out matches everything."""

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
