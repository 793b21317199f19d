"""Rows of the store as the values a service answers with: written as the API writes them and read as its clients read them, so that a
command shows the same wherever it looks."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, TypeVar

from duetime.api import shown
from duetime.app.bulk import Bulk as BulkDone
from duetime.app.operations import Submitted as Stored
from duetime.app.planning import SchedulePlan
from duetime.app.versions import VersionView
from duetime.app.why import Reason
from duetime.model import job as rows
from duetime.model.attempt import Attempt
from duetime.model.codec import decode, encode, reader
from duetime.model.instant import Micros
from duetime.model.preview import Preview as PreviewRow
from duetime.model.schedule import Schedule as ScheduleRow
from duetime.remote.results import Bulk, Job, JobSummary, Plan, Preview, Schedule, Submitted, Version, Why

Kind = TypeVar("Kind")


def of(kind: type[Kind], value: Any) -> Kind:
    made: Kind = reader(kind)(encode(value))
    return made


def plain(value: Any) -> Any:
    """As JSON has it."""
    return decode(encode(value))


def job_of(row: rows.Job, attempts: list[Attempt]) -> Job:
    return of(Job, shown.job(row, attempts))


def summary_of(row: rows.Job) -> JobSummary:
    return of(JobSummary, shown.job_summary(row))


def submitted_of(stored: Stored, known: rows.Job | None) -> Submitted:
    return of(Submitted, shown.submitted(str(stored.id), stored.draft, known, stored.conflict))


def schedule_of(row: ScheduleRow, now: Micros) -> Schedule:
    return of(Schedule, shown.schedule(row, now))


def preview_of(preview: PreviewRow) -> Preview:
    return of(Preview, asdict(preview))


def plan_of(plan: SchedulePlan, count: int | None) -> Plan:
    """With no more than `count` fires of each kind."""
    fires = plan.fires
    return of(
        Plan,
        {
            "version": plan.version,
            "diff": [change._asdict() for change in plan.diff],
            "words": plan.words._asdict(),
            "fires": {
                "kept": fires.kept,
                "added": fires.added[:count],
                "withdrawn": fires.withdrawn[:count],
                "moved": [{"from": old, "to": new} for old, new in fires.moved[:count]],
            },
            "counts": {"kept": fires.kept, "added": len(fires.added), "withdrawn": len(fires.withdrawn), "moved": len(fires.moved)},
            "jobs_withdrawn": plan.jobs_withdrawn,
            "warnings": plan.warnings,
            "complete": plan.complete,
        },
    )


def version_of(view: VersionView) -> Version:
    return of(Version, {**asdict(view), "diff": [change._asdict() for change in view.diff]})


def why_of(reason: Reason) -> Why:
    return of(Why, asdict(reason))


def bulk_of(done: BulkDone[Any]) -> Bulk:
    failed = [failure._asdict() for failure in done.failed]
    more = None if done.next is None else str(done.next)
    return of(Bulk, {"matched": done.matched, "done": done.done, "failed": failed, "at_least": done.at_least, "next_cursor": more})
