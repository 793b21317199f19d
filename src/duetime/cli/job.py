"""`duetime job`: look at, move, cancel and retry jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.cli.command import command, group
from duetime.cli.completion import complete_queue, complete_schedule, complete_state
from duetime.cli.flags import AtFlag, DelayFlag, JsonFlag, LimitFlag, PayloadFlag, PriorityFlag, words
from duetime.cli.submit import add_submit

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.handle import JobHandle
    from duetime.model.job import CancelReply, Job

job = group("Submit jobs and see what became of them.")

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]

add_submit(job)


@command(job, "list", "duetime job list --state dead --limit 20", "duetime job list --schedule nightly --json")
def list_jobs(
    context: typer.Context,
    state: Annotated[str | None, words("--state", "STATE", "Only in this state.", autocompletion=complete_state)] = None,
    queue: Annotated[str | None, words("--queue", "NAME", "Only in this queue.", autocompletion=complete_queue)] = None,
    schedule: Annotated[str | None, words("--schedule", "NAME", "Only of this schedule.", autocompletion=complete_schedule)] = None,
    limit: LimitFlag = 50,
    as_json: JsonFlag = False,
) -> None:
    """The newest jobs, by fire time, waiting ones and finished ones."""
    from duetime.cli.session import with_app

    show_jobs(with_app(context, lambda app: app.jobs(state=state, queue=queue, schedule=schedule, limit=limit)), as_json, "no jobs")


def show_jobs(handles: list[JobHandle], as_json: bool, empty: str) -> None:
    from duetime.cli.output import show_json, show_table
    from duetime.cli.records import job_summary

    if as_json:
        show_json([job_summary(handle.record) for handle in handles])
        return
    columns = ("ID", "STATE", "TASK", "SCHEDULE", "QUEUE", "DUE", "TRIES")
    show_table(columns, [_row(handle.record) for handle in handles], empty)


def _row(job: Job) -> tuple[str, ...]:
    from duetime.cli.moments import full
    from duetime.clock import wall_micros
    from duetime.model.instant import to_datetime

    due = full(to_datetime(job.due_at), to_datetime(wall_micros()))
    return str(job.id), job.state.value, job.target, job.schedule or "-", job.queue, due, str(job.attempt)


@command(job, "show", "duetime job show 01935c2e-7b3a-7000-8000-000000000000")
def show(context: typer.Context, job_id: JobId, as_json: JsonFlag = False) -> None:
    """One job: what it waits for, progress, checkpoint, attempts, result and error."""
    from duetime.cli.output import show_json
    from duetime.cli.records import job_details
    from duetime.cli.session import with_app
    from duetime.cli.waiting import waits_for

    async def work(app: App) -> dict[str, Any]:
        found = (await app.get_job(job_id)).record
        return job_details(found, await app.store.list_attempts(found.id), await waits_for(app, found))

    details = with_app(context, work)
    if as_json:
        show_json(details)
        return
    _show_details(details)


def _show_details(details: dict[str, Any]) -> None:
    from duetime.cli.output import Field, say, show_record
    from duetime.cli.shown import shown_fields

    attempts = details.pop("attempts")
    if attempts and attempts[-1]["error"] == details["error"]:
        del details["error"]  # it is shown with its attempt
    show_record([Field(name, value) for name, value in shown_fields(details) if value])
    for attempt in attempts:
        say(f"\nattempt {attempt.pop('attempt')}")
        show_record([Field(f"  {name}", value) for name, value in shown_fields(attempt) if value])


@command(job, "cancel", "duetime job cancel 01935c2e-7b3a-7000-8000-000000000000 --reason 'wrong month'")
def cancel(
    context: typer.Context,
    job_id: JobId,
    reason: Annotated[str, words("--reason", "TEXT", "Kept with the job.")] = "cancelled from the command line",
) -> None:
    """End a job before it starts, or ask its worker to stop it."""
    from duetime.cli.output import say
    from duetime.cli.session import with_app

    reply: CancelReply = with_app(context, lambda app: app.cancel_job(job_id, reason))
    say(f"{job_id} {'is cancelled' if reply == 'cancelled' else 'runs: its worker has been asked to stop it'}")


@command(
    job,
    "move",
    "duetime job move 01935c2e-7b3a-7000-8000-000000000000 --delay 2h",
    "duetime job move 01935c2e-7b3a-7000-8000-000000000000 --at 2030-01-01T09:00:00Z --priority 9",
)
def move(context: typer.Context, job_id: JobId, at: AtFlag = None, delay: DelayFlag = None, priority: PriorityFlag = None) -> None:
    """Change when a waiting job runs, its priority, or both."""
    from duetime.cli.inputs import read_instant
    from duetime.cli.moments import full
    from duetime.cli.output import say
    from duetime.cli.session import store_now, with_app

    if at is None and delay is None and priority is None:
        raise typer.BadParameter("give --at, --delay, --priority, or an instant and a priority")
    instant = read_instant(at, "at")

    async def work(app: App) -> str:
        handle = await app.get_job(job_id)
        await handle.move(at=instant, delay=delay, priority=priority)
        await handle.refresh()
        return f"{job_id} is due {full(handle.due_at, await store_now(app))} with priority {handle.priority}"

    say(with_app(context, work))


@command(
    job,
    "retry",
    "duetime job retry 01935c2e-7b3a-7000-8000-000000000000",
    "duetime job retry 01935c2e-7b3a-7000-8000-000000000000 --payload @mended.json",
)
def retry(context: typer.Context, job_id: JobId, payload: PayloadFlag = None) -> None:
    """Run a dead letter again, as a new job; prints its id. --payload mends its arguments."""
    from duetime.cli.inputs import read_payload
    from duetime.cli.output import say
    from duetime.cli.session import with_app

    mended = None if payload is None else read_payload(payload)
    say(str(with_app(context, lambda app: app.retry_job(job_id, mended)).id))
