"""Actions on many jobs or schedules at once, by filter or by ids, until all of them are done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from duetime.remote.calls.fields import given, instant
from duetime.remote.calls.schedules import schedule_filters
from duetime.remote.reading import read
from duetime.remote.results import Bulk
from duetime.remote.talk import Talk, ask

Progress = Callable[[Bulk], None]  # told of what was done up to now
MOST_FAILURES = 1_000  # that are kept


def bulk_jobs(
    action: str, *, ids: Sequence[UUID | str] | None = None, state: str | None = None, queue: str | None = None, owner: str | None = None,
    schedule: str | None = None, label: tuple[str, str] | None = None, target: str | None = None, error: str | None = None,
    due_after: datetime | None = None, due_before: datetime | None = None, dry_run: bool = False, note: str | None = None,
    progress: Progress | None = None,
) -> Talk[Bulk]:  # fmt: skip
    """cancel, retry, run or discard the jobs that match, or those with these ids. With `dry_run` they are only counted."""
    filters = schedule_filters(
        state=state, queue=queue, owner=owner, schedule=schedule, label=label, target=target, error=error,
        due_after=instant(due_after, "due_after"), due_before=instant(due_before, "due_before"),
    )  # fmt: skip
    return (yield from _carry_on("/jobs/bulk", action, ids, filters, dry_run, note, progress))


def bulk_schedules(
    action: str, *, ids: Sequence[UUID | str] | None = None, text: str | None = None, paused: bool | None = None, owner: str | None = None,
    label: tuple[str, str] | None = None, target: str | None = None, queue: str | None = None, dry_run: bool = False,
    note: str | None = None, progress: Progress | None = None,
) -> Talk[Bulk]:  # fmt: skip
    """pause, resume, trigger or remove the schedules that match, or those with these ids. With `dry_run` they are only counted."""
    filters = schedule_filters(text=text, paused=paused, owner=owner, label=label, target=target, queue=queue)
    return (yield from _carry_on("/schedules/bulk", action, ids, filters, dry_run, note, progress))


def _carry_on(
    path: str, action: str, ids: Sequence[UUID | str] | None, filters: dict[str, Any], dry_run: bool, note: str | None,
    progress: Progress | None,
) -> Talk[Bulk]:  # fmt: skip
    """The service does a bounded part with each request and says where to go on."""
    chosen = {"filter": filters} if ids is None else {"ids": [str(one) for one in ids]}
    total, cursor = Bulk(matched=0, done=0), None
    while True:
        body = {"action": action, **chosen, "dry_run": dry_run, **given(note=note, cursor=cursor)}
        total = together(total, read(Bulk, (yield ask("POST", path, body))))
        if progress is not None:
            progress(total)
        cursor = total.next_cursor
        if cursor is None:
            return total


def together(before: Bulk, after: Bulk) -> Bulk:
    return Bulk(
        matched=before.matched + after.matched,
        done=before.done + after.done,
        failed=(before.failed + after.failed)[:MOST_FAILURES],
        at_least=before.at_least or after.at_least,
        next_cursor=after.next_cursor,
    )
