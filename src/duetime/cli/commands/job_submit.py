"""`duetime job submit`: store one job, and wait for it if asked to."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any
from uuid import UUID

import typer

from duetime.cli.backend import Backend, with_backend
from duetime.cli.command import FlagGroup, command, standalone
from duetime.cli.completion import complete_conflict
from duetime.cli.format import hint, last_line, say, show_json
from duetime.cli.inputs import (
    AtFlag,
    DelayFlag,
    ExpiresFlag,
    JitterFlag,
    JsonFlag,
    LabelsFlag,
    MaxAttemptsFlag,
    OwnerFlag,
    PayloadFlag,
    PriorityFlag,
    QueueFlag,
    RetryDelayFlag,
    TargetFlags,
    TimeoutFlag,
    read_labels,
    read_moment,
    read_payload,
    read_retry,
)
from duetime.cli.program import value_option
from duetime.errors import JobFailed, WaitTimeout
from duetime.model.codec import encode
from duetime.model.views import JobView, Submitted, to_json

commands = standalone()

QUIET_WAIT = "5s"  # after this time the command says what the job waits for
CONFLICTS = {
    "skipped": "the unique key is taken: this is the job that holds it",
    "replaced": "the pending job with this unique key was cancelled and replaced by this one",
    "rescheduled": "the unique key is taken: the pending job that holds it was rescheduled",
}


def _options(
    payload: PayloadFlag = None,
    at: AtFlag = None,
    delay: DelayFlag = None,
    priority: PriorityFlag = None,
    queue: QueueFlag = None,
    unique_key: Annotated[
        str | None, value_option("--unique-key", "TEXT", "Only one unfinished job can have this key.")
    ] = None,
    on_conflict: Annotated[
        str | None,
        value_option(
            "--on-conflict",
            "POLICY",
            "If the key is taken: skip, replace or reschedule.",
            autocompletion=complete_conflict,
        ),
    ] = None,
    timeout: TimeoutFlag = None,
    max_attempts: MaxAttemptsFlag = None,
    retry_delay: RetryDelayFlag = None,
    expires: ExpiresFlag = None,
    jitter: JitterFlag = None,
    owner: OwnerFlag = None,
    label: LabelsFlag = None,
) -> dict[str, Any]:
    return {
        "payload": read_payload(payload), "at": read_moment(at, delay), "delay": delay, "priority": priority,
        "queue": queue, "unique_key": unique_key, "on_conflict": on_conflict, "timeout": timeout,
        "retry": read_retry(max_attempts, retry_delay), "expires": expires, "jitter": jitter, "owner": owner,
        "labels": read_labels(label or []),
    }  # fmt: skip


@command(
    commands,
    "submit",
    'duetime job submit invoice.send --payload \'{"customer": "c1"}\'',
    "duetime job submit https://agent.example.org/run --delay 15m --label team=finance",
    "duetime job submit --command 'backup --all' --cwd /srv/shop --timeout 10m --wait",
    "duetime job submit --destination orders --payload '{\"order\": 7}' --delay 1h",
    "duetime job submit cleanup --at 2030-01-01T03:00:00+01:00 --unique-key cleanup-2030",
    "duetime job submit report.build --delay 1h --unique-key report --on-conflict reschedule",
)
def submit(
    context: typer.Context,
    target: TargetFlags,
    options: Annotated[dict[str, Any], FlagGroup(_options)],
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the job to end; fail if it does not succeed.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Store one job. When the command returns, the job is durable. The task's queue, priority, limit and
    uniqueness apply once a worker that knows the task has started."""

    async def work(backend: Backend) -> tuple[Submitted, JobView]:
        stored = await backend.submit(target, **options)
        if not as_json:
            _show_submitted(stored)  # before the wait, so that Ctrl-C leaves the id on the screen
        with _job_goes_on(stored.id):
            if isinstance(target, str) and not as_json:
                _warn_if_unknown(stored, target, [one.name for one in await backend.known_tasks()])
            return stored, await (wait_for_end(backend, stored.id) if wait else backend.get_job(stored.id))

    stored, job = with_backend(context, work, creates=True)
    if as_json:
        show_json({**to_json(job), "created": stored.created, "conflict": stored.conflict})
    if wait and job.state != "succeeded":
        raise JobFailed(f"job {job.id} is {job.state}: {last_line(job.error, 'no reason given')}")
    if wait and not as_json:
        say(f"succeeded: {encode(job.result).decode()}")


async def wait_for_end(backend: Backend, job_id: UUID) -> JobView:
    """The finished job. If that takes a while, say once what it waits for: there may be no worker for its
    task."""
    try:
        return await backend.wait_for(job_id, QUIET_WAIT)
    except WaitTimeout:
        found = await backend.why_job(job_id)
        hint(f"so far: {found.why}" + ("" if found.remedy is None else f" -> {found.remedy}"))
    return await backend.wait_for(job_id)


@contextmanager
def _job_goes_on(job_id: UUID) -> Iterator[None]:
    """Ctrl-C ends the command, not the job."""
    try:
        yield
    except CancelledError:
        hint(f"no longer waiting; the job is stored and goes on: `duetime job show {job_id}`")
        raise


def _show_submitted(stored: Submitted) -> None:
    say(str(stored.id))
    if stored.conflict is not None:
        hint(CONFLICTS[stored.conflict])


def _warn_if_unknown(stored: Submitted, task: str, served: list[str]) -> None:
    """The name may be mistyped; or its worker starts later."""
    if stored.warning is not None:
        hint(stored.warning)
    elif task not in served:
        hint(f"no running worker knows the task {task!r}: the job waits until one does")
