"""`duetime job submit`: store one job, and wait for it if that is wanted."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.cli.command import command
from duetime.cli.completion import complete_conflict, complete_task
from duetime.cli.flags import AtFlag, DelayFlag, JsonFlag, LabelsFlag, MethodFlag, PayloadFlag, PriorityFlag, QueueFlag, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.cli.access import Access, JobId
    from duetime.remote.results import Job, Submitted

PATIENCE = "5s"
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
        "duetime job submit https://agent.example.org/run --delay 15m --label team=finance",
        "duetime job submit cleanup --at 2030-01-01T03:00:00+01:00 --unique-key cleanup-2030",
        "duetime job submit report.build --delay 1h --unique-key report --on-conflict reschedule",
    )(submit)


def submit(
    context: typer.Context,
    target: Annotated[str, typer.Argument(metavar="TASK|URL", help="A task's name, or a URL to call.", autocompletion=complete_task)],
    payload: PayloadFlag = None,
    method: MethodFlag = None,
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
    label: LabelsFlag = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has finished; fail when it did not succeed.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Store one job. When this returns, it is durable. What the task says of its queue, priority, limit and uniqueness holds for it, as
    soon as a worker that knows the task has been there."""
    from duetime.cli.inputs import read_labels, read_moment, read_payload, read_target
    from duetime.cli.session import with_access
    from duetime.model.retry import Retry

    wanted, arguments = read_target(target, method), read_payload(payload)
    options: dict[str, Any] = {
        "at": read_moment(at, delay), "delay": delay, "priority": priority, "queue": queue, "unique_key": unique_key,
        "on_conflict": on_conflict, "timeout": timeout, "retry": None if max_attempts is None else Retry(max_attempts=max_attempts),
        "owner": owner, "labels": read_labels(label or []),
    }  # fmt: skip

    async def work(access: Access) -> tuple[Submitted, Job]:
        stored = await access.submit(wanted, arguments, **options)
        if not as_json:
            _tell(stored)  # before the wait: whoever breaks it off still knows the job
        with _goes_on(stored.id):
            if isinstance(wanted, str) and not as_json:
                _warn_of_a_stranger(wanted, [one.name for one in await access.known_tasks()])
            return stored, await (_ended(access, stored.id) if wait else access.get_job(stored.id))

    _report(*with_access(context, work, creates=True), wait, as_json)


async def _ended(access: Access, job_id: JobId) -> Job:
    """The job when it is final. What it waits for is said once, when that takes a while: perhaps nobody runs its task."""
    from duetime.cli.escape import visible
    from duetime.errors import WaitTimeout

    try:
        return await access.wait_for(job_id, PATIENCE)
    except WaitTimeout:
        found = await access.why_job(job_id)
        remedy = "" if found.remedy is None else f" -> {found.remedy}"
        typer.echo(visible(f"so far: {found.why}{remedy}"), err=True)
    return await access.wait_for(job_id)


@contextmanager
def _goes_on(job_id: JobId) -> Iterator[None]:
    """Whoever presses Ctrl+C ends the command, and not the job."""
    from asyncio import CancelledError

    try:
        yield
    except CancelledError:
        typer.echo(f"no longer waiting; the job is stored and goes on: `duetime job show {job_id}`", err=True)
        raise


def _tell(stored: Submitted) -> None:
    from duetime.cli.output import say

    say(str(stored.id))
    if stored.conflict is not None:
        typer.echo(CONFLICTS[stored.conflict], err=True)


def _warn_of_a_stranger(task: str, known: list[str]) -> None:
    """A name that was mistyped is seen now, and not when the job is missed. It may also be that its worker starts later."""
    from difflib import get_close_matches

    from duetime.cli.escape import visible

    if task not in known:
        meant = "".join(f"; did you mean {name!r}?" for name in get_close_matches(task, known, 1))
        typer.echo(visible(f"no worker runs a task {task!r} at present: the job waits until one does{meant}"), err=True)


def _report(stored: Submitted, found: Job, waited: bool, as_json: bool) -> None:
    from duetime.cli.conversion import plain
    from duetime.cli.output import say, show_json
    from duetime.errors import JobFailed
    from duetime.model.codec import encode

    if as_json:
        show_json({**plain(found), "created": stored.created, "conflict": stored.conflict})
    elif waited and found.state == "succeeded":
        say(f"succeeded: {encode(found.result).decode()}")
    if waited and found.state != "succeeded":
        raise JobFailed(f"job {found.id} is {found.state}: {(found.error or 'no reason given').strip().splitlines()[-1]}")
