"""Schedules: declare, read, edit by version, stop and start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from duetime.engine.checks import check_priority
from duetime.errors import InvalidInput, ScheduleExists, ScheduleNotFound
from duetime.model.duration import Duration
from duetime.model.retry import Retry
from duetime.model.schedule import Missed
from duetime.model.when import When
from duetime.remote.calls.fields import CONTENT, given, instant, label_of, lapse, missed_of, retry_of, target_of, when_of
from duetime.remote.calls.paging import Page, listed
from duetime.remote.reading import read
from duetime.remote.results import Job, Schedule, Why
from duetime.remote.talk import Talk, ask, part

# What a schedule has that says nothing about it: sent when one is replaced, so that nothing of the old one stays.
UNSAID: dict[str, Any] = {
    "payload": {}, "queue": "default", "priority": 5, "timeout": None, "retry": None, "delivery": "at_least_once", "owner": None,
    "labels": {}, "overlap": "allow", "missed": None, "jitter": "0s", "start_at": None, "end_at": None, "max_runs": None,
}  # fmt: skip


def schedule(
    name: str, target: str | Mapping[str, Any], when: When, *, replace: bool = False, payload: Any = CONTENT, overlap: str | None = None,
    missed: Missed | None = None, jitter: Duration | None = None, start_at: datetime | None = None, end_at: datetime | None = None,
    max_runs: int | None = None, queue: str | None = None, priority: int | None = None, timeout: Duration | None = None,
    retry: Retry | None = None, delivery: str | None = None, owner: str | None = None, labels: Mapping[str, str] | None = None,
) -> Talk[Schedule]:  # fmt: skip
    """Declare a recurring job. Declaring the same again changes nothing; a different one under the same name needs replace=True."""
    body = given(
        name=name, target=target_of(target), when=when_of(when), overlap=overlap, missed=missed_of(missed), jitter=lapse(jitter, "jitter"),
        start_at=instant(start_at, "start_at"), end_at=instant(end_at, "end_at"), max_runs=max_runs, queue=queue,
        priority=None if priority is None else check_priority(priority),
        timeout=lapse(timeout, "timeout"), retry=retry_of(retry), delivery=delivery, owner=owner,
        labels=None if labels is None else dict(labels),
    )  # fmt: skip
    if payload is not CONTENT:
        body["payload"] = payload
    try:
        return read(Schedule, (yield ask("POST", "/schedules", body)))
    except ScheduleExists:
        if not replace:
            raise
    changed = {**UNSAID, **{field: value for field, value in body.items() if field != "name"}}
    return read(Schedule, (yield ask("PATCH", (yield from place(name)), changed)))


def edit_schedule(reference: str, changes: Mapping[str, Any], *, version: int | None = None) -> Talk[Schedule]:
    """Change these fields, as the API writes them; None takes away what may be absent. With `version`, only if it is still that one:
    VersionConflict otherwise."""
    path = yield from place(reference)
    return read(Schedule, (yield ask("PATCH", path, edited(changes), headers=_if_match(version), again=version is None)))


def get_schedule(reference: str) -> Talk[Schedule]:
    """By name or id."""
    return read(Schedule, (yield ask("GET", (yield from place(reference)))))


def schedules(
    *, text: str | None = None, paused: bool | None = None, owner: str | None = None, label: tuple[str, str] | None = None,
    target: str | None = None, queue: str | None = None, limit: int = 100, after: str | None = None,
) -> Talk[list[Schedule]]:  # fmt: skip
    """By name; `after` is the last name already seen."""
    filters = schedule_filters(text=text, paused=paused, owner=owner, label=label, target=target, queue=queue)
    later: Callable[[Schedule], bool] | None = None if after is None else lambda one: one.name > after
    return (yield from listed(Page[Schedule], "/schedules", limit, filters, later))


def pause(reference: str, note: str | None = None) -> Talk[Schedule]:
    """No more fires until resumed; those planned and not started are withdrawn."""
    return read(Schedule, (yield ask("POST", f"{(yield from place(reference))}/pause", given(note=note))))


def resume(reference: str) -> Talk[Schedule]:
    """Fires from now on; what fell into the pause stays out."""
    return read(Schedule, (yield ask("POST", f"{(yield from place(reference))}/resume")))


def trigger(reference: str) -> Talk[Job]:
    """One job of this schedule now, beside its own fires."""
    return read(Job, (yield ask("POST", f"{(yield from place(reference))}/trigger")))


def remove(reference: str, *, version: int | None = None) -> Talk[None]:
    """No more fires; a running job finishes, history stays."""
    yield ask("DELETE", (yield from place(reference)), headers=_if_match(version), done=(ScheduleNotFound.code,))


def why_schedule(reference: str) -> Talk[Why]:
    """One sentence that explains its present state."""
    return read(Why, (yield ask("GET", f"{(yield from place(reference))}/why")))


def place(reference: str) -> Talk[str]:
    """Its path. On the way to the service %2F may become a slash, and dots vanish: a schedule with such a name is addressed by its id."""
    if not isinstance(reference, str) or not reference:
        raise InvalidInput("name", f"{reference!r} is no name or id of a schedule")
    if "/" not in reference and reference not in (".", ".."):
        return f"/schedules/{part(reference)}"
    found = yield from listed(Page[Schedule], "/schedules", 1, {"text": reference}, lambda one: one.name == reference)
    if not found:
        raise ScheduleNotFound(f"there is no schedule {reference!r}: list the schedules to see those there are")
    return f"/schedules/{found[0].id}"


def edited(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of an edit: values of the library's own types become what the API writes."""
    if not changes:
        raise InvalidInput("changes", "says nothing new: give at least one field to change")
    writers: dict[str, Callable[[Any], Any]] = {"when": _when, "target": target_of, "retry": _retry, "missed": _missed}
    return {name: _plain(writers[name](value) if name in writers and value is not None else value) for name, value in changes.items()}


def schedule_filters(*, label: tuple[str, str] | None = None, **plain: Any) -> dict[str, Any]:
    return given(label=label_of(label), **plain)


def _if_match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}


def _when(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else when_of(value)


def _retry(value: Any) -> Any:
    return retry_of(value) if isinstance(value, Retry) else value


def _missed(value: Any) -> Any:
    return missed_of(value) if isinstance(value, Missed) else value


def _plain(value: Any) -> Any:
    return instant(value, "changes") if isinstance(value, datetime) else value
