"""The editable part of a schedule as JSON, to show it and to compare two versions. It never contains a
secret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.codec import decode
from duetime.model.instant import Micros, to_iso
from duetime.model.schedule import ScheduleDraft
from duetime.model.target import HTTP, HttpTarget
from duetime.model.when import to_json


class FieldChange(NamedTuple):
    field: str
    before: Any
    after: Any


def schedule_to_json(draft: ScheduleDraft) -> dict[str, Any]:
    return {
        "when": to_json(draft.when),
        "target": target(draft.target, draft.target_spec),
        "payload": decode(draft.payload),
        "queue": draft.queue,
        "priority": draft.priority,
        **policies(draft.policies),
        "owner": draft.owner,
        "labels": {} if draft.labels is None else decode(draft.labels),
        "overlap": draft.overlap or "allow",
        "missed": draft.missed.to_json(),
        "jitter": duration.show(draft.jitter),
        "start_at": iso(draft.start_at),
        "end_at": iso(draft.end_at),
        "max_runs": draft.max_runs,
    }


def difference(before: ScheduleDraft, after: ScheduleDraft) -> Sequence[FieldChange]:
    """The fields that differ. A changed secret appears as a change of the target, without its value."""
    old, new = schedule_to_json(before), schedule_to_json(after)
    secret = (before.target, before.target_spec) != (after.target, after.target_spec)
    return [
        FieldChange(field, old[field], new[field])
        for field in new
        if old[field] != new[field] or (field == "target" and secret)
    ]


def target(name: str, spec: bytes | None) -> dict[str, Any]:
    if name != HTTP:
        return {"type": "task", "name": name}
    try:
        return HttpTarget.from_spec(spec or b"{}").to_json()
    except InvalidInput:
        return {
            "type": "http"
        }  # it was stored under older rules and is invalid now: it cannot run, and is not shown


def policies(stored: bytes | None) -> dict[str, Any]:
    own = {} if stored is None else decode(stored)
    return {
        "timeout": own.get("timeout"),
        "retry": own.get("retry"),
        "delivery": own.get("delivery", "at_least_once"),
    }


def iso(micros: Micros | None) -> str | None:
    return None if micros is None else to_iso(micros)
