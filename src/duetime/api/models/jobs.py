"""Jobs in requests and answers."""

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
    OutId,
    OutInstant,
    OutJson,
    Output,
    OutTarget,
    PositiveDuration,
    Priority,
    UniqueKey,
)
from duetime.api.models.targets import HTTP_TARGET, TASK_TARGET, Target
from duetime.model.attempt import Ending
from duetime.model.job import State
from duetime.model.retry import MOST_ATTEMPTS

MOST_IN_A_BATCH = 10_000
DeliveryName = Literal["at_least_once", "at_most_once"]
OnConflictName = Literal["skip", "replace", "reschedule"]
_EXAMPLES: list[Any] = [{"target": {"type": "task", "name": "invoice.send"}, "payload": {"customer": "c1"}}]
# A task's payload is its named arguments; at most one of `at` and `delay` is given.
_RULES: dict[str, Any] = {
    "not": {"required": ["at", "delay"]},
    "anyOf": [{"properties": {"target": TASK_TARGET, "payload": {"type": "object"}}}, {"properties": {"target": HTTP_TARGET}}],
}


class RetryIn(Input):
    """How often and how late a failed job is tried again."""

    max_attempts: Annotated[int, Field(ge=1, le=MOST_ATTEMPTS, description="Attempts that may fail; 1 means never again."), WHOLE] = 5
    first_delay: Duration = "5s"
    multiplier: Annotated[float, Field(ge=1, le=100)] = 2.0
    max_delay: Duration = "1h"
    jitter: Annotated[bool, Field(description="Each wait is drawn from zero to what it would be.")] = True


class JobOptions(Input):
    """What jobs and schedules have in common."""

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
    unique_key: UniqueKey = ""


class NewJobIn(BatchJobIn):
    """A job to run now, at an instant, or after a delay; and what happens when its unique key is taken."""

    model_config = ConfigDict(
        title="NewJob", json_schema_extra={**_RULES, "dependentRequired": {"on_conflict": ["unique_key"]}, "examples": _EXAMPLES}
    )
    on_conflict: Annotated[OnConflictName, Field(description="While another job with the unique key is live.")] = "skip"


class JobBatchIn(Input):
    """All of them are stored, or none."""

    model_config = ConfigDict(title="JobBatch")
    jobs: Annotated[list[BatchJobIn], Field(min_length=1, max_length=MOST_IN_A_BATCH)]


class JobPatchIn(Input):
    """Another due time or priority."""

    model_config = ConfigDict(
        title="JobPatch", json_schema_extra={"minProperties": 1, "not": {"required": ["at", "delay"]}, "examples": [{"delay": "2h"}]}
    )
    at: Instant = ""
    delay: Duration = ""
    priority: Priority = 5


class RetryJobIn(Input):
    """With a payload, it takes the place of the job's own."""

    model_config = ConfigDict(title="RetryJob")
    payload: Annotated[dict[str, Any], Field(examples=[{"customer": "c1"}])] = Field(default_factory=dict)


class TokenIn(Input):
    token: Annotated[str, Field(min_length=1, max_length=400, description="The Duetime-Report-Token of the call; no key is needed.")]


class CompleteIn(TokenIn):
    model_config = ConfigDict(title="Complete")
    result: Json = None


class FailIn(TokenIn):
    model_config = ConfigDict(title="Fail")
    error: Annotated[str, Field(min_length=1, max_length=8_000)]
    retry: Annotated[bool, Field(description="Whether another attempt could go better.")] = True


class ProgressIn(Input):
    done: float
    total: float = 0
    note: Annotated[str, Field(max_length=500)] = ""


class HeartbeatIn(TokenIn):
    model_config = ConfigDict(title="Heartbeat")
    progress: ProgressIn = ProgressIn(done=0)
    checkpoint: Json = None


class SubmittedOut(Output):
    """A job that was accepted: it is durable."""

    model_config = ConfigDict(title="SubmittedJob")
    id: OutId
    state: State
    created: Annotated[bool, Field(description="False: a job with the same unique key was there already, and this is that one.")]
    conflict: Annotated[
        Literal["skipped", "replaced", "rescheduled"] | None, Field(description="What came of a unique key that was taken.")
    ]
    queue: str
    priority: int
    fire_time: OutInstant
    due_at: OutInstant


class BatchOut(Output):
    model_config = ConfigDict(title="SubmittedBatch")
    ids: Annotated[list[OutId], Field(description="In the order of the request.")]
    created: Annotated[int, Field(description="How many are new; the others answer for a unique key.")]


class AttemptOut(Output):
    model_config = ConfigDict(title="Attempt")
    attempt: int
    ending: Ending
    node: int | None
    started_at: OutInstant | None
    finished_at: OutInstant
    error: str | None


class JobSummaryOut(Output):
    model_config = ConfigDict(title="JobSummary")
    id: OutId
    state: State
    target: OutTarget
    schedule: str | None
    fire_time: OutInstant
    due_at: OutInstant
    queue: str
    priority: int
    attempt: int
    failures: int
    node: int | None
    owner: str | None
    labels: dict[str, str]
    unique_key: str | None
    retry_of: OutId | None
    cancel_requested: bool
    created_at: OutInstant
    claimed_at: Annotated[
        OutInstant | None, Field(description="When a node took it for its latest attempt; it may wait there for its turn.")
    ]
    started_at: Annotated[OutInstant | None, Field(description="When that attempt began. Known once it has ended.")]
    finished_at: OutInstant | None
    error: str | None
    disposition: str | None


class JobOut(JobSummaryOut):
    model_config = ConfigDict(title="Job")
    payload: OutJson
    timeout: str | None
    retry: dict[str, Any] | None
    delivery: DeliveryName
    losses: int
    checkpoint: OutJson
    progress: OutJson
    result: OutJson
    attempts: Annotated[list[AttemptOut], Field(description="Those that ended badly, oldest first.")]


class JobPageOut(Output):
    model_config = ConfigDict(title="JobPage")
    items: list[JobSummaryOut]
    next_cursor: Annotated[str | None, Field(description="Give it back as `cursor`; null: this is the last page.")]
