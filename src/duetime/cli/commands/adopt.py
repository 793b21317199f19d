"""`duetime adopt`: let a restored or copied store work, after a decision about the time since."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated, Any, cast, get_args

import typer

from duetime import stores
from duetime.app.adoption import MAX_COUNTED, Adoption, AdoptionPlan, Choice
from duetime.app.store_copy import refuse_unfinished
from duetime.cli.backend import find_store_url, require_file
from duetime.cli.command import command, standalone
from duetime.cli.format import moment_text, plural, say, show, show_table, target_text
from duetime.cli.inputs import JsonFlag
from duetime.cli.program import settings_of, value_option
from duetime.config import Settings
from duetime.errors import InvalidInput
from duetime.model.instant import to_iso
from duetime.model.schedule import MissedPolicy, target
from duetime.store import Store

commands = standalone()

MAX_SHOWN = 20
WARNING = (
    "if the original still works, both will run every schedule and every pending job: adopt only when it is "
    "gone, or when this store must work next to it"
)


@command(
    commands,
    "adopt",
    "duetime adopt --plan",
    "duetime adopt --missed latest --jobs run",
    "duetime adopt --missed skip --jobs cancel",
)
def adopt(
    context: typer.Context,
    missed: Annotated[
        str | None,
        value_option(
            "--missed",
            "skip|latest|all",
            "Fires since the backup: record them as skipped, run the latest of each schedule, or run all.",
        ),
    ] = None,
    jobs: Annotated[
        str | None,
        value_option(
            "--jobs",
            "run|cancel",
            "Jobs that ran at the time of the backup or fell due since, which may have run already: run them "
            "(again), or cancel them.",
        ),
    ] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only show what would happen.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Let nodes work on a store that was restored from a backup or copied. First it shows what was missed,
    what would be late and what may run a second time."""
    _one_of("--missed", missed, get_args(MissedPolicy))
    _one_of("--jobs", jobs, get_args(Choice))
    found, done = asyncio.run(
        _adopt(
            settings_of(context),
            cast(MissedPolicy | None, missed),
            cast(Choice | None, jobs),
            plan,
            lambda made: show(_as_json(made), as_json, lambda _: _show(made)),
        )
    )
    if done and found.reason is not None and not as_json:
        say("adopted: nodes can start")


async def _adopt(
    settings: Settings, missed: MissedPolicy | None, jobs: Choice | None, plan: bool, show_plan: Any
) -> tuple[AdoptionPlan, bool]:
    url = find_store_url(settings)
    require_file(settings)
    async with _opened(url) as store:
        adoption = Adoption(store)
        found = await adoption.plan()
        show_plan(found)
        if plan or found.reason is None:
            return found, not plan
        if found.missed and missed is None:
            raise InvalidInput("--missed", "decide about the missed fires: skip, latest or all")
        if (found.late or found.running) and jobs is None:
            raise InvalidInput("--jobs", "decide about the jobs that may have run: run or cancel")
        await adoption.adopt(missed, jobs)
        return found, True


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Store]:
    """As a store, not as an app: no app can open it yet."""
    store = stores.from_url(url)
    try:
        await store.open()
        await refuse_unfinished(store)
        yield store
    finally:
        await store.close()


def _one_of(flag: str, value: str | None, allowed: tuple[str, ...]) -> None:
    if value is not None and value not in allowed:
        raise InvalidInput(flag, f"{value!r} is not one of {', '.join(allowed)}")


def _as_json(found: AdoptionPlan) -> dict[str, Any]:
    return {
        "reason": found.reason,
        "as_of": to_iso(found.as_of) if found.as_of else None,
        "now": to_iso(found.now),
        "missed": [
            {**asdict(one), "first": to_iso(one.first), "last": to_iso(one.last)} for one in found.missed
        ],
        "late_jobs": found.late,
        "running_jobs": found.running,
        "jobs": [
            {
                "id": str(job.id),
                "tenant": job.tenant,
                "state": str(job.state),
                "target": target(job.target, job.target_spec),
                "due_at": to_iso(job.due_at),
            }
            for job in found.examples
        ],
    }


def _show(found: AdoptionPlan) -> None:
    if found.reason is None:
        say("nothing to do: nodes can start")
        return
    say(found.reason)
    since = moment_text(found.as_of, now=found.now) if found.as_of else "unknown"
    say(f"last sign of life in its rows: {since}. What was accepted after that is not in them.")
    _show_missed(found)
    _show_jobs(found)
    say(f"note: {WARNING}")


def _show_missed(found: AdoptionPlan) -> None:
    rows = [
        (
            one.tenant,
            one.schedule,
            f"{one.fires:,}{' or more' if one.fires == MAX_COUNTED else ''}",
            moment_text(one.first, now=found.now),
            moment_text(one.last, now=found.now),
            str(one.policy),
        )
        for one in found.missed[:MAX_SHOWN]
    ]
    if rows:
        show_table(("TENANT", "SCHEDULE", "MISSED", "FIRST", "LAST", "ITS POLICY"), rows, "")
    _more(len(found.missed), "schedule")
    say(f"{plural(found.fires, 'fire')} missed{': --missed decides' if rows else ''}")


def _show_jobs(found: AdoptionPlan) -> None:
    rows = [
        (
            str(job.id),
            job.tenant,
            str(job.state),
            target_text(target(job.target, job.target_spec)),
            moment_text(job.due_at, now=found.now),
        )
        for job in found.examples[:MAX_SHOWN]
    ]
    if rows:
        show_table(("JOB", "TENANT", "STATE", "TARGET", "DUE"), rows, "")
    _more(found.late + found.running, "job")
    ran, late = plural(found.running, "job"), plural(found.late, "pending job")
    decides = "; they may have run already: --jobs decides" if rows else ""
    say(f"{ran} ran at the time of the backup, {late} fell due since{decides}")


def _more(count: int, noun: str) -> None:
    if count > MAX_SHOWN:
        say(f"... and {plural(count - MAX_SHOWN, noun)} more: see --json")
