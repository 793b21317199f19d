"""Schedules: declare, read, edit, pause, resume, trigger, remove."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from duetime.engine.submit.schedules import LEFT_OUT
from duetime.engine.submit.validate import check_priority
from duetime.errors import InvalidInput, ScheduleExists, ScheduleNotFound
from duetime.model.duration import Duration
from duetime.model.retry import Retry
from duetime.model.schedule import Missed, MissedPolicy
from duetime.model.views import JobView, Page, ScheduleView, WhyView
from duetime.model.when import When
from duetime.remote.calls.fields import (
    NOT_GIVEN,
    duration_text,
    given,
    instant,
    label_text,
    labels_of,
    listed,
    missed_of,
    payload_of,
    retry_of,
    target_of,
    when_of,
)
from duetime.remote.request import Call, path_part, read, request


def schedule(
    name: str,
    target: str | Mapping[str, Any],
    when: When,
    *,
    replace: bool = False,
    paused: bool = False,
    payload: Any = NOT_GIVEN,
    overlap: str | None = None,
    missed: Missed | MissedPolicy | None = None,
    jitter: Duration | None = None,
    start_at: datetime | None = None,
    end_at: datetime | None = None,
    max_runs: int | None = None,
    queue: str | None = None,
    priority: int | None = None,
    timeout: Duration | None = None,
    retry: Retry | None = None,
    delivery: str | None = None,
    expires: Duration | None = None,
    owner: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Call[ScheduleView]:
    """Create a schedule. Repeating the call changes nothing; a different schedule of the same name needs
    replace=True."""
    body = new_schedule(
        name, target, when, paused=paused, payload=payload, overlap=overlap, missed=missed, jitter=jitter,
        start_at=start_at, end_at=end_at, max_runs=max_runs, queue=queue, priority=priority, timeout=timeout,
        retry=retry, delivery=delivery, expires=expires, owner=owner, labels=labels,
    )  # fmt: skip
    try:
        return read(ScheduleView, (yield request("POST", "/schedules", body)))
    except ScheduleExists:
        if not replace:
            raise ScheduleExists(
                f"another schedule {name!r} already exists",
                "choose another name, or pass replace=True to change it",
            ) from None
    changed = {**LEFT_OUT, **{field: value for field, value in body.items() if field != "name"}}
    return read(ScheduleView, (yield request("PATCH", (yield from schedule_path(name)), changed)))


def new_schedule(
    name: str,
    target: str | Mapping[str, Any],
    when: When,
    *,
    paused: bool = False,
    payload: Any = NOT_GIVEN,
    missed: Missed | MissedPolicy | None = None,
    jitter: Duration | None = None,
    start_at: datetime | None = None,
    end_at: datetime | None = None,
    priority: int | None = None,
    timeout: Duration | None = None,
    retry: Retry | None = None,
    expires: Duration | None = None,
    labels: Mapping[str, str] | None = None,
    **plain: Any,
) -> dict[str, Any]:
    """A new schedule as the API has it."""
    body = given(
        name=name,
        target=target_of(target),
        when=when_of(when),
        missed=missed_of(missed),
        jitter=duration_text(jitter, "jitter"),
        start_at=instant(start_at, "start_at"),
        end_at=instant(end_at, "end_at"),
        priority=None if priority is None else check_priority(priority),
        timeout=duration_text(timeout, "timeout"),
        retry=retry_of(retry),
        expires=duration_text(expires, "expires"),
        labels=labels_of(labels),
        paused=paused or None,
        **plain,
    )
    return body if payload is NOT_GIVEN else {**body, "payload": payload_of(payload)}


def edit_schedule(
    reference: str, changes: Mapping[str, Any], *, version: int | None = None
) -> Call[ScheduleView]:
    """Change these fields; None removes an optional value. With `version`, raises VersionConflict if it is
    not the present version."""
    path = yield from schedule_path(reference)
    return read(
        ScheduleView,
        (
            yield request(
                "PATCH", path, edited(changes), headers=_if_match(version), repeatable=version is None
            )
        ),
    )


def get_schedule(reference: str) -> Call[ScheduleView]:
    """A schedule by name or id."""
    return read(ScheduleView, (yield request("GET", (yield from schedule_path(reference)))))


def schedules(
    *,
    text: str | None = None,
    paused: bool | None = None,
    owner: str | None = None,
    label: tuple[str, str] | None = None,
    target: str | None = None,
    queue: str | None = None,
    limit: int = 100,
    after: str | None = None,
) -> Call[list[ScheduleView]]:
    """Schedules in order of their names; `after` is the last name already seen."""
    filters = schedule_filters(text=text, paused=paused, owner=owner, label=label, target=target, queue=queue)
    later: Callable[[ScheduleView], bool] | None = None if after is None else lambda one: one.name > after
    return (yield from listed(Page[ScheduleView], "/schedules", limit, filters, later))


def pause(reference: str, note: str | None = None) -> Call[ScheduleView]:
    """Pause a schedule. Planned jobs that have not started are withdrawn."""
    return read(
        ScheduleView,
        (yield request("POST", f"{(yield from schedule_path(reference))}/pause", given(note=note))),
    )


def resume(reference: str) -> Call[ScheduleView]:
    """Resume a schedule. Fires during the pause are not made up for."""
    return read(ScheduleView, (yield request("POST", f"{(yield from schedule_path(reference))}/resume")))


def trigger(reference: str) -> Call[JobView]:
    """Submit one job of this schedule now, in addition to its fires."""
    return read(JobView, (yield request("POST", f"{(yield from schedule_path(reference))}/trigger")))


def remove(reference: str, *, version: int | None = None) -> Call[None]:
    """Remove a schedule. Running jobs finish, and history stays."""
    yield request(
        "DELETE",
        (yield from schedule_path(reference)),
        headers=_if_match(version),
        done=(ScheduleNotFound.code,),
    )


def why_schedule(reference: str) -> Call[WhyView]:
    """One sentence that explains when a schedule fires next, or why it does not."""
    return read(WhyView, (yield request("GET", f"{(yield from schedule_path(reference))}/why")))


def schedule_path(reference: str) -> Call[str]:
    """The path of a schedule. Proxies may decode %2F or remove dots, so a schedule with such a name is
    addressed by its id."""
    if not isinstance(reference, str) or not reference:
        raise InvalidInput("name", f"{reference!r} is not the name or id of a schedule")
    if "/" not in reference and reference not in (".", ".."):
        return f"/schedules/{path_part(reference)}"
    found = yield from listed(
        Page[ScheduleView], "/schedules", 1, {"text": reference}, lambda one: one.name == reference
    )
    if not found:
        raise ScheduleNotFound(f"schedule {reference!r} not found: list the schedules to see their names")
    return f"/schedules/{found[0].id}"


def edited(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an edit as the API has them."""
    if not changes:
        raise InvalidInput("changes", "is empty: change at least one field")
    writers: dict[str, Callable[[Any], Any]] = {
        "when": _when,
        "payload": payload_of,
        "target": target_of,
        "retry": _retry,
        "missed": _missed,
    }
    return {
        name: _plain(name, writers[name](value) if name in writers and value is not None else value)
        for name, value in changes.items()
    }


def schedule_filters(*, label: tuple[str, str] | None = None, **plain: Any) -> dict[str, Any]:
    return given(label=label_text(label), **plain)


def _if_match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}


def _when(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else when_of(value)


def _retry(value: Any) -> Any:
    return retry_of(value) if isinstance(value, Retry) else value


def _missed(value: Any) -> Any:
    return missed_of(value) if isinstance(value, Missed) else value


def _plain(name: str, value: Any) -> Any:
    return instant(value, name) if isinstance(value, datetime) else value
