"""Schedules from requests: drafted anew, or edited: what is there, with what the request changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from duetime.api.auth import Caller
from duetime.api.edge import Edge
from duetime.api.models.schedules import NewScheduleIn, SchedulePatchIn
from duetime.api.problems import Refused
from duetime.api.wanted import instant, missed, read_target, retry
from duetime.app.operations import Operations
from duetime.app.planning import EDITS
from duetime.engine.drafts import schedule_draft
from duetime.engine.edits import edited_draft
from duetime.errors import InvalidInput, InvalidPayload, VersionConflict
from duetime.model.changes import Edit
from duetime.model.schedule import Schedule, ScheduleDraft
from duetime.model.when import from_json

PLAIN = ("overlap", "jitter", "max_runs", "queue", "priority", "timeout", "delivery", "owner", "labels")
INSTANTS = ("start_at", "end_at")


def expected_version(if_match: str | None) -> int | None:
    """The version in an If-Match; None where any will do."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip()
    number = text[1:-1]
    if len(text) < 3 or text[0] != '"' or text[-1] != '"' or not (number.isascii() and number.isdigit()) or len(number) > 9:
        raise Refused(422, "input_invalid", 'If-Match: give back the ETag as it was, like "3" with its quotes', "If-Match")
    return int(number)


async def drafted(edge: Edge, caller: Caller, body: NewScheduleIn, through: Operations | None = None) -> ScheduleDraft:
    """`through`: the view of a request that may come again."""
    view, given = through or edge.view(caller), body.model_fields_set
    options: dict[str, Any] = {name: getattr(body, name) for name in PLAIN if name in given}
    options |= {name: instant(getattr(body, name), name) for name in INSTANTS if name in given}
    if "retry" in given:
        options["retry"] = retry(body.retry)
    if "missed" in given:
        options["missed"] = missed(body.missed)
    name, spec = read_target(edge, caller.tenant, body.target)
    payload = body.payload if "payload" in given else {}
    if spec is None and not isinstance(payload, dict):
        raise InvalidPayload("payload", "a task takes named arguments: give an object")
    defaults = await view.defaults_for(name, spec)
    options["payload"] = payload
    draft = schedule_draft(view.ids, caller.tenant, body.name, name, from_json(body.when), defaults, await view.now(), options)
    return replace(draft, target_spec=spec)


async def edited(edge: Edge, caller: Caller, reference: str, body: SchedulePatchIn, expected: int | None) -> Schedule:
    view = edge.view(caller)
    for _ in range(EDITS):
        known = await view.find_schedule(reference)
        edit = await edit_of(edge, caller, known, body)  # first: what is wrong in itself is told before what is late
        if expected is not None and known.version != expected:
            break
        try:
            return await view.apply_edit(known, edit, caller.author)
        except VersionConflict:
            if expected is not None:
                raise
    raise VersionConflict(f"schedule {reference!r} has been changed meanwhile: read it again and repeat the edit")


async def edit_of(edge: Edge, caller: Caller, known: Schedule, body: SchedulePatchIn) -> Edit:
    given = body.model_fields_set
    if not given:
        raise InvalidInput("body", "says nothing new: give at least one field to change")
    changes: dict[str, Any] = {name: getattr(body, name) for name in (*PLAIN, "payload") if name in given}
    changes |= {name: None if (value := getattr(body, name)) is None else instant(value, name) for name in INSTANTS if name in given}
    if "when" in given:
        changes["when"] = from_json(body.when)
    if "target" in given:
        changes["target"] = read_target(edge, caller.tenant, body.target, known.draft.target_spec)
    if "retry" in given:
        changes["retry"] = None if body.retry is None else retry(body.retry)
    if "missed" in given:
        changes["missed"] = None if body.missed is None else missed(body.missed)
    draft = await edited_draft(known.draft, changes, edge.view(caller).defaults_for)
    return Edit(draft, body.paused if "paused" in given else None)
