"""The worker protocol in requests."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, WithJsonSchema

from duetime.api.models.jobs import MAX_OUTPUT_LINES, OutputLineIn, ProgressIn, RetryIn
from duetime.api.models.targets import WHOLE, Duration, Input, Json, Name, PositiveDuration
from duetime.app.remote_work import MAX_CONCURRENCY

MAX_QUEUES, MAX_TASKS = 100, 1_000
_JOB_ID = "01935c2e-7b3a-7000-8000-000000000000"
_WORKER: dict[str, Any] = {"name": "mailer-1", "tasks": [{"name": "mail.send", "timeout": "1m"}]}
UuidText = Annotated[str, WithJsonSchema({"type": "string", "format": "uuid", "examples": [_JOB_ID]})]


class RemoteTaskIn(Input, title="RemoteTask"):
    """A task that the worker runs. Its policies hold for jobs that do not set their own."""

    name: Name
    timeout: PositiveDuration = ""
    retry: RetryIn = Field(default_factory=RetryIn)


class JoinIn(Input):
    model_config = ConfigDict(title="NewWorker", json_schema_extra={"examples": [_WORKER]})
    name: Name
    tasks: Annotated[list[RemoteTaskIn], Field(min_length=1, max_length=MAX_TASKS)]
    queues: Annotated[
        list[Name],
        Field(
            min_length=1,
            max_length=MAX_QUEUES,
            description="Left out: the queues that the key is limited to, or the queue default.",
        ),
    ] = Field(default_factory=list)
    concurrency: Annotated[
        int, Field(ge=1, le=MAX_CONCURRENCY, description="Jobs that it takes at once."), WHOLE
    ] = 1
    lease: Annotated[
        str,
        WithJsonSchema(
            {
                "type": "string",
                "format": "duetime-lease",
                "minLength": 1,
                "maxLength": 32,
                "description": "From 1s to 10m. Default: 30s.",
                "examples": ["30s"],
            }
        ),
    ] = "30s"


class ClaimIn(Input, title="Claim"):
    max: Annotated[int, Field(ge=1, le=MAX_CONCURRENCY, description="At most so many jobs."), WHOLE] = 1
    wait: Annotated[
        str,
        WithJsonSchema(
            {
                "type": "string",
                "format": "duetime-wait",
                "minLength": 1,
                "maxLength": 32,
                "description": "If no job is due, answer when one is, or after this time, up to 60s. "
                "The service answers sooner while it stops.",
                "examples": ["30s"],
            }
        ),
    ] = "0s"


class AttemptIn(Input):
    id: UuidText
    attempt: Annotated[int, Field(ge=1, le=2**31 - 1), WHOLE]


class AliveIn(AttemptIn, title="AliveJob"):
    checkpoint: Annotated[Json, Field(description="For the next attempt. null or left out: as it is.")] = None
    progress: ProgressIn = ProgressIn(done=0)


class WorkHeartbeatIn(Input, title="WorkerHeartbeat"):
    jobs: Annotated[
        list[AliveIn],
        Field(
            max_length=MAX_CONCURRENCY,
            description="All jobs of the worker whose report has not been answered yet.",
        ),
    ]


class JobOutputIn(AttemptIn, title="NewJobOutput"):
    lines: Annotated[list[OutputLineIn], Field(min_length=1, max_length=MAX_OUTPUT_LINES)]


class OutputsIn(Input, title="NewOutput"):
    jobs: Annotated[list[JobOutputIn], Field(min_length=1, max_length=MAX_CONCURRENCY)]


class CompletedIn(AttemptIn, title="CompletedJob"):
    result: Json = None


class CompletionsIn(Input, title="Completions"):
    jobs: Annotated[list[CompletedIn], Field(min_length=1, max_length=MAX_CONCURRENCY)]


class WorkErrorIn(Input, title="WorkError"):
    """What went wrong."""

    type: Annotated[str, Field(min_length=1, max_length=200, examples=["TimeoutError"])] = "Error"
    message: Annotated[str, Field(max_length=8_000, examples=["the mail server does not answer"])]
    traceback: Annotated[str, Field(max_length=8_000)] = ""


class FailedIn(AttemptIn, title="FailedJob"):
    error: WorkErrorIn
    retry: Annotated[bool, Field(description="false: no other attempt can succeed.")] = True
    after: Annotated[
        Duration, Field(description="Try again after this time. Left out: as the retry policy says.")
    ] = ""


class FailuresIn(Input, title="Failures"):
    jobs: Annotated[list[FailedIn], Field(min_length=1, max_length=MAX_CONCURRENCY)]


class SnoozedIn(AttemptIn, title="SnoozedJob"):
    after: Duration
    reason: Annotated[str, Field(max_length=500)] = ""


class SnoozesIn(Input, title="Snoozes"):
    jobs: Annotated[list[SnoozedIn], Field(min_length=1, max_length=MAX_CONCURRENCY)]


class ReleasedIn(AttemptIn, title="ReleasedJob"):
    started: Annotated[
        bool, Field(description="false: the worker has not begun, so an at-most-once job may run again.")
    ] = True


class ReleasesIn(Input, title="Releases"):
    jobs: Annotated[list[ReleasedIn], Field(min_length=1, max_length=MAX_CONCURRENCY)]
