"""From the models of requests to the values the app takes. Values that the schema cannot check are checked
here."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NoReturn

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.types import Receive

from duetime.api.auth import RequestContext, require_scope
from duetime.api.models.jobs import BatchJobIn, RetryIn
from duetime.api.models.schedules import MissedIn, NewScheduleIn, SchedulePatchIn
from duetime.api.models.targets import whole
from duetime.api.problems import ApiProblem, invalid, place_of
from duetime.app.schedules import MAX_EDITS
from duetime.app.search import search
from duetime.app.services import Services
from duetime.engine.submit.build import NewJob
from duetime.engine.submit.schedules import edited_draft, schedule_draft
from duetime.engine.submit.submission import JobRequest
from duetime.engine.submit.validate import check_name
from duetime.errors import InvalidInput, InvalidPayload, VersionConflict
from duetime.invokers.http.lazy import seal_for
from duetime.model import instant
from duetime.model.api_key import Scope
from duetime.model.codec import MAX_DEPTH
from duetime.model.command import COMMAND, CommandTarget
from duetime.model.destination import check_destination
from duetime.model.edit_plan import ScheduleEdit
from duetime.model.instant import Micros
from duetime.model.publish import PublishTarget
from duetime.model.retry import Retry
from duetime.model.schedule import KINDS, Missed, Schedule, ScheduleDraft
from duetime.model.shadow import SHADOW, ShadowTarget
from duetime.model.target import HTTP, SIGNING, HttpTarget
from duetime.model.when import from_json

# Request bodies: read up to a limit, then parsed strictly. JSON that parsers read differently is refused.


MAX_BODY = 256 * 1024
MAX_KEYS = 1_000
MAX_BATCH_BODY = 16 * 1024 * 1024
MAX_BATCH_KEYS = 400_000
LARGE_BODY = 1024 * 1024
MAX_LENGTH_DIGITS = 12  # of a Content-Length
Place = tuple[Any, str | int] | None  # the place around a value, and its key or number there


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body. Stops reading when it is too large."""
    check_headers(request.headers, limit)
    return await gather(request.receive, limit)


def check_headers(headers: Mapping[str, str], limit: int) -> None:
    length = headers.get("content-length")
    if length is not None and (
        len(length) > MAX_LENGTH_DIGITS or not length.isdecimal() or int(length) > limit
    ):
        _too_large(limit)
    if headers.get("content-encoding", "identity") != "identity":
        raise ApiProblem(
            415,
            "media_type_unsupported",
            "compressed bodies are not supported: send it uncompressed",
            "Content-Encoding",
        )


def is_large(headers: Mapping[str, str], limit: int) -> bool:
    """Whether the body may be so large that only a few fit into memory."""
    check_headers(headers, limit)
    return limit > LARGE_BODY and int(headers.get("content-length", limit)) > LARGE_BODY


async def gather(receive: Receive, limit: int) -> bytes:
    data, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise ApiProblem(400, "request_incomplete", "the connection ended before the body")
        data += message.get("body", b"")
        more = message.get("more_body", False)
        if len(data) > limit:
            _too_large(limit)
    return bytes(data)


def check_type(value: str | None) -> None:
    if value == "application/json":
        return
    name, _, parameters = (value or "").lower().partition(";")
    charset = parameters.replace('"', "").strip()
    if name.strip() != "application/json" or (charset and charset != "charset=utf-8"):
        raise ApiProblem(
            415,
            "media_type_unsupported",
            "the body must be JSON: send Content-Type: application/json",
            "Content-Type",
        )


def parse(data: bytes, max_keys: int = MAX_KEYS) -> Any:
    """The JSON value in `data`."""
    pairs = _Pairs(max_keys)
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=pairs,
            parse_float=_finite,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError:
        raise ApiProblem(400, "json_malformed", "the body is not UTF-8") from None
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise ApiProblem(400, "json_malformed", f"the body is not JSON: {problem.msg} at {where}") from None
    except RecursionError:
        _too_deep()
    except ValueError:
        raise ApiProblem(
            422, "input_invalid", "body: contains a number with too many digits: send it as text", "body"
        ) from None
    # A cheap test on the bytes: most bodies need no recursive check.
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH or b"\\u" in data:
        _check_value(value, None, MAX_DEPTH)
    return value


def validated(adapter: TypeAdapter[Any], value: Any) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as problem:
        raise invalid(problem.errors(include_url=False, include_context=False, include_input=False)) from None


class _Pairs:
    """Makes objects, counts their keys, and refuses duplicate keys."""

    __slots__ = ("_left",)

    def __init__(self, limit: int) -> None:
        self._left = limit

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        self._left -= len(pairs)
        if self._left < 0:
            raise ApiProblem(
                422,
                "too_many_keys",
                "the body has too many keys: store large data elsewhere and pass a reference",
                "body",
            )
        made = dict(pairs)
        if len(made) < len(pairs):
            double = Counter(name for name, _ in pairs).most_common(1)[0][0]
            raise ApiProblem(422, "key_duplicate", f"duplicate key {double!r}", double)
        return made


def _refuse_constant(name: str) -> NoReturn:
    raise ApiProblem(400, "json_malformed", f"{name} is not JSON: numbers are finite")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ApiProblem(
            422, "input_invalid", f"body: the number {text[:40]} is too large: send it as text", "body"
        )
    return number


def _check_value(value: Any, place: Place, depth: int) -> None:
    if depth == 0:
        _too_deep()
    match value:
        case str():
            _check_text(value, place)
        case dict():
            for key, item in value.items():
                _check_text(key, place)
                _check_value(item, (place, key), depth - 1)
        case list():
            for number, item in enumerate(value):
                _check_value(item, (place, number), depth - 1)


def _check_text(text: str, place: Place) -> None:
    if "\0" in text:
        _refuse_text(place, "text must not contain the NUL character")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        _refuse_text(place, "invalid Unicode: unpaired surrogate")


def _refuse_text(place: Place, reason: str) -> NoReturn:
    """Writes the place only now: written for every value, a long key would cost its length each time."""
    parts: list[str | int] = []
    while place is not None:
        place, part = place
        parts.insert(0, part)
    field = place_of(parts)
    raise ApiProblem(422, "input_invalid", f"{field}: {reason}", field)


def _too_deep() -> NoReturn:
    raise ApiProblem(
        422, "too_deep", f"the body is nested deeper than {MAX_DEPTH} levels: flatten it", "body"
    )


def _too_large(limit: int) -> NoReturn:
    remedy = "store large data elsewhere and pass a reference"
    raise ApiProblem(
        413,
        "body_too_large",
        f"the body is over the limit of {limit:,} bytes: {remedy}",
        "body",
        {"Connection": "close"},
    )


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
KEY_LABEL = "duetime.key"  # of a job: the key that submitted it and may cancel it without the scope manage


# -- jobs
# -----
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


def read_target(
    context: RequestContext, value: dict[str, Any], before: bytes | None = None, *, checked: bool = True
) -> tuple[str, bytes | None]:
    """The name and the spec that a job stores; `before` is the spec that an edit replaces. `checked`: a URL
    that may not be called is refused here, and not when the job runs."""
    _refuse_null(value, "target")
    match value.get("type"):
        case "task":
            return _task(value), None
        case "http":
            target = _http(context, value, before)
            if checked:
                context.state.egress.check(target.url, "target.url")
            return HTTP, target.to_spec()
        case "command":
            return COMMAND, _command(context, value)
        case "publish":
            return _publish(context, value)
        case "shadow":
            return SHADOW, _shadow(value)
        case _:
            raise InvalidInput("target.type", 'must be "task", "http", "command", "publish" or "shadow"')


def _command(context: RequestContext, value: dict[str, Any]) -> bytes:
    allowed = context.state.settings.allow_commands
    _require_allowed(context, "commands", allowed, "commands", "commands run as the user of the nodes")
    return CommandTarget.from_json(value, "target").to_spec()


def check_apprise(context: RequestContext) -> None:
    allowed, why = context.state.settings.allow_apprise, "Apprise connects to any address of the network"
    _require_allowed(context, "apprise", allowed, "channels of type apprise", why)


def _require_allowed(context: RequestContext, name: str, allowed: bool, what: str, why: str) -> None:
    """Refuse what the service does not allow, or only to callers who may do everything."""
    if not allowed:
        raise ApiProblem(
            403,
            f"{name}_not_allowed",
            f"{what} are not allowed here: start the service with --allow-{name} yes",
            "target.type",
        )
    require_scope(context, Scope.ADMIN).require_operator(why)


def _publish(context: RequestContext, value: dict[str, Any]) -> tuple[str, bytes]:
    target = PublishTarget.from_json(value)
    check_destination(context.state.settings.destinations, target.destination, context.caller.tenant)
    return target.name, target.to_spec()


def _task(value: dict[str, Any]) -> str:
    for name in value:
        if name not in ("type", "name"):
            raise InvalidInput(f"target.{name}", "unknown field of a task: use type and name")
    if not isinstance(value.get("name"), str):
        raise InvalidInput("target.name", "is required: the name of the task")
    return str(value["name"])


def _http(context: RequestContext, value: dict[str, Any], before: bytes | None) -> HttpTarget:
    value = _whole_codes(value)
    return HttpTarget.received(value, before, lambda: seal_for(context.state.ring, context.caller.tenant))


def _shadow(value: dict[str, Any]) -> bytes:
    target = value.get("target")
    if isinstance(target, dict):
        _refuse_null(target, "target.target")
        if target.get("type") == "task":
            check_name(target.get("name"), "target.target.name")
        value = {**value, "target": _whole_codes(target)}
    return ShadowTarget.from_json(value).to_spec()


def _refuse_null(target: dict[str, Any], field: str) -> None:
    """Only a signing secret can be null: an edit removes it."""
    for name, member in target.items():
        if member is None and name != SIGNING:
            raise InvalidInput(f"{field}.{name}", "is null: set a value, or leave it out")


def _whole_codes(value: dict[str, Any]) -> dict[str, Any]:
    """JSON does not tell 204.0 from 204."""
    if not isinstance(value.get("success"), list):
        return value
    return {**value, "success": [whole(code) for code in value["success"]]}


# -- schedules ---------------------------------------------------------------------------------------------
def expected_version(context: RequestContext) -> int | None:
    """The version in If-Match; None if any version will do."""
    text = context.auth.headers.get("if-match", "*").strip()
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
    defaults = await view.context.defaults_for(name, spec)
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
            context, body.target, known.draft.target_spec if known.draft.target == HTTP else None
        )
    if "retry" in given:
        changes["retry"] = None if body.retry is None else read_retry(body.retry)
    if "missed" in given:
        changes["missed"] = None if body.missed is None else read_missed(body.missed)
    draft = await edited_draft(known.draft, changes, context.view.context.defaults_for)
    return ScheduleEdit(draft, body.paused if "paused" in given else None)


# -- values ------------------------------------------------------------------------------------------------
def read_instant(value: str, field: str) -> datetime:
    """A timestamp of RFC 3339. Other formats that Python accepts, such as week numbers or bare dates, are
    refused."""
    try:
        if not _TIMESTAMP.fullmatch(value):
            raise ValueError(value)
        return datetime.fromisoformat(value.upper())
    except ValueError:
        raise InvalidInput(
            field, f"{value[:64]!r} is not a valid timestamp: use 2030-01-01T09:00:00Z"
        ) from None


def read_optional_instant(value: str | None, field: str) -> datetime | None:
    return None if value is None else read_instant(value, field)


def read_micros(value: str | None, field: str) -> Micros | None:
    return None if value is None else instant.read(read_instant(value, field), field)


def read_name(value: str | None, field: str) -> str | None:
    return None if value is None else check_name(value, field)


def read_target_name(value: str | None, field: str) -> str | None:
    special = value is None or value.partition(":")[0] in KINDS
    return value if special else check_name(value, field)


def read_label(value: str | None) -> tuple[str, str] | None:
    key, _, text = (value or "").partition(":")
    return None if value is None else (key, text)


def read_retry(value: RetryIn) -> Retry:
    jitter = value.jitter if "jitter" in value.model_fields_set else None
    return Retry(
        value.max_attempts, value.first_delay, float(value.multiplier), value.max_delay, jitter=jitter
    )


def read_missed(value: MissedIn) -> Missed:
    given = value.model_fields_set
    return Missed(
        value.policy, value.within if "within" in given else None, value.max if "max" in given else None
    )
