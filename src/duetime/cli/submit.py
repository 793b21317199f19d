"""`duetime job submit`: store one job, and wait for it if that is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.cli.command import command
from duetime.cli.completion import complete_conflict, complete_task
from duetime.cli.flags import AtFlag, DelayFlag, JsonFlag, PayloadFlag, PriorityFlag, QueueFlag, words

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.handle import JobHandle

CONFLICTS = {
    "skipped": "the unique key is taken: this is the job that holds it",
    "replaced": "the waiting job with this unique key was cancelled, and this one takes its place",
    "rescheduled": "the unique key is taken: the waiting job that holds it, this one, was moved to the time asked for",
}


def add_submit(group: typer.Typer) -> None:
    command(
        group,
        "submit",
        'duetime job submit invoice.send --payload \'{"customer": "c1"}\'',
        "duetime job submit report.build --delay 15m --label team=finance",
        "duetime job submit cleanup --at 2030-01-01T03:00:00+01:00 --unique-key cleanup-2030",
        "duetime job submit report.build --delay 1h --unique-key report --on-conflict reschedule",
    )(submit)


def submit(
    context: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's name.", autocompletion=complete_task)],
    payload: PayloadFlag = None,
    at: AtFlag = None,
    delay: DelayFlag = None,
    priority: PriorityFlag = None,
    queue: QueueFlag = None,
    unique_key: Annotated[str | None, words("--unique-key", "TEXT", "At most one unfinished job has it.")] = None,
    on_conflict: Annotated[
        str | None,
        words("--on-conflict", "WAY", "When the key is taken: skip, replace or reschedule.", autocompletion=complete_conflict),
    ] = None,
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
    from duetime.model.retry import Retry

    arguments = read_payload(payload)
    options = {
        "at": read_instant(at, "at"), "delay": delay, "priority": priority, "queue": queue, "unique_key": unique_key,
        "on_conflict": on_conflict, "timeout": timeout, "retry": None if max_attempts is None else Retry(max_attempts=max_attempts),
        "owner": owner, "labels": read_labels(label or []),
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}

    async def work(app: App) -> JobHandle:
        handle = await _store(app, task, arguments, given)
        return await (handle.wait() if wait else handle.refresh())

    _report(with_app(context, work, creates=True), wait, as_json)


async def _store(app: App, task: str, arguments: Any, options: dict[str, Any]) -> JobHandle:
    """A payload that could be taken for options, or is no object at all, goes the way that keeps the two apart."""
    from duetime.engine.checks import check_name
    from duetime.engine.drafts import JOB_OPTIONS, NewJob
    from duetime.errors import InvalidInput

    if isinstance(arguments, dict) and arguments.keys().isdisjoint({*JOB_OPTIONS, *options, "connection"}):
        return await app.submit(check_name(task, "task"), **arguments, **options)
    if "on_conflict" in options:
        raise InvalidInput("on_conflict", "needs a payload that is a JSON object without names of submit options")
    return (await app.submit_many([NewJob(check_name(task, "task"), arguments, **options)]))[0]


def _report(handle: JobHandle, waited: bool, as_json: bool) -> None:
    from duetime.cli.output import say, show_json
    from duetime.cli.records import job_details
    from duetime.errors import JobFailed
    from duetime.model.codec import encode

    conflict = handle.conflict or (None if handle.created else "skipped")
    if as_json:
        show_json({**job_details(handle.record, []), "created": handle.created, "conflict": conflict})
    else:
        say(str(handle.id))
        if waited and handle.state == "succeeded":
            say(f"succeeded: {encode(handle.result).decode()}")
        if conflict is not None:
            typer.echo(CONFLICTS[conflict], err=True)
    if waited and handle.state != "succeeded":
        raise JobFailed(f"job {handle.id} is {handle.state}: {(handle.error or 'no reason given').strip().splitlines()[-1]}")
