"""From Python's values to the fields of requests. What the service checks is left to it; here only what could not be written down."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from duetime.engine.checks import check_id, check_priority
from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.retry import Retry
from duetime.model.schedule import Missed
from duetime.model.unique import Unique
from duetime.model.when import At, Cron, Every, RRule, When, to_json

JobId = UUID | str
CONTENT: Any = object()  # where None is a value: nothing was given


def given(**fields: Any) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def instant(moment: datetime | None, field: str) -> str | None:
    if moment is None:
        return None
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise InvalidInput(field, f"{moment!r} is no aware datetime: give it a time zone, like datetime(..., tzinfo=UTC)")
    return moment.isoformat()


def lapse(value: duration.Duration | None, field: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return duration.show(duration.parse(value, field))


def label_of(label: tuple[str, str] | None) -> str | None:
    if label is None:
        return None
    if isinstance(label, str) or len(label) != 2:
        raise InvalidInput("label", f'{label!r} is no pair: write label=("team", "billing")')
    return ":".join(label)


def job_id_of(value: JobId) -> UUID:
    if not isinstance(value, UUID | str) and isinstance(getattr(value, "id", None), UUID):
        raise InvalidInput("job_id", f"is a {type(value).__name__}, and not the id of a job: give its .id")
    return check_id(value)


def target_of(value: Any) -> dict[str, Any]:
    """A task's name, a task, or a target as the API writes it, whose type may be left out where there is a URL."""
    if isinstance(value, Mapping):
        return {"type": "http", **value} if "url" in value else dict(value)
    name = value if isinstance(value, str) else getattr(value, "name", None)
    if not isinstance(name, str):
        raise InvalidInput("target", f'{value!r} is no target: give a task\'s name, or {{"url": "https://..."}}')
    return {"type": "task", "name": name}


def retry_of(value: Retry | None) -> dict[str, Any] | None:
    if value is None:
        return None
    written = value.to_json()
    unknown = sorted(set(written) - {"max_attempts", "first_delay", "multiplier", "max_delay", "jitter"})
    if unknown:
        raise InvalidInput(f"retry.{unknown[0]}", "cannot be sent to a service: leave it out, or leave it to the task")
    return written


def job_body(
    *, target: dict[str, Any], payload: Any, retry: Retry | None, at: datetime | None, delay: Any, timeout: Any,
    labels: Mapping[str, str] | None, unique: Unique | bool | None = None, **plain: Any,
) -> dict[str, Any]:  # fmt: skip
    if unique is not None:
        raise InvalidInput("unique", "cannot be sent to a service: give unique_key, or leave it to the task")
    body = given(
        target=target, at=instant(at, "at"), delay=lapse(delay, "delay"), timeout=lapse(timeout, "timeout"), retry=retry_of(retry),
        labels=None if labels is None else dict(labels), **plain,
    )  # fmt: skip
    if "priority" in body:
        check_priority(body["priority"])
    return body if payload is CONTENT else {**body, "payload": payload}


def when_of(when: When) -> dict[str, Any]:
    if not isinstance(when, Cron | Every | At | RRule):
        raise InvalidInput("when", f'{when!r} is none of Cron, Every, At, RRule: write dt.Cron("0 9 * * *", tz="Europe/Berlin")')
    return to_json(when)


def missed_of(missed: Missed | None) -> dict[str, Any] | None:
    return None if missed is None else given(**missed.to_json())
