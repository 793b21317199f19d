"""Schemas of plain jobs, one-time or periodic: `job_id`, `user_id`, `frequency`, `next_run_time`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from pydantic import ConfigDict, Field, WithJsonSchema

from duetime.api.compat.agent_views import Missed, started_at
from duetime.api.models.jobs import NewJobIn, RetryIn
from duetime.api.models.schedules import MissedIn, NewScheduleIn
from duetime.api.models.targets import (
    HTTP_TARGET,
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
    both,
    neither,
    never,
)
from duetime.app.listing import JobQuery
from duetime.app.services import Services
from duetime.engine.submit.validate import check_id
from duetime.errors import InvalidInput, InvalidWhen
from duetime.model import duration
from duetime.model.instant import Micros
from duetime.model.job import Job, State
from duetime.model.retry import MAX_ATTEMPTS
from duetime.model.schedule import (
    Schedule,
    ScheduleDraft,
    ScheduleFilter,
    ScheduleVersion,
    iso,
    schedule_status,
)
from duetime.model.views.fields import decoded
from duetime.model.when import Cron, to_json

Status = Literal["pending", "scheduled", "running", "completed", "failed", "cancelled", "skipped", "paused"]
_TARGET = HTTP_TARGET["properties"]
_FREQUENCY = {
    "type": "string",
    "format": "duetime-frequency",
    "minLength": 1,
    "description": '"once", an interval such as "10m", a cron expression (UTC), or hourly, '
    "daily, weekly, monthly.",
    "examples": ["0 9 * * *"],
}
# A job runs a task or calls a URL; the payload of a task is an object of named arguments.
_RULES: dict[str, Any] = {
    **never(
        neither("task", "url"),
        *(both("task", name) for name in ("url", "method", "headers")),
        {"required": ["task", "payload"], "properties": {"payload": {"not": {"type": "object"}}}},
        {"required": ["missed"], "properties": {"frequency": {"const": "once"}}},
    ),
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
    missed: Missed = "latest"
    priority: Priority = 5
    max_retries: Annotated[
        int, Field(ge=0, lt=MAX_ATTEMPTS, description="Retries after a failure."), WHOLE
    ] = 4


class PlainJobOut(Output, title="PlainJob"):
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


class PlainJobsOut(Output, title="PlainJobs"):
    jobs: list[PlainJobOut]
    next_cursor: Annotated[
        str | None, Field(description="Send it back as `cursor`; null: this is the last page.")
    ]


class PlainExecutionOut(Output, title="PlainExecution"):
    """A running attempt."""

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


class PlainExecutionsOut(Output, title="PlainExecutions"):
    executions: list[PlainExecutionOut]
    next_cursor: str | None


# Maps plain jobs: a one-time job is a job, a periodic job is a schedule, and its executions are the jobs of
# the schedule.


ONCE = "once"
NICKNAMES = {"hourly", "daily", "weekly", "monthly", "yearly"}
STATUSES = {
    State.PENDING: "pending",
    State.QUEUED: "scheduled",
    State.RUNNING: "running",
    State.SUCCEEDED: "completed",
    State.DEAD: "failed",
    State.CANCELLED: "cancelled",
    State.SKIPPED: "skipped",
}
STATES = {status: state for state, status in STATUSES.items()}
Workers = Mapping[int, str]


def schedule_name(job_id: UUID) -> str:
    """Periodic jobs have no name in that API. The name comes from the id, so that a removed schedule can be
    found."""
    return f"job-{job_id}"


def named(draft: ScheduleDraft, job_id: UUID) -> ScheduleDraft:
    return replace(draft, id=job_id, name=schedule_name(job_id))


# -- requests ----------------------------------------------------------------------------------------------
def new_job(body: PlainJobIn) -> NewJobIn:
    if "missed" in body.model_fields_set:
        raise InvalidInput("missed", "is for periodic jobs: leave it out, or set frequency")
    moment: dict[str, Any] = {"at": body.next_run_time} if "next_run_time" in body.model_fields_set else {}
    return NewJobIn(**_common(body), **moment)


def new_schedule(body: PlainJobIn, name: str) -> NewScheduleIn:
    moment: dict[str, Any] = (
        {"start_at": body.next_run_time} if "next_run_time" in body.model_fields_set else {}
    )
    if "missed" in body.model_fields_set:
        moment["missed"] = MissedIn(policy=body.missed)
    return NewScheduleIn(name=name, when=_when(body.frequency), overlap="skip", **_common(body), **moment)


def _common(body: PlainJobIn) -> dict[str, Any]:
    given = body.model_fields_set
    options: dict[str, Any] = {"target": _target(body), "priority": body.priority}
    if "payload" in given or "url" in given:
        options["payload"] = body.payload
    if "user_id" in given:
        options["owner"] = body.user_id
    if "max_retries" in given:
        options["retry"] = RetryIn(max_attempts=body.max_retries + 1)
    return options


def _target(body: PlainJobIn) -> dict[str, Any]:
    given = body.model_fields_set
    if ("task" in given) == ("url" in given):
        raise InvalidInput("task", "use either `task`, the name of a task, or `url`, the address to call")
    if "url" in given:
        return {"type": "http", "url": body.url, "method": body.method, "headers": body.headers}
    for name in ("method", "headers"):
        if name in given:
            raise InvalidInput(name, "is for jobs that call a url: leave it out for a task")
    return {"type": "task", "name": body.task}


def _when(frequency: str) -> dict[str, str]:
    if frequency in NICKNAMES:
        return {"cron": f"@{frequency}", "tz": "UTC"}
    try:
        duration.positive(frequency, "frequency")
    except InvalidInput:
        return {"cron": frequency, "tz": "UTC"}
    return {"every": frequency}


def original_field(problem: InvalidInput) -> InvalidInput:
    match problem.field.split("."):
        case ["when", *_]:
            return InvalidWhen(
                "frequency",
                f'{problem.reason}; or use "once", an interval such as "10m", hourly, daily, '
                f"weekly or monthly",
            )
        case ["target", "name"]:
            return type(problem)("task", problem.reason)
        case ["target", *rest]:
            return type(problem)(".".join(rest), problem.reason)
        case ["at" | "start_at"]:
            return type(problem)("next_run_time", problem.reason)
        case ["owner"]:
            return type(problem)("user_id", problem.reason)
        case _:
            return problem


# -- answers -----------------------------------------------------------------------------------------------
def job(one: Job, workers: Workers) -> dict[str, Any]:
    return {
        "job_id": str(one.id),
        "user_id": one.owner,
        "status": STATUSES[one.state],
        "frequency": ONCE,
        "payload": decoded(one.payload),
        "next_run_time": iso(one.due_at) if one.state in (State.PENDING, State.QUEUED) else None,
        "retry_count": _retries(one),
        "worker_id": _worker(one.node, workers),
        "output": decoded(one.result),
        "error": one.error,
        "created_at": iso(one.created_at),
        "started_at": iso(started_at(one)),
        "finished_at": iso(one.finished_at),
    }


def status_of(one: Schedule, now: Micros) -> str:
    """The status of a periodic job; running ones are among the executions."""
    return (
        "paused"
        if one.paused
        else "completed"
        if schedule_status(one, now).next_fire_time is None
        else "pending"
    )


def periodic(one: Schedule, last: Job | None, workers: Workers, now: Micros) -> dict[str, Any]:
    """A periodic job with its last execution, if known."""
    return {
        "job_id": str(one.id),
        "user_id": one.draft.owner,
        "status": status_of(one, now),
        "frequency": _frequency(one.draft),
        "payload": decoded(one.draft.payload),
        "next_run_time": iso(schedule_status(one, now).next_fire_time),
        "retry_count": 0 if last is None else _retries(last),
        "worker_id": None if last is None else _worker(last.node, workers),
        "output": None if last is None else decoded(last.result),
        "error": None if last is None else last.error,
        "created_at": iso(one.created_at),
        "started_at": None if last is None else iso(started_at(last)),
        "finished_at": None if last is None else iso(last.finished_at),
    }


def removed(last: ScheduleVersion, created_at: Micros) -> dict[str, Any]:
    """A cancelled periodic job, from the last version of its schedule."""
    return {
        **dict.fromkeys(("next_run_time", "worker_id", "output", "error", "started_at")),
        "job_id": str(last.draft.id),
        "user_id": last.draft.owner,
        "status": "cancelled",
        "frequency": _frequency(last.draft),
        "payload": decoded(last.draft.payload),
        "retry_count": 0,
        "created_at": iso(created_at),
        "finished_at": iso(last.at),
    }


def execution(one: Job, workers: Workers) -> dict[str, Any]:
    return {
        "execution_id": str(one.id),
        "job_id": str(one.schedule_id or one.id),
        "worker_id": _worker(one.node, workers) or "outside",
        "user_id": one.owner,
        "status": STATUSES[one.state],
        "attempt": one.attempt,
        "scheduled_time": iso(one.fire_time),
        "started_at": iso(started_at(one)),
    }


def _retries(one: Job) -> int:
    """Retries after failures."""
    return one.failures - 1 if one.state is State.DEAD and one.failures else one.failures


def _worker(node: int | None, workers: Workers) -> str | None:
    return None if node is None else workers.get(node, str(node))


def _frequency(draft: ScheduleDraft) -> str:
    when = to_json(draft.when)
    if isinstance(draft.when, Cron):
        return when["cron"].removeprefix("@") if when["cron"].removeprefix("@") in NICKNAMES else when["cron"]
    return next(iter(when.values()))


# Pages of plain jobs: first the periodic jobs, which are schedules, by name; then one-time jobs, newest
# first.


ROWS = 200  # read at a time
MAX_ROWS = 5_000  # read for one page: jobs of schedules are between the one-time jobs and are skipped
Position = list[Any]  # ["periodic", name] or ["once", id] of the last row read


class PlainJobPage(NamedTuple):
    found: list[Schedule | Job]
    next: Position | None


async def jobs_after(
    view: Services, status: str | None, user: str | None, limit: int, position: Position | None
) -> PlainJobPage:
    """A page may contain fewer than `limit` jobs and not be the last."""
    found: list[Schedule | Job] = []
    rows = 0
    async for row, place in _rows(view, status, user, position):
        rows += 1
        if row is not None:
            found.append(row)
        if len(found) == limit or rows == MAX_ROWS:
            return PlainJobPage(found, place)
    return PlainJobPage(found, None)


async def _rows(
    view: Services, status: str | None, user: str | None, position: Position | None
) -> AsyncIterator[tuple[Schedule | Job | None, Position]]:
    """Every row with its position; None for a row to skip."""
    if position is None or position[0] == "periodic":
        now = await view.now()
        async for schedule in _schedules(view, user, None if position is None else position[1]):
            yield (
                schedule if status in (None, status_of(schedule, now)) else None,
                ["periodic", schedule.draft.name],
            )
        position = None
    if status is None or status in STATES:
        before = None if position is None else check_id(position[1])
        async for job in _jobs(view, status, user, before):
            yield job if job.schedule_id is None else None, ["once", str(job.id)]


async def _schedules(view: Services, user: str | None, after: str | None) -> AsyncIterator[Schedule]:
    while found := await view.schedules.page(ScheduleFilter(view.tenant, owner=user), ROWS, after):
        for one in found:
            yield one
        after = found[-1].draft.name


async def _jobs(
    view: Services, status: str | None, user: str | None, before: UUID | None
) -> AsyncIterator[Job]:
    query = JobQuery(None if status is None else STATES[status], owner=user)
    while True:
        page = await view.jobs.page(query, ROWS, before)
        for one in page.jobs:
            yield one
        if page.next is None:
            return
        before = page.next
