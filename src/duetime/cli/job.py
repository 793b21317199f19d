"""`duetime job`: look at, move, run, cancel and retry jobs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.cli.choice import OF_JOBS, Choice, all_that_match, choosing, one_by_one
from duetime.cli.command import command, group
from duetime.cli.completion import complete_state
from duetime.cli.flags import (
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
    words,
)
from duetime.cli.submit import add_submit

if TYPE_CHECKING:
    from duetime.cli.access import Access
    from duetime.remote.results import JobSummary

job = group("Submit jobs and see what became of them.")

EXAMPLE = "01935c2e-7b3a-7000-8000-000000000000"
JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]
JobIds = Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids of jobs.")]
StateFlag = Annotated[str | None, words("--state", "STATE", "Only in this state.", autocompletion=complete_state)]

add_submit(job)


@command(job, "list", "duetime job list --state dead --limit 20", "duetime job list --schedule nightly --json")
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
    """The newest jobs, by fire time, waiting ones and finished ones."""
    from duetime.cli.inputs import read_label
    from duetime.cli.session import with_access

    wanted: dict[str, Any] = {"queue": queue, "schedule": schedule, "owner": owner, "target": target, "label": read_label(label)}
    show_jobs(with_access(context, lambda access: access.jobs(state=state, limit=limit, **wanted)), as_json)


def show_jobs(found: list[JobSummary], as_json: bool) -> None:
    from duetime.cli.conversion import plain
    from duetime.cli.output import show_json, show_table

    if as_json:
        show_json(plain(found))
        return
    show_table(("ID", "STATE", "TARGET", "SCHEDULE", "QUEUE", "DUE", "TRIES"), [_row(one) for one in found], "no jobs")


def _row(one: JobSummary) -> tuple[str, ...]:
    from duetime.cli.moments import full, now_here
    from duetime.cli.shown import due_of, target_text

    due = full(due_of(one), now_here())
    return str(one.id), one.state.value, target_text(one.target), one.schedule or "-", one.queue, due, str(one.attempt)


@command(job, "show", f"duetime job show {EXAMPLE}")
def show(context: typer.Context, job_id: JobId, as_json: JsonFlag = False) -> None:
    """One job: why it is as it is, progress, checkpoint, attempts, result and error."""
    from duetime.cli.conversion import plain
    from duetime.cli.output import show_json
    from duetime.cli.session import with_access

    async def work(access: Access) -> dict[str, Any]:
        found = plain(await access.get_job(job_id))
        return {**found, "why": (await access.why_job(job_id)).why}

    details = with_access(context, work)
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


@command(
    job,
    "cancel",
    f"duetime job cancel {EXAMPLE} --reason 'wrong month'",
    "duetime job cancel --all --queue mail --dry-run",
    "duetime job cancel --all --schedule nightly --yes",
)
@choosing(state=StateFlag, **OF_JOBS)
def cancel(
    context: typer.Context,
    choice: Choice,
    ids: JobIds = None,
    reason: Annotated[str | None, words("--reason", "TEXT", "Kept with the job.", show_default=False)] = None,
) -> None:
    """End jobs before they start, or ask their workers to stop them; or all that match."""
    if choice.everything and reason is not None:
        raise typer.BadParameter("--reason is for jobs given by their ids: leave it out beside --all")

    async def act(access: Access, job_id: str) -> str:
        ended = (await access.cancel_job(job_id, reason or "cancelled from the command line")).state == "cancelled"
        return f"{job_id} {'is cancelled' if ended else 'runs: its worker has been asked to stop it'}"

    act_on_jobs(context, "cancel", "cancelled", choice, ids, act)


@command(
    job,
    "move",
    f"duetime job move {EXAMPLE} --delay 2h",
    f"duetime job move {EXAMPLE} --at 2030-01-01T09:00:00Z --priority 9",
)
def move(context: typer.Context, job_id: JobId, at: AtFlag = None, delay: DelayFlag = None, priority: PriorityFlag = None) -> None:
    """Change when a waiting job runs, its priority, or both."""
    from duetime.cli.inputs import read_moment
    from duetime.cli.moments import full, now_here
    from duetime.cli.output import say
    from duetime.cli.session import with_access

    if at is None and delay is None and priority is None:
        raise typer.BadParameter("give --at, --delay, --priority, or an instant and a priority")
    instant = read_moment(at, delay)
    moved = with_access(context, lambda access: access.move_job(job_id, at=instant, delay=delay, priority=priority))
    say(f"{job_id} is due {full(moved.due_at, now_here())} with priority {moved.priority}")


@command(job, "run", f"duetime job run {EXAMPLE}", "duetime job run --all --queue mail")
@choosing(**OF_JOBS)
def run(context: typer.Context, choice: Choice, ids: JobIds = None) -> None:
    """Have waiting jobs due now, whatever they wait for; or all that match."""

    async def act(access: Access, job_id: str) -> str:
        await access.run_job(job_id)
        return f"{job_id} is due now"

    act_on_jobs(context, "run", "due now", choice, ids, act)


@command(
    job,
    "retry",
    f"duetime job retry {EXAMPLE}",
    f"duetime job retry {EXAMPLE} --payload @mended.json",
    "duetime job retry --all --target invoice.send --dry-run",
)
@choosing(**OF_JOBS, error=ErrorFlag)
def retry(context: typer.Context, choice: Choice, ids: JobIds = None, payload: PayloadFlag = None) -> None:
    """Run dead letters again, each as a new job, whose id is printed; or all that match. --payload mends the arguments of one."""
    mended = mended_payload(payload, ids, choice)

    async def act(access: Access, job_id: str) -> str:
        return str((await access.retry_job(job_id, mended)).id)

    act_on_jobs(context, "retry", "retried", choice, ids, act)


def mended_payload(payload: str | None, ids: list[str] | None, choice: Choice) -> Any:
    from duetime.cli.inputs import read_payload

    if payload is not None and (choice.everything or len(ids or []) != 1):
        raise typer.BadParameter("--payload is for one dead letter: give its id alone")
    return None if payload is None else read_payload(payload)


def act_on_jobs(context: typer.Context, action: str, verb: str, choice: Choice, ids: list[str] | None, act: Any) -> None:
    choice.check(ids, "ids")
    if ids:
        one_by_one(context, ids, act)
        return
    noun = "dead letter" if action in ("retry", "discard") else "job"
    all_that_match(context, noun, verb, choice, lambda access: partial(access.bulk_jobs, action))
