"""`duetime job`: list, show, reschedule, run, cancel and retry jobs. Submit and logs have their own files."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import typer

from duetime.cli.backend import Backend, find_job, with_backend
from duetime.cli.command import command, group
from duetime.cli.commands import job_logs, job_submit
from duetime.cli.completion import complete_state
from duetime.cli.format import moment_text, record_fields, say, show, show_list, show_record, target_text
from duetime.cli.inputs import (
    AtFlag,
    DelayFlag,
    ErrorFlag,
    InQueueFlag,
    JsonFlag,
    LimitFlag,
    OfLabelFlag,
    OfOwnerFlag,
    OfScheduleFlag,
    OfTargetFlag,
    PayloadFlag,
    PriorityFlag,
    read_label,
    read_moment,
    read_payload,
)
from duetime.cli.program import value_option
from duetime.cli.selection import JOB_FILTERS, Action, Selection, selection_flags
from duetime.model.views import JobSummary, JobView, to_json

commands = group("Submit, list, show, cancel and retry jobs.")
commands.registered_commands += job_submit.commands.registered_commands
commands.registered_commands += job_logs.commands.registered_commands

STOPPING = "is running: its worker was asked to stop it"
EXAMPLE = "01935c2e-7b3a-7000-8000-000000000000"
JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id, its first digits, or its last 8.")]
JobIds = Annotated[
    list[str] | None, typer.Argument(metavar="ID", help="Ids of jobs, their first digits, or their last 8.")
]
StateFlag = Annotated[
    str | None, value_option("--state", "STATE", "Only in this state.", autocompletion=complete_state)
]


@command(
    commands, "list", "duetime job list --state dead --limit 20", "duetime job list --schedule nightly --json"
)
def list_jobs(
    context: typer.Context,
    state: StateFlag = None,
    queue: InQueueFlag = None,
    schedule: OfScheduleFlag = None,
    owner: OfOwnerFlag = None,
    label: OfLabelFlag = None,
    target: OfTargetFlag = None,
    limit: LimitFlag = 50,
    as_json: JsonFlag = False,
) -> None:
    """Jobs in any state, the latest fire time first. In JSON, a payload over 4 KB is null: `payload_bytes`
    has its size, and `duetime job show` the payload."""
    wanted: dict[str, Any] = {
        "queue": queue,
        "schedule": schedule,
        "owner": owner,
        "target": target,
        "label": read_label(label),
    }
    found = with_backend(context, lambda backend: backend.jobs(state=state, limit=limit, **wanted))
    show_list(found, as_json, ("ID", "STATE", "TARGET", "SCHEDULE", "QUEUE", "DUE", "TRIES"), _row, "no jobs")


def _row(one: JobSummary) -> tuple[str, ...]:
    due = moment_text(_due_at(one))
    return (
        str(one.id),
        one.state.value,
        target_text(one.target),
        one.schedule or "-",
        one.queue,
        due,
        str(one.attempt),
    )


def _due_at(job: JobSummary) -> datetime:
    """When it was to start. For a job that an external worker runs, `due_at` is the deadline of its
    report."""
    handed_over = job.state == "running" and job.node is None
    reported = (
        job.state in ("succeeded", "dead") and job.finished_at is not None and job.finished_at < job.due_at
    )
    return job.fire_time if handed_over or reported else job.due_at


@command(commands, "show", f"duetime job show {EXAMPLE}")
def show_job(context: typer.Context, job_id: JobId, as_json: JsonFlag = False) -> None:
    """One job: its state and the reason for it, progress, checkpoint, attempts, result and error."""

    async def work(backend: Backend) -> dict[str, Any]:
        found = await find_job(backend, job_id)
        return {**to_json(await backend.get_job(found)), "why": (await backend.why_job(found)).why}

    show(with_backend(context, work), as_json, _show_details)


def _show_details(details: dict[str, Any]) -> None:
    attempts = details.pop("attempts")
    for name in ("error", "result"):
        if attempts and attempts[-1][name] == details[name]:
            del details[name]  # it is shown with its attempt
    show_record(record_fields(details))
    for attempt in attempts:
        say(f"\nattempt {attempt.pop('attempt')}")
        show_record(record_fields(attempt), margin="  ")


@command(
    commands,
    "cancel",
    f"duetime job cancel {EXAMPLE} --reason 'wrong month'",
    "duetime job cancel --all --queue mail --dry-run",
    "duetime job cancel --all --schedule nightly --yes",
)
def cancel(
    context: typer.Context,
    selection: Annotated[Selection, selection_flags(state=StateFlag, **JOB_FILTERS)],
    ids: JobIds = None,
    reason: Annotated[
        str | None, value_option("--reason", "TEXT", "Stored with the job.", show_default=False)
    ] = None,
) -> None:
    """Cancel jobs, by id or with --all. A running job is asked to stop."""
    if selection.everything and reason is not None:
        raise typer.BadParameter("--reason works only with ids, not with --all")

    apply_to_jobs(
        context, selection, ids, "cancel", "cancelled",
        lambda backend, job_id: backend.cancel_job(job_id, reason or "cancelled from the command line"),
        lambda job_id, job: f"{job_id} {'is cancelled' if job.state == 'cancelled' else STOPPING}",
    )  # fmt: skip


@command(
    commands,
    "reschedule",
    f"duetime job reschedule {EXAMPLE} --delay 2h",
    f"duetime job reschedule {EXAMPLE} --at 2030-01-01T09:00:00Z --priority 9",
)
def reschedule(
    context: typer.Context,
    job_id: JobId,
    at: AtFlag = None,
    delay: DelayFlag = None,
    priority: PriorityFlag = None,
) -> None:
    """Change when a pending job runs, its priority, or both."""
    if at is None and delay is None and priority is None:
        raise typer.BadParameter("nothing to change: give --at, --delay or --priority")
    instant = read_moment(at, delay)

    async def work(backend: Backend) -> JobView:
        found = await find_job(backend, job_id)
        return await backend.reschedule_job(found, at=instant, delay=delay, priority=priority)

    job = with_backend(context, work)
    say(f"{job.id} is due {moment_text(job.due_at)} with priority {job.priority}")


@command(commands, "run", f"duetime job run {EXAMPLE}", "duetime job run --all --queue mail")
def run(
    context: typer.Context,
    selection: Annotated[Selection, selection_flags(**JOB_FILTERS)],
    ids: JobIds = None,
) -> None:
    """Make pending jobs due now, by id or with --all."""
    apply_to_jobs(
        context, selection, ids, "run", "due now",
        lambda backend, job_id: backend.run_job(job_id),
        lambda job_id, _: f"{job_id} is due now",
    )  # fmt: skip


@command(
    commands,
    "retry",
    f"duetime job retry {EXAMPLE}",
    f"duetime job retry {EXAMPLE} --payload @corrected.json",
    "duetime job retry --all --target invoice.send --dry-run",
)
def retry(
    context: typer.Context,
    selection: Annotated[Selection, selection_flags(**JOB_FILTERS, error=ErrorFlag)],
    ids: JobIds = None,
    payload: PayloadFlag = None,
) -> None:
    """Run dead letters again, by id or with --all, each as a new job; a skipped job by its id. Prints the new
    ids. --payload replaces the arguments of one."""
    new_payload = read_new_payload(payload, ids, selection)
    apply_to_jobs(
        context, selection, ids, "retry", "retried",
        lambda backend, job_id: backend.retry_job(job_id, new_payload),
        lambda _, job: str(job.id),
    )  # fmt: skip


def read_new_payload(payload: str | None, ids: list[str] | None, selection: Selection) -> Any:
    if payload is not None and (selection.everything or len(ids or []) != 1):
        raise typer.BadParameter("--payload works only with a single id")
    return None if payload is None else read_payload(payload)


def apply_to_jobs(
    context: typer.Context,
    selection: Selection,
    ids: list[str] | None,
    action: str,
    done: str,
    one: Any,
    line: Any,
) -> None:
    noun = "dead letter" if action in ("retry", "discard") else "job"

    async def found(backend: Backend, text: str) -> tuple[UUID, Any]:
        job_id = await find_job(backend, text)
        return job_id, await one(backend, job_id)

    every = Action(
        noun,
        done,
        found,
        lambda _, done: line(*done),
        lambda backend, filters: backend.bulk_jobs(action, **filters),
    )
    every.apply(context, selection, ids, "ids")
