"""Edits of schedules: what is there, with what a caller changes. None takes away what may be absent; what is not named stays."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from duetime.engine.checks import (
    check_max_runs,
    check_missed,
    check_name,
    check_overlap,
    check_priority,
    encode_labels,
    refuse_unknown,
)
from duetime.engine.drafts import NO_DEFAULTS, Defaults, at_version, policies
from duetime.errors import Conflict, InvalidInput
from duetime.model import duration, instant
from duetime.model.codec import decode
from duetime.model.definition import difference
from duetime.model.job import Overlap
from duetime.model.retry import Retry
from duetime.model.schedule import Missed, ScheduleDraft
from duetime.model.when import At, Cron, Every, RRule, When, from_json, seeded

NULL = b"null"
POLICIES = frozenset({"timeout", "retry", "delivery"})
AIM = frozenset({"target", "payload"})
DefaultsOf = Callable[[str, bytes | None], Awaitable[Defaults]]


async def edited_draft(draft: ScheduleDraft, changes: Mapping[str, Any], defaults_of: DefaultsOf) -> ScheduleDraft:
    """`target` is the name a job has for it and what is stored beside it. The very draft when nothing is new."""
    refuse_unknown(changes, EDITABLE)
    new = replace(draft, **{name: read(changes[name]) for name, read in _READERS.items() if name in changes})
    if "when" in changes:
        new = replace(new, when=seeded(_when(changes["when"]), draft.name))
    if changes.keys() & POLICIES:
        new = replace(new, policies=_policies(draft.policies, changes))
    if changes.keys() & (AIM | {"owner"}):
        new = await _aimed(new, changes, defaults_of)
    unseen = new.gate == draft.gate and _version(new) == _version(draft)
    return draft if unseen and not difference(draft, new) else new


async def _aimed(draft: ScheduleDraft, changes: Mapping[str, Any], defaults_of: DefaultsOf) -> ScheduleDraft:
    """With the payload its target takes, and what else follows from the target. Of a task nobody told of, only its name is known."""
    target, spec = changes.get("target", (draft.target, draft.target_spec))
    defaults, payload = await defaults_of(target, spec), draft.payload
    if changes.keys() & AIM:
        payload = _payload(changes["payload"] if "payload" in changes else decode(draft.payload), spec, defaults)
    new = replace(draft, target=target, target_spec=spec, payload=payload)
    if defaults is NO_DEFAULTS and target == draft.target:
        return new
    gate = defaults.gate(target, payload, draft.owner, draft.tenant)
    return replace(new, gate=gate, policies=at_version(draft.policies, defaults.version) if changes.keys() & AIM else draft.policies)


def _payload(value: Any, spec: bytes | None, defaults: Defaults) -> bytes:
    if spec is None and not isinstance(value, dict):
        raise Conflict("payload: the schedule's target is a task, which takes named arguments: give an object, or another target")
    return NULL if value is None else defaults.encode(value)


def _policies(stored: bytes | None, changes: Mapping[str, Any]) -> bytes | None:
    own = {} if stored is None else decode(stored)
    again = changes["retry"] if "retry" in changes else own.get("retry")
    return policies(
        changes.get("timeout", own.get("timeout")),
        Retry.from_json(again) if isinstance(again, Mapping) else again,
        changes.get("delivery", own.get("delivery")),
        own.get("version", 1),
    )


def _version(draft: ScheduleDraft) -> Any:
    return 1 if draft.policies is None else decode(draft.policies).get("version", 1)


def _when(value: Any) -> When:
    if isinstance(value, Mapping):
        return from_json(dict(value))
    if not isinstance(value, Cron | Every | At | RRule):
        raise InvalidInput("when", f"{value!r} is not a Cron, Every, At or RRule")
    return value


def _missed(value: Any) -> Missed:
    return Missed() if value is None else Missed.from_json(value) if isinstance(value, Mapping) else check_missed(value)


def _moment(field: str) -> Callable[[Any], Any]:
    return lambda value: None if value is None else instant.read(value, field)


_READERS: dict[str, Callable[[Any], Any]] = {
    "queue": lambda value: check_name(value, "queue"),
    "priority": check_priority,
    "owner": lambda value: None if value is None else check_name(value, "owner"),
    "labels": lambda value: encode_labels(value) if value else None,
    "overlap": lambda value: check_overlap(Overlap.ALLOW if value is None else value),
    "missed": _missed,
    "jitter": lambda value: duration.parse("0s" if value is None else value, "jitter"),
    "start_at": _moment("start_at"),
    "end_at": _moment("end_at"),
    "max_runs": check_max_runs,
}
EDITABLE = ("when", *sorted(AIM), *sorted(POLICIES), *_READERS)
