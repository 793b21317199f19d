"""Arguments of calls as fields of requests. The service validates them; only values that JSON cannot hold are
refused here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from duetime.engine.submit.validate import check_id, check_priority, encode_labels
from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.codec import encode_payload
from duetime.model.retry import Retry
from duetime.model.schedule import Missed, MissedPolicy
from duetime.model.search import format_pair
from duetime.model.unique import Unique
from duetime.model.views import Page
from duetime.model.when import At, Cron, Every, RRule, When, to_json
from duetime.remote.request import Call, read, request

JobId = UUID | str
NOT_GIVEN: Any = object()  # for arguments where None is a value


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def instant(moment: datetime | None, field: str) -> str | None:
    if moment is None:
        return None
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise InvalidInput(
            field, f"{moment!r} is not an aware datetime: add a time zone, like datetime(..., tzinfo=UTC)"
        )
    return moment.isoformat()


def labels_of(labels: Mapping[str, str] | None) -> dict[str, str] | None:
    if labels is None:
        return None
    encode_labels(labels)  # refuses what the service would refuse
    return dict(labels)


def duration_text(value: duration.Duration | None, field: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return duration.show(duration.parse(value, field))


def label_text(label: tuple[str, str] | None) -> str | None:
    if label is None:
        return None
    if isinstance(label, str) or len(label) != 2:
        raise InvalidInput("label", f'{label!r} is not a pair: write label=("team", "billing")')
    return format_pair(*label)


def job_id_of(value: JobId) -> UUID:
    if not isinstance(value, UUID | str) and isinstance(getattr(value, "id", None), UUID):
        raise InvalidInput("job_id", f"is a {type(value).__name__}, not the id of a job: use its .id")
    return check_id(value)


def target_of(value: Any) -> dict[str, Any]:
    """The name of a task, a task, or a target of the API, whose type may be left out if it has a URL."""
    if isinstance(value, Mapping):
        return {"type": "http", **value} if "url" in value else dict(value)
    name = value if isinstance(value, str) else getattr(value, "name", None)
    if not isinstance(name, str):
        raise InvalidInput(
            "target", f'{value!r} is not a target: use the name of a task, or {{"url": "https://..."}}'
        )
    return {"type": "task", "name": name}


def retry_of(value: Retry | None) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Retry):
        raise InvalidInput("retry", f"{value!r} is not a Retry: write dt.Retry(max_attempts=5)")
    return value.to_json()


def job_body(
    *,
    target: dict[str, Any],
    payload: Any,
    retry: Retry | None,
    at: datetime | None,
    delay: Any,
    timeout: Any,
    expires: Any,
    jitter: Any,
    labels: Mapping[str, str] | None,
    unique: Unique | bool | None = None,
    **plain: Any,
) -> dict[str, Any]:
    if unique is not None:
        raise InvalidInput("unique", "cannot be sent to a service: use unique_key, or set it on the task")
    body = given(
        target=target,
        at=instant(at, "at"),
        delay=duration_text(delay, "delay"),
        timeout=duration_text(timeout, "timeout"),
        expires=instant(expires, "expires")
        if isinstance(expires, datetime)
        else duration_text(expires, "expires"),
        jitter=duration_text(jitter, "jitter"),
        retry=retry_of(retry),
        labels=labels_of(labels),
        **plain,
    )
    if "priority" in body:
        check_priority(body["priority"])
    return body if payload is NOT_GIVEN else {**body, "payload": payload_of(payload)}


def payload_of(value: Any) -> Any:
    """The payload. What would arrive changed is refused: a client does not know the types of the task."""
    encode_payload(value)
    return value


def when_of(when: When) -> dict[str, Any]:
    if not isinstance(when, Cron | Every | At | RRule):
        raise InvalidInput(
            "when",
            f'{when!r} is not a Cron, Every, At or RRule: write dt.Cron("0 9 * * *", tz="Europe/Berlin")',
        )
    return to_json(when)


def missed_of(missed: Missed | MissedPolicy | None) -> dict[str, Any] | None:
    if missed is None:
        return None
    return given(**(missed if isinstance(missed, Missed) else Missed(missed)).to_json())


# Listings, read page by page.


Item = TypeVar("Item")
MAX_PAGE = 1_000


def listed(
    kind: type[Page[Item]],
    path: str,
    limit: int,
    filters: Mapping[str, Any] | None = None,
    wanted: Callable[[Item], bool] | None = None,
) -> Call[list[Item]]:
    """The first `limit` items of a listing that pass the filter `wanted`."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidInput("limit", f"{limit!r} must be a whole number of at least 1")
    found: list[Item] = []
    cursor = None
    while True:
        size = MAX_PAGE if wanted is not None else min(limit - len(found), MAX_PAGE)
        page = read(
            kind, (yield request("GET", path, query={**(filters or {}), "limit": size, "cursor": cursor}))
        )
        found += page.items if wanted is None else filter(wanted, page.items)
        cursor = page.next_cursor
        if cursor is None or len(found) >= limit:
            return found[:limit]


def everything(kind: type[Page[Item]], path: str) -> Call[list[Item]]:
    """A listing of one page."""
    return read(kind, (yield request("GET", path))).items
