"""Schedules over time: what they will do, what an edit would change, what they were, and fires of the past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from duetime.model.duration import Duration
from duetime.model.when import When
from duetime.remote.calls.fields import given, instant, lapse, when_of
from duetime.remote.calls.paging import Page, listed
from duetime.remote.calls.schedules import edited, place
from duetime.remote.reading import read
from duetime.remote.results import Backfilled, Fire, Plan, Preview, Schedule, Version
from duetime.remote.talk import Talk, ask


def preview_when(
    when: When, *, count: int = 10, after: datetime | None = None, start_at: datetime | None = None, end_at: datetime | None = None
) -> Talk[Preview]:
    """When it would fire, in words and instants."""
    body = given(
        when=when_of(when), count=count, after=instant(after, "after"), start_at=instant(start_at, "start_at"),
        end_at=instant(end_at, "end_at"),
    )  # fmt: skip
    return read(Preview, (yield ask("POST", "/preview", body)))


def preview_schedule(reference: str, *, count: int = 10, after: datetime | None = None) -> Talk[Preview]:
    """The next fires of a schedule, as it stands."""
    query = {"count": count, "after": instant(after, "after")}
    found = read(_Detailed, (yield ask("GET", f"{(yield from place(reference))}/preview", query=query)))
    return Preview(words=found.words, fires=found.details, warnings=found.warnings)


def plan_schedule(reference: str, changes: Mapping[str, Any], *, horizon: Duration | None = None, count: int | None = None) -> Talk[Plan]:
    """What this edit would change: fires added, moved and withdrawn. Nothing is changed."""
    path = yield from place(reference)
    return read(Plan, (yield ask("POST", f"{path}/plan", edited(changes), query={"horizon": lapse(horizon, "horizon"), "count": count})))


def schedule_versions(reference: str, *, limit: int = 20) -> Talk[list[Version]]:
    """What was changed, by whom and when, newest first."""
    return (yield from listed(Page[Version], f"{(yield from place(reference))}/versions", limit))


def restore_schedule(reference: str, version: int, *, expect_version: int | None = None) -> Talk[Schedule]:
    """Make it what it was at that version. With `expect_version`, only if it is still that one now."""
    headers = {} if expect_version is None else {"If-Match": f'"{expect_version}"'}
    path = yield from place(reference)
    return read(Schedule, (yield ask("POST", f"{path}/restore", {"version": version}, headers=headers, again=expect_version is None)))


def backfill(
    reference: str, start: datetime, end: datetime | None = None, *, rate: str | None = None, limit: int | None = None
) -> Talk[Backfilled]:
    """Jobs for the fires of a past range (until now, without an end) that no job stands for, oldest first. Bounded: go on at `next_from`;
    nothing is doubled. They fall due at once, or spread by `rate` ("10/1s")."""
    body = {"from": instant(start, "from"), **given(to=instant(end, "to"), rate=rate, limit=limit)}
    return read(Backfilled, (yield ask("POST", f"{(yield from place(reference))}/backfill", body)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Detailed:
    """As the service answers for a schedule: bare instants, and beside them all there is to say of each."""

    words: str | None = None
    details: list[Fire]
    warnings: list[str] = field(default_factory=list)
