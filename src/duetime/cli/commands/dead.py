"""`duetime dead`: dead letters, the jobs that failed too often."""

from __future__ import annotations

from typing import Annotated

import typer

from duetime.cli.backend import with_backend
from duetime.cli.command import command, group
from duetime.cli.commands.job import EXAMPLE, JobIds, apply_to_jobs, read_new_payload
from duetime.cli.format import last_line, moment_text, say, show, show_list, show_table, target_text
from duetime.cli.inputs import ErrorFlag, ErrorGroupFlag, JsonFlag, LimitFlag, OfTargetFlag, PayloadFlag
from duetime.cli.selection import Selection, selection_flags
from duetime.model.views import DeadGroup, DeadGroups, JobSummary

commands = group("List dead letters; retry or discard them.")

DeadSelection = Annotated[
    Selection, selection_flags(target=OfTargetFlag, error=ErrorFlag, error_group=ErrorGroupFlag)
]


@command(commands, "list", "duetime dead list --json", "duetime dead list --target invoice.send")
def list_dead(
    context: typer.Context,
    target: OfTargetFlag = None,
    error: ErrorFlag = None,
    error_group: ErrorGroupFlag = None,
    limit: LimitFlag = 50,
    as_json: JsonFlag = False,
) -> None:
    """Dead letters that were not yet retried or discarded."""
    found = with_backend(
        context,
        lambda backend: backend.dead_letters(
            target=target, error=error, error_group=error_group, limit=limit
        ),
    )
    show_list(
        found, as_json, ("ID", "TARGET", "SCHEDULE", "DIED", "TRIES", "REASON"), _row, "no dead letters"
    )


def _row(one: JobSummary) -> tuple[str, ...]:
    died, reason = moment_text(one.finished_at), last_line(one.error)
    return str(one.id), target_text(one.target), one.schedule or "-", died, str(one.attempt), reason


@command(commands, "groups", "duetime dead groups", "duetime dead groups --json")
def groups(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Dead letters by cause, the most frequent first."""
    show(with_backend(context, lambda backend: backend.dead_groups()), as_json, _show_groups)


def _show_groups(found: DeadGroups) -> None:
    show_table(
        ("COUNT", "TARGET", "NEWEST", "OLDEST", "ERROR"),
        [_group_row(one) for one in found.items],
        "no dead letters",
    )
    if not found.complete:
        say("note: there are older dead letters that were not counted")


def _group_row(one: DeadGroup) -> tuple[str, ...]:
    return f"{one.count:,}", one.target, moment_text(one.newest), moment_text(one.oldest), one.error or "-"


@command(
    commands,
    "retry",
    f"duetime dead retry {EXAMPLE}",
    f"duetime dead retry {EXAMPLE} --payload @corrected.json",
    "duetime dead retry --all --target invoice.send --yes",
)
def retry(
    context: typer.Context, selection: DeadSelection, ids: JobIds = None, payload: PayloadFlag = None
) -> None:
    """Run dead letters again, each as a new job; by id or with --all. --payload replaces the arguments of
    one."""
    new_payload = read_new_payload(payload, ids, selection)
    apply_to_jobs(
        context, selection, ids, "retry", "retried",
        lambda backend, job_id: backend.retry_job(job_id, new_payload),
        lambda job_id, job: f"{job_id} runs again as {job.id}",
    )  # fmt: skip


@command(
    commands,
    "discard",
    f"duetime dead discard {EXAMPLE}",
    "duetime dead discard --all --error 'ValueError: no such customer'",
)
def discard(context: typer.Context, selection: DeadSelection, ids: JobIds = None) -> None:
    """Remove dead letters from the list, by id or with --all; the jobs stay in the history."""
    apply_to_jobs(
        context, selection, ids, "discard", "discarded",
        lambda backend, job_id: backend.discard_job(job_id),
        lambda job_id, _: f"{job_id} discarded",
    )  # fmt: skip
