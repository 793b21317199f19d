"""Between the words of plain jobs and ours: a job once is a job, a periodic one is a schedule, and its executions are that one's jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from duetime.api import shown
from duetime.api.compat.job_bodies import PlainJobIn
from duetime.api.models.jobs import NewJobIn, RetryIn
from duetime.api.models.schedules import NewScheduleIn
from duetime.errors import InvalidInput, InvalidWhen
from duetime.model import duration
from duetime.model.instant import Micros
from duetime.model.job import Job, State
from duetime.model.schedule import Schedule, ScheduleDraft, ScheduleVersion
from duetime.model.standing import standing
from duetime.model.when import Cron, to_json

ONCE = "once"
WORDS = {"hourly", "daily", "weekly", "monthly", "yearly"}
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
    """A periodic job has no name there: here it is made of its id, so that it is found even when the schedule is gone."""
    return f"job-{job_id}"


def named(draft: ScheduleDraft, job_id: UUID) -> ScheduleDraft:
    return replace(draft, id=job_id, name=schedule_name(job_id))


# -- what comes in --------------------------------------------------------------------------------------------------------
def new_job(body: PlainJobIn) -> NewJobIn:
    moment: dict[str, Any] = {"at": body.next_run_time} if "next_run_time" in body.model_fields_set else {}
    return NewJobIn(**_common(body), **moment)


def new_schedule(body: PlainJobIn, name: str) -> NewScheduleIn:
    moment: dict[str, Any] = {"start_at": body.next_run_time} if "next_run_time" in body.model_fields_set else {}
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
        raise InvalidInput("task", "give either `task`, the name of what to run, or `url`, what to call")
    if "url" in given:
        return {"type": "http", "url": body.url, "method": body.method, "headers": body.headers}
    for name in ("method", "headers"):
        if name in given:
            raise InvalidInput(name, "is for jobs that call a url: leave it out beside a task")
    return {"type": "task", "name": body.task}


def _when(frequency: str) -> dict[str, str]:
    if frequency in WORDS:
        return {"cron": f"@{frequency}", "tz": "UTC"}
    try:
        duration.positive(frequency, "frequency")
    except InvalidInput:
        return {"cron": frequency, "tz": "UTC"}
    return {"every": frequency}


def in_their_words(problem: InvalidInput) -> InvalidInput:
    match problem.field.split("."):
        case ["when", *_]:
            return InvalidWhen("frequency", f'{problem.reason}; or "once", a time such as "10m", hourly, daily, weekly, monthly')
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


# -- what goes out --------------------------------------------------------------------------------------------------------
def job(one: Job, workers: Workers) -> dict[str, Any]:
    return {
        "job_id": str(one.id),
        "user_id": one.owner,
        "status": STATUSES[one.state],
        "frequency": ONCE,
        "payload": shown.decoded(one.payload),
        "next_run_time": shown.iso(one.due_at) if one.state in (State.PENDING, State.QUEUED) else None,
        "retry_count": _retries(one),
        "worker_id": _worker(one.node, workers),
        "output": shown.decoded(one.result),
        "error": one.error,
        "created_at": shown.iso(one.created_at),
        "started_at": shown.iso(one.started_at),
        "finished_at": shown.iso(one.finished_at),
    }


def status_of(one: Schedule, now: Micros) -> str:
    """Of a periodic job; what of it runs is among the executions."""
    return "paused" if one.paused else "completed" if standing(one, now).next_fire_time is None else "pending"


def periodic(one: Schedule, last: Job | None, workers: Workers, now: Micros) -> dict[str, Any]:
    """A periodic job, with its last execution where that was looked for."""
    return {
        "job_id": str(one.id),
        "user_id": one.draft.owner,
        "status": status_of(one, now),
        "frequency": _frequency(one.draft),
        "payload": shown.decoded(one.draft.payload),
        "next_run_time": shown.iso(standing(one, now).next_fire_time),
        "retry_count": 0 if last is None else _retries(last),
        "worker_id": None if last is None else _worker(last.node, workers),
        "output": None if last is None else shown.decoded(last.result),
        "error": None if last is None else last.error,
        "created_at": shown.iso(one.created_at),
        "started_at": None if last is None else shown.iso(last.started_at),
        "finished_at": None if last is None else shown.iso(last.finished_at),
    }


def gone(last: ScheduleVersion, created_at: Micros) -> dict[str, Any]:
    """A periodic job that was cancelled, by the last that is known of it."""
    return {
        **dict.fromkeys(("next_run_time", "worker_id", "output", "error", "started_at")),
        "job_id": str(last.draft.id),
        "user_id": last.draft.owner,
        "status": "cancelled",
        "frequency": _frequency(last.draft),
        "payload": shown.decoded(last.draft.payload),
        "retry_count": 0,
        "created_at": shown.iso(created_at),
        "finished_at": shown.iso(last.at),
    }


def execution(one: Job, workers: Workers) -> dict[str, Any]:
    return {
        "execution_id": str(one.id),
        "job_id": str(one.schedule_id or one.id),
        "worker_id": _worker(one.node, workers) or "outside",
        "user_id": one.owner,
        "status": STATUSES[one.state],
        "attempt": one.attempt,
        "scheduled_time": shown.iso(one.fire_time),
        "started_at": shown.iso(one.started_at),
    }


def _retries(one: Job) -> int:
    """How often it was tried again because it had failed."""
    return one.failures - 1 if one.state is State.DEAD and one.failures else one.failures


def _worker(node: int | None, workers: Workers) -> str | None:
    return None if node is None else workers.get(node, str(node))


def _frequency(draft: ScheduleDraft) -> str:
    when = to_json(draft.when)
    if isinstance(draft.when, Cron):
        return when["cron"].removeprefix("@") if when["cron"].removeprefix("@") in WORDS else when["cron"]
    return next(iter(when.values()))
