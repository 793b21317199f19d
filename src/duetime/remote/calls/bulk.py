"""One action on many jobs or schedules, by filter or by ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from duetime.model.views import BulkResult
from duetime.remote.calls.fields import given, instant, label_text
from duetime.remote.calls.schedules import schedule_filters
from duetime.remote.request import Call, read, request

Progress = Callable[[BulkResult], None]  # called with the result so far


def bulk_jobs(
    action: str,
    *,
    ids: Sequence[UUID | str] | None = None,
    state: str | None = None,
    queue: str | None = None,
    owner: str | None = None,
    schedule: str | None = None,
    label: tuple[str, str] | None = None,
    target: str | None = None,
    error: str | None = None,
    error_group: str | None = None,
    payload: tuple[str, str] | None = None,
    due_after: datetime | None = None,
    due_before: datetime | None = None,
    dry_run: bool = False,
    note: str | None = None,
    progress: Progress | None = None,
) -> Call[BulkResult]:
    """Cancel, retry, run or discard the jobs that match, or those with these ids. With `dry_run`, only count
    them."""
    filters = schedule_filters(
        state=state,
        queue=queue,
        owner=owner,
        schedule=schedule,
        label=label,
        target=target,
        error=error,
        error_group=error_group,
        payload=label_text(payload),
        due_after=instant(due_after, "due_after"),
        due_before=instant(due_before, "due_before"),
    )
    return (yield from _run_all("/jobs/bulk", action, ids, filters, dry_run, note, progress))


def bulk_schedules(
    action: str,
    *,
    ids: Sequence[UUID | str] | None = None,
    text: str | None = None,
    paused: bool | None = None,
    owner: str | None = None,
    label: tuple[str, str] | None = None,
    target: str | None = None,
    queue: str | None = None,
    dry_run: bool = False,
    note: str | None = None,
    progress: Progress | None = None,
) -> Call[BulkResult]:
    """Pause, resume, trigger or remove the schedules that match, or those with these ids. With `dry_run`,
    only count them."""
    filters = schedule_filters(text=text, paused=paused, owner=owner, label=label, target=target, queue=queue)
    return (yield from _run_all("/schedules/bulk", action, ids, filters, dry_run, note, progress))


def _run_all(
    path: str,
    action: str,
    ids: Sequence[UUID | str] | None,
    filters: dict[str, Any],
    dry_run: bool,
    note: str | None,
    progress: Progress | None,
) -> Call[BulkResult]:
    """The service processes one chunk with each request, and returns the cursor of the next."""
    chosen = {"filter": filters} if ids is None else {"ids": [str(one) for one in ids]}
    total, cursor = BulkResult(), None
    while True:
        body = {"action": action, **chosen, "dry_run": dry_run, **given(note=note, cursor=cursor)}
        total = total.followed_by(read(BulkResult, (yield request("POST", path, body))))
        if progress is not None:
            progress(total)
        cursor = total.next_cursor
        if cursor is None:
            return total
