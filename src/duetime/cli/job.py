"""`duetime job`: submit, look at, cancel and retry jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.cli.command import command, group
from duetime.cli.completion import complete_schedule, complete_state
from duetime.cli.flags import JsonFlag, LimitFlag, PayloadFlag, PriorityFlag, QueueFlag, words

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.handle import JobHandle
    from duetime.model.attempt import Attempt
    from duetime.model.job import CancelReply, Job

job = group("Submit jobs and see what became of them.")

JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]


@command(
    job,
    "submit",
    'duetime job submit invoice.send --payload \'{"customer": "c1"}\'',
    "duetime job submit report.build --delay 15m --label team=finance",
    "duetime job submit cleanup --at 2030-01-01T03:00:00+01:00 --unique-key cleanup-2030",
)
def submit(
    context: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's name.")],
    payload: PayloadFlag = None,
    at: Annotated[str | None, words("--at", "ISO", "Run at this instant.")] = None,
    delay: Annotated[str | None, words("--delay", "TIME", "Run after this time, such as 15m.")] = None,
    priority: PriorityFlag = None,
    queue: QueueFlag = None,
    unique_key: Annotated[str | None, words("--unique-key", "TEXT", "At most one unfinished job has it.")] = None,
    timeout: Annotated[str | None, words("--timeout", "TIME", "How long an attempt may take.")] = None,
    max_attempts: Annotated[int | None, words("--max-attempts", "N", "How many failures make it a dead letter.")] = None,
    owner: Annotated[str | None, words("--owner", "NAME", "Who submits it.")] = None,
    label: Annotated[list[str] | None, words("--label", "NAME=VALUE", "A label; may be repeated.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has finished; fail when it did not succeed.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Store one job. When this returns, it is durable."""
    from duetime.cli.inputs import read_instant, read_labels, read_payload
    from duetime.cli.session import with_app
    from duetime.engine.drafts import NewJob
    from duetime.model.retry import Retry

    new = NewJob(
        task, read_payload(payload), read_instant(at, "at"), delay, priority, queue, unique_key, timeout,
        None if max_attempts is None else Retry(max_attempts=max_attempts), None, owner, read_labels(label or []),
    )  # fmt: skip

    async def work(app: App) -> JobHandle:
        from duetime.engine.drafts import check_name

        check_name(task, "task")
        handle = (await app.submit_many([new]))[0]
        return await (handle.wait() if wait else handle.refresh())

    _report_submitted(with_app(context, work, creates=True), wait, as_json)


def _report_submitted(handle: JobHandle, waited: bool, as_json: bool) -> None:
    from duetime.cli.output import say, show_json
    from duetime.cli.records import job_details
    from duetime.errors import JobFailed
    from duetime.model.codec import encode

    if as_json:
        show_json({**job_details(handle.record, []), "created": handle.created})
    else:
        say(str(handle.id))
        if waited and handle.state == "succeeded":
            say(f"succeeded: {encode(handle.result).decode()}")
        if not handle.created:
            typer.echo("the unique key is taken: this is the job that holds it", err=True)
    if waited and handle.state != "succeeded":
        raise JobFailed(f"job {handle.id} is {handle.state}: {(handle.error or 'no reason given').strip().splitlines()[-1]}")


@command(job, "list", "duetime job list --state dead --limit 20", "duetime job list --schedule nightly --json")
def list_jobs(
    context: typer.Context,
    state: Annotated[str | None, words("--state", "STATE", "Only in this state.", autocompletion=complete_state)] = None,
    queue: Annotated[str | None, words("--queue", "NAME", "Only in this queue.")] = None,
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
    """One job: payload, attempts, result and error."""
    from duetime.cli.output import show_json
    from duetime.cli.records import job_details
    from duetime.cli.session import with_app

    async def work(app: App) -> tuple[Job, list[Attempt]]:
        handle = await app.get_job(job_id)
        return handle.record, await app.store.list_attempts(handle.id)

    found, attempts = with_app(context, work)
    if as_json:
        show_json(job_details(found, attempts))
        return
    _show_details(job_details(found, attempts))


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


@command(job, "retry", "duetime job retry 01935c2e-7b3a-7000-8000-000000000000")
def retry(context: typer.Context, job_id: JobId) -> None:
    """Run a dead letter again, as a new job; prints its id."""
    from duetime.cli.output import say
    from duetime.cli.session import with_app

    say(str(with_app(context, lambda app: app.retry_job(job_id)).id))
