"""Jobs, once or periodic, as bodies show them: `job_id`, `user_id`, `frequency`, `next_run_time`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from duetime.api.models.fields import WHOLE, Input, Instant, Json, Name, OutId, OutInstant, OutJson, Output, Priority
from duetime.api.models.targets import HTTP_TARGET
from duetime.model.retry import MOST_ATTEMPTS

Status = Literal["pending", "scheduled", "running", "completed", "failed", "cancelled", "skipped", "paused"]
_TARGET = HTTP_TARGET["properties"]
_FREQUENCY = {
    "type": "string",
    "format": "duetime-frequency",
    "minLength": 1,
    "default": "once",
    "description": '"once"; or how often: a time such as "10m", a cron expression (UTC), or hourly, daily, weekly, monthly.',
    "examples": ["0 9 * * *"],
}
# What is run is a task or a URL; a task's payload is its named arguments.
_RULES: dict[str, Any] = {
    "oneOf": [
        {"required": ["task"], "properties": {"payload": {"type": "object"}, "url": False, "method": False, "headers": False}},
        {"required": ["url"], "properties": {"task": False}},
    ],
    "examples": [{"user_id": "u003", "url": "https://agent.example/run", "payload": {"customer": "c1"}, "frequency": "once"}],
}
Url = Annotated[str, WithJsonSchema(_TARGET["url"])]
Method = Annotated[str, WithJsonSchema(_TARGET["method"])]
Headers = Annotated[dict[str, str], WithJsonSchema(_TARGET["headers"])]
Frequency = Annotated[str, WithJsonSchema(_FREQUENCY)]


class PlainJobIn(Input):
    """A job to run once or periodically."""

    model_config = ConfigDict(title="NewPlainJob", json_schema_extra=_RULES)
    user_id: Annotated[Name, Field(description="Whose job it is.")] = ""
    task: Annotated[Name, Field(description="The task to run, by name.")] = ""
    url: Url = ""
    method: Method = "POST"
    headers: Headers = Field(default_factory=dict)
    payload: Json = None
    frequency: Frequency = "once"
    next_run_time: Annotated[Instant, Field(description="When it runs first; without it, now, or when its frequency says.")] = ""
    priority: Priority = 5
    max_retries: Annotated[int, Field(ge=0, lt=MOST_ATTEMPTS, description="How often it is tried again after a failure."), WHOLE] = 4


class PlainJobOut(Output):
    model_config = ConfigDict(title="PlainJob")
    job_id: OutId
    user_id: str | None
    status: Status
    frequency: str
    payload: OutJson
    next_run_time: Annotated[OutInstant | None, Field(description="null: it runs, or will not run again.")]
    retry_count: int
    worker_id: Annotated[str | None, Field(description="The node that runs it, or ran it last.")]
    output: OutJson
    error: str | None
    created_at: OutInstant
    started_at: OutInstant | None
    finished_at: OutInstant | None


class PlainJobsOut(Output):
    model_config = ConfigDict(title="PlainJobs")
    jobs: list[PlainJobOut]
    next_cursor: Annotated[str | None, Field(description="Give it back as `cursor`; null: this is the last page.")]


class PlainExecutionOut(Output):
    """One attempt under way."""

    model_config = ConfigDict(title="PlainExecution")
    execution_id: OutId
    job_id: Annotated[OutId, Field(description="The job that was submitted: of a periodic one all executions have the same.")]
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
