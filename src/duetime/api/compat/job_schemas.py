"""Schemas of plain jobs, one-time or periodic: `job_id`, `user_id`, `frequency`, `next_run_time`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from duetime.api.models.fields import (
    WHOLE,
    Input,
    Instant,
    Json,
    Name,
    OutId,
    OutInstant,
    OutJson,
    Output,
    Priority,
)
from duetime.api.models.targets import HTTP_TARGET
from duetime.model.retry import MAX_ATTEMPTS

Status = Literal["pending", "scheduled", "running", "completed", "failed", "cancelled", "skipped", "paused"]
_TARGET = HTTP_TARGET["properties"]
_FREQUENCY = {
    "type": "string",
    "format": "duetime-frequency",
    "minLength": 1,
    "default": "once",
    "description": '"once", an interval such as "10m", a cron expression (UTC), or hourly, '
    "daily, weekly, monthly.",
    "examples": ["0 9 * * *"],
}
# A job runs a task or calls a URL; the payload of a task is an object of named arguments.
_RULES: dict[str, Any] = {
    "oneOf": [
        {
            "required": ["task"],
            "properties": {"payload": {"type": "object"}, "url": False, "method": False, "headers": False},
        },
        {"required": ["url"], "properties": {"task": False}},
    ],
    "examples": [
        {
            "user_id": "u003",
            "url": "https://agent.example/run",
            "payload": {"customer": "c1"},
            "frequency": "once",
        }
    ],
}
Url = Annotated[str, WithJsonSchema(_TARGET["url"])]
Method = Annotated[str, WithJsonSchema(_TARGET["method"])]
Headers = Annotated[dict[str, str], WithJsonSchema(_TARGET["headers"])]
Frequency = Annotated[str, WithJsonSchema(_FREQUENCY)]


class PlainJobIn(Input):
    """A job to run once or periodically."""

    model_config = ConfigDict(title="NewPlainJob", json_schema_extra=_RULES)
    user_id: Annotated[Name, Field(description="The owner of the job.")] = ""
    task: Annotated[Name, Field(description="The name of the task to run.")] = ""
    url: Url = ""
    method: Method = "POST"
    headers: Headers = Field(default_factory=dict)
    payload: Json = None
    frequency: Frequency = "once"
    next_run_time: Annotated[
        Instant, Field(description="The first run. Default: now, or as the frequency says.")
    ] = ""
    priority: Priority = 5
    max_retries: Annotated[
        int, Field(ge=0, lt=MAX_ATTEMPTS, description="Retries after a failure."), WHOLE
    ] = 4


class PlainJobOut(Output):
    model_config = ConfigDict(title="PlainJob")
    job_id: OutId
    user_id: str | None
    status: Status
    frequency: str
    payload: OutJson
    next_run_time: Annotated[
        OutInstant | None, Field(description="null: it is running, or will not run again.")
    ]
    retry_count: int
    worker_id: Annotated[str | None, Field(description="The node of the present or latest run.")]
    output: OutJson
    error: str | None
    created_at: OutInstant
    started_at: OutInstant | None
    finished_at: OutInstant | None


class PlainJobsOut(Output):
    model_config = ConfigDict(title="PlainJobs")
    jobs: list[PlainJobOut]
    next_cursor: Annotated[
        str | None, Field(description="Send it back as `cursor`; null: this is the last page.")
    ]


class PlainExecutionOut(Output):
    """A running attempt."""

    model_config = ConfigDict(title="PlainExecution")
    execution_id: OutId
    job_id: Annotated[
        OutId, Field(description="The submitted job: the same for all executions of a periodic job.")
    ]
    worker_id: str
    user_id: str | None
    status: Status
    attempt: int
    scheduled_time: OutInstant
    started_at: OutInstant | None


class PlainExecutionsOut(Output):
    model_config = ConfigDict(title="PlainExecutions")
    executions: list[PlainExecutionOut]
    next_cursor: str | None
