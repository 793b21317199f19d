"""Previews, edit plans, versions and backfills of schedules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from duetime.model.duration import Duration
from duetime.model.views import (
    Backfilled,
    Page,
    PlanView,
    PreviewView,
    SchedulePreview,
    ScheduleView,
    VersionView,
)
from duetime.model.when import When
from duetime.remote.calls.fields import duration_text, given, instant, listed, when_of
from duetime.remote.calls.schedules import edited, new_schedule, schedule_path
from duetime.remote.request import Call, read, request


def preview_when(
    when: When,
    *,
    count: int = 10,
    after: datetime | None = None,
    start_at: datetime | None = None,
    end_at: datetime | None = None,
) -> Call[PreviewView]:
    """The next fires of an expression, in words and instants."""
    body = given(
        when=when_of(when),
        count=count,
        after=instant(after, "after"),
        start_at=instant(start_at, "start_at"),
        end_at=instant(end_at, "end_at"),
    )
    return read(PreviewView, (yield request("POST", "/preview", body)))


def preview_schedule(reference: str, *, count: int = 10, after: datetime | None = None) -> Call[PreviewView]:
    """The next fires of a schedule."""
    query = {"count": count, "after": instant(after, "after")}
    found = read(
        SchedulePreview,
        (yield request("GET", f"{(yield from schedule_path(reference))}/preview", query=query)),
    )
    return found.to_preview()


def plan_new_schedule(
    name: str,
    target: str | Mapping[str, Any],
    when: When,
    *,
    horizon: Duration | None = None,
    count: int | None = None,
    **options: Any,
) -> Call[PlanView]:
    """The fires of a schedule before it is created, with the arguments of `schedule`. Changes nothing."""
    body = new_schedule(name, target, when, **options)
    query = {"horizon": duration_text(horizon, "horizon"), "count": count}
    return read(PlanView, (yield request("POST", "/schedules/plan", body, query=query)))


def plan_schedule(
    reference: str, changes: Mapping[str, Any], *, horizon: Duration | None = None, count: int | None = None
) -> Call[PlanView]:
    """The effect of an edit: fires added, moved and withdrawn. Changes nothing."""
    path = yield from schedule_path(reference)
    return read(
        PlanView,
        (
            yield request(
                "POST",
                f"{path}/plan",
                edited(changes),
                query={"horizon": duration_text(horizon, "horizon"), "count": count},
            )
        ),
    )


def schedule_versions(reference: str, *, limit: int = 20) -> Call[list[VersionView]]:
    """The versions of a schedule with their authors, newest first."""
    return (yield from listed(Page[VersionView], f"{(yield from schedule_path(reference))}/versions", limit))


def restore_schedule(
    reference: str, version: int, *, expect_version: int | None = None
) -> Call[ScheduleView]:
    """Restore a version. With `expect_version`, only if that is the present version."""
    headers = {} if expect_version is None else {"If-Match": f'"{expect_version}"'}
    path = yield from schedule_path(reference)
    return read(
        ScheduleView,
        (
            yield request(
                "POST",
                f"{path}/restore",
                {"version": version},
                headers=headers,
                repeatable=expect_version is None,
            )
        ),
    )


def backfill(
    reference: str,
    start: datetime,
    end: datetime | None = None,
    *,
    rate: str | None = None,
    limit: int | None = None,
) -> Call[Backfilled]:
    """Submit jobs for past fires that have no job, oldest first; without `end` until now. One call is
    bounded: continue at `next_from`. A fire never gets two jobs. The jobs are due immediately, or spread
    by `rate` ("10/1s")."""
    body = {"from": instant(start, "from"), **given(to=instant(end, "to"), rate=rate, limit=limit)}
    return read(
        Backfilled, (yield request("POST", f"{(yield from schedule_path(reference))}/backfill", body))
    )
