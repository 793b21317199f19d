"""Maps plain jobs: a one-time job is a job, a periodic job is a schedule, and its executions are the jobs of
the schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from duetime.api.compat.job_schemas import PlainJobIn
from duetime.api.models.jobs import NewJobIn, RetryIn
from duetime.api.models.schedules import NewScheduleIn
from duetime.errors import InvalidInput, InvalidWhen
from duetime.model import duration
from duetime.model.instant import Micros
from duetime.model.job import Job, State
from duetime.model.schedule import Schedule, ScheduleDraft, ScheduleVersion
from duetime.model.schedule_json import iso
from duetime.model.schedule_status import schedule_status
from duetime.model.views.fields import decoded
from duetime.model.when import Cron, to_json

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
    moment: dict[str, Any] = {"at": body.next_run_time} if "next_run_time" in body.model_fields_set else {}
    return NewJobIn(**_common(body), **moment)


def new_schedule(body: PlainJobIn, name: str) -> NewScheduleIn:
    moment: dict[str, Any] = (
        {"start_at": body.next_run_time} if "next_run_time" in body.model_fields_set else {}
    )
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
        "started_at": iso(one.started_at),
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
        "started_at": None if last is None else iso(last.started_at),
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
        "started_at": iso(one.started_at),
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
