"""Schedules from requests: drafted anew, or edited: what is there, with what the request changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from duetime.api.auth import Caller
from duetime.api.edge import Edge
from duetime.api.models.schedules import NewScheduleIn, SchedulePatchIn
from duetime.api.problems import Refused
from duetime.api.wanted import instant, missed, read_target, retry
from duetime.app.operations import EDITS, NULL, Operations
from duetime.engine.checks import check_name, check_priority, encode_labels
from duetime.engine.drafts import policies, schedule_draft
from duetime.errors import Conflict, InvalidInput, InvalidPayload, VersionConflict
from duetime.model import duration
from duetime.model import instant as instants
from duetime.model.codec import decode
from duetime.model.retry import Retry
from duetime.model.schedule import Missed, Schedule, ScheduleDraft
from duetime.model.when import from_json, seeded

PLAIN = ("overlap", "jitter", "max_runs", "queue", "priority", "timeout", "delivery", "owner", "labels")
POLICIES = frozenset({"timeout", "retry", "delivery"})


def expected_version(if_match: str | None) -> int | None:
    """The version in an If-Match; None where any will do."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip()
    number = text[1:-1]
    if len(text) < 3 or text[0] != '"' or text[-1] != '"' or not (number.isascii() and number.isdigit()) or len(number) > 9:
        raise Refused(422, "input_invalid", 'If-Match: give back the ETag as it was, like "3" with its quotes', "If-Match")
    return int(number)


async def drafted(edge: Edge, caller: Caller, body: NewScheduleIn) -> ScheduleDraft:
    view, given = edge.view(caller), body.model_fields_set
    options: dict[str, Any] = {name: getattr(body, name) for name in PLAIN if name in given}
    options |= {name: instant(getattr(body, name), name) for name in ("start_at", "end_at") if name in given}
    if "retry" in given:
        options["retry"] = retry(body.retry)
    if "missed" in given:
        options["missed"] = missed(body.missed)
    name, spec = read_target(edge, caller.tenant, body.target)
    payload = body.payload if "payload" in given else {}
    _check_payload(payload, spec)
    defaults = view.defaults_for(name, spec)
    options["payload"] = payload
    draft = schedule_draft(view.ids, caller.tenant, body.name, name, from_json(body.when), defaults, await view.now(), options)
    return replace(draft, target_spec=spec)


async def edited(edge: Edge, caller: Caller, reference: str, body: SchedulePatchIn, expected: int | None) -> Schedule:
    view = edge.view(caller)
    if not body.model_fields_set:
        raise InvalidInput("body", "says nothing new: give at least one field to change")
    for _ in range(EDITS):
        known = await view.find_schedule(reference)
        draft = _patched(edge, caller, known.draft, body)  # first: what is wrong in itself is told before what is late
        if expected is not None and known.version != expected:
            break
        try:
            return await _edit(view, known, draft, body)
        except VersionConflict:
            if expected is not None:
                raise
    raise VersionConflict(f"schedule {reference!r} has been changed meanwhile: read it again and repeat the edit")


async def _edit(view: Operations, known: Schedule, draft: ScheduleDraft, body: SchedulePatchIn) -> Schedule:
    given = body.model_fields_set
    stored = known
    if given - {"paused"}:
        stored = await view.put_schedule(draft, known.version, replace=True)
    if "paused" in given and body.paused != stored.paused:
        await (view.pause(known.draft.name) if body.paused else view.resume(known.draft.name))
        stored = await view.find_schedule(known.draft.name)
    return stored


def _patched(edge: Edge, caller: Caller, draft: ScheduleDraft, body: SchedulePatchIn) -> ScheduleDraft:
    given = body.model_fields_set
    changes: dict[str, Any] = {name: read(getattr(body, name)) for name, read in _READERS.items() if name in given}
    if "when" in given:
        changes["when"] = seeded(from_json(body.when), draft.name)
    spec = draft.target_spec
    if "target" in given:
        changes["target"], spec = read_target(edge, caller.tenant, body.target, draft.target_spec)
        changes["target_spec"] = spec
    if "payload" in given or "target" in given:
        payload = body.payload if "payload" in given else decode(draft.payload)
        if spec is None and not isinstance(payload, dict):
            raise Conflict("payload: the schedule's target is a task, which takes named arguments: give an object, or another target")
        defaults = edge.view(caller).defaults_for(changes.get("target", draft.target), spec)
        changes["payload"] = NULL if payload is None else defaults.encode(payload)
    if given & POLICIES:
        changes["policies"] = _policies(draft.policies, body)
    return replace(draft, **changes)


def _policies(stored: bytes | None, body: SchedulePatchIn) -> bytes | None:
    own = {} if stored is None else decode(stored)
    given = body.model_fields_set
    timeout = body.timeout if "timeout" in given else own.get("timeout")
    delivery = body.delivery if "delivery" in given else own.get("delivery")
    again: Retry | None = Retry.from_json(own["retry"]) if "retry" in own else None
    if "retry" in given:
        again = None if body.retry is None else retry(body.retry)
    return policies(timeout, again, delivery, own.get("version", 1))


def _check_payload(payload: Any, spec: bytes | None) -> None:
    if spec is None and not isinstance(payload, dict):
        raise InvalidPayload("payload", "a task takes named arguments: give an object")


def _moment(field: str) -> Any:
    return lambda value: None if value is None else instants.read(instant(value, field), field)


def _missed(value: Any) -> Missed:
    return Missed() if value is None else Missed.from_json(missed(value).to_json())


_READERS: dict[str, Any] = {
    "queue": lambda value: check_name(value, "queue"),
    "priority": check_priority,
    "owner": lambda value: None if value is None else check_name(value, "owner"),
    "labels": lambda value: encode_labels(value) if value else None,
    "overlap": lambda value: None if value == "allow" else value,
    "missed": _missed,
    "jitter": lambda value: duration.parse(value, "jitter"),
    "start_at": _moment("start_at"),
    "end_at": _moment("end_at"),
    "max_runs": lambda value: value,
}
