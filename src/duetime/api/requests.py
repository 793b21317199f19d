"""From the models of requests to the values the app takes. Values that the schema cannot check are checked
here."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import Any

from duetime.api.auth import RequestContext
from duetime.api.models.jobs import BatchJobIn, RetryIn
from duetime.api.models.schedules import MissedIn, NewScheduleIn, SchedulePatchIn
from duetime.api.problems import ApiProblem
from duetime.api.target_input import read_target
from duetime.app.schedules import MAX_EDITS
from duetime.app.search import search
from duetime.app.services import Services
from duetime.engine.submit.build import NewJob
from duetime.engine.submit.schedules import edited_draft, schedule_draft
from duetime.engine.submit.submission import JobRequest
from duetime.engine.submit.validate import check_name
from duetime.errors import InvalidInput, InvalidPayload, VersionConflict
from duetime.model import instant
from duetime.model.api_key import Scope
from duetime.model.edit_plan import ScheduleEdit
from duetime.model.instant import Micros
from duetime.model.retry import Retry
from duetime.model.schedule import KINDS, Missed, Schedule, ScheduleDraft
from duetime.model.search import parse_pair
from duetime.model.target import HTTP, shown_name
from duetime.model.when import from_json

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)?", re.ASCII)
JOB_FIELDS = (
    "delay",
    "priority",
    "queue",
    "unique_key",
    "on_conflict",
    "timeout",
    "delivery",
    "expires",
    "jitter",
    "owner",
    "labels",
)
SCHEDULE_FIELDS = (
    "overlap",
    "jitter",
    "max_runs",
    "queue",
    "priority",
    "timeout",
    "delivery",
    "expires",
    "owner",
    "labels",
)
INSTANTS = ("start_at", "end_at")
LABEL_FORM, PATH_FORM = "key:value", "path:value"
KEY_LABEL = "duetime.key"  # of a job: the key that submitted it and may cancel it without the scope manage


def new_job(context: RequestContext, body: BatchJobIn) -> JobRequest:
    given = body.model_fields_set
    options: dict[str, Any] = {name: getattr(body, name) for name in JOB_FIELDS if name in given}
    if "at" in given:
        options["at"] = read_instant(body.at, "at")
    if "retry" in given:
        options["retry"] = read_retry(body.retry)
    if (prefix := context.caller.key_prefix) is not None and not context.caller.may(Scope.MANAGE):
        options["labels"] = {**body.labels, KEY_LABEL: prefix}
    name, spec = read_target(context, body.target)
    return JobRequest(
        NewJob(name, body.payload, **options), spec, "payload" in given and body.payload is None
    )


def expected_version(context: RequestContext) -> int | None:
    """The version in If-Match; None if any version will do. A proxy that compresses answers writes W/ before
    the ETag."""
    text = context.auth.headers.get("if-match", "*").strip().removeprefix("W/")
    if text == "*":
        return None
    number = text[1:-1]
    if text != f'"{number}"' or not (number.isascii() and number.isdigit()) or len(number) > 9:
        raise ApiProblem(
            422, "input_invalid", 'If-Match: send the ETag unchanged, like "3" with its quotes', "If-Match"
        )
    return int(number)


async def new_schedule(
    context: RequestContext, body: NewScheduleIn, view: Services | None = None
) -> ScheduleDraft:
    """`view`: that of a request with an idempotency key."""
    view, given = view or context.view, body.model_fields_set
    options: dict[str, Any] = {name: getattr(body, name) for name in SCHEDULE_FIELDS if name in given}
    options |= {name: read_instant(getattr(body, name), name) for name in INSTANTS if name in given}
    if "retry" in given:
        options["retry"] = read_retry(body.retry)
    if "missed" in given:
        options["missed"] = read_missed(body.missed)
    name, spec = read_target(context, body.target)
    payload = options["payload"] = body.payload if "payload" in given else {}
    if spec is None and not isinstance(payload, dict):
        raise InvalidPayload("payload", "a task takes named arguments: send an object")
    defaults = await view.context.defaults_for_new_work(name, spec)
    when, now = await search(from_json, body.when), await view.now()
    draft = schedule_draft(
        view.context.ids, context.caller.tenant, body.name, name, when, defaults, now, options
    )
    return replace(draft, target_spec=spec)


async def edit_schedule(
    context: RequestContext, reference: str, body: SchedulePatchIn, expected: int | None
) -> Schedule:
    for _ in range(MAX_EDITS):
        known = await context.view.schedules.find(reference)
        edit = await edit_of(
            context, known, body
        )  # first: an invalid edit is reported before a version conflict
        if expected is not None and known.version != expected:
            break
        try:
            return await context.view.schedules.apply_edit(known, edit, context.caller.author)
        except VersionConflict:
            if expected is not None:
                raise
    raise VersionConflict(
        f"schedule {reference!r} has changed since you read it: read it again and repeat the edit"
    )


async def edit_of(context: RequestContext, known: Schedule, body: SchedulePatchIn) -> ScheduleEdit:
    given = body.model_fields_set
    if not given:
        raise InvalidInput("body", "is empty: change at least one field")
    changes: dict[str, Any] = {
        name: getattr(body, name) for name in (*SCHEDULE_FIELDS, "payload") if name in given
    }
    changes |= {name: read_optional_instant(getattr(body, name), name) for name in INSTANTS if name in given}
    if "when" in given:
        changes["when"] = await search(from_json, body.when)
    if "target" in given:
        changes["target"] = read_target(
            context, body.target, known.draft.target_spec if shown_name(known.draft.target) == HTTP else None
        )
    if "retry" in given:
        changes["retry"] = None if body.retry is None else read_retry(body.retry)
    if "missed" in given:
        changes["missed"] = None if body.missed is None else read_missed(body.missed)
    draft = await edited_draft(known.draft, changes, context.view.context.defaults_for_edit(changes))
    return ScheduleEdit(draft, body.paused if "paused" in given else None)


# -- values ------------------------------------------------------------------------------------------------
def read_instant(value: str, field: str) -> datetime:
    """A timestamp of RFC 3339. Other formats that Python accepts, such as week numbers or bare dates, are
    refused."""
    try:
        if not _TIMESTAMP.fullmatch(value):
            raise ValueError(value)
        moment = datetime.fromisoformat(value.upper())
    except ValueError:
        raise InvalidInput(
            field, f"{value[:64]!r} is not a valid timestamp: use 2030-01-01T09:00:00Z"
        ) from None
    if moment.tzinfo is None:
        raise InvalidInput(field, f"{value!r} has no time zone: add Z for UTC, or an offset like +01:00")
    return moment


def read_optional_instant(value: str | None, field: str) -> datetime | None:
    return None if value is None else read_instant(value, field)


def read_micros(value: str | None, field: str) -> Micros | None:
    return None if value is None else instant.read(read_instant(value, field), field)


def read_name(value: str | None, field: str) -> str | None:
    return None if value is None else check_name(value, field)


def read_target_name(value: str | None, field: str) -> str | None:
    special = value is None or value.partition(":")[0] in KINDS
    return value if special else check_name(value, field)


def read_pair(value: str | None, field: str, form: str) -> tuple[str, str] | None:
    if value is None:
        return None
    pair = parse_pair(value)
    if pair is None:
        raise InvalidInput(field, f"{value[:64]!r} has not the form {form}; write a colon in the name as \\:")
    return pair


def read_retry(value: RetryIn) -> Retry:
    given = {name: getattr(value, name) for name in value.model_fields_set}
    return Retry(**{**given, "multiplier": float(value.multiplier)})


def read_missed(value: MissedIn) -> Missed:
    given = value.model_fields_set
    return Missed(
        value.policy,
        value.within if "within" in given else None,
        value.max if "max" in given else None,
        value.waiting,
    )
