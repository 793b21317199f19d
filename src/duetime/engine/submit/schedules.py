"""Builds schedule rows from what callers send: new ones, and changes of stored ones. In a change, None
removes an optional value, or brings back that of the task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypedDict

from duetime.engine.submit.build import NO_DEFAULTS, Defaults, at_version, policies
from duetime.engine.submit.validate import (
    check_max_runs,
    check_missed,
    check_name,
    check_overlap,
    check_priority,
    encode_labels,
    refuse_unknown,
)
from duetime.errors import Conflict, InvalidInput, UnknownOption
from duetime.model import duration, instant
from duetime.model.codec import decode, encode
from duetime.model.duration import Duration
from duetime.model.ids import Ids
from duetime.model.instant import Micros
from duetime.model.jitter import NO_JITTER, normalized
from duetime.model.job import DeliveryName, Overlap, OverlapName
from duetime.model.retry import Retry
from duetime.model.schedule import (
    FieldChange,
    Missed,
    MissedPolicy,
    ScheduleDraft,
    difference,
    schedule_to_json,
)
from duetime.model.when import At, Cron, Every, RRule, When, from_json, seeded

NULL = b"null"
POLICIES = frozenset({"timeout", "retry", "delivery", "expires"})
TARGET = frozenset({"target", "payload"})
FROM_TASK = ("queue", "priority", "delivery")  # a new schedule that leaves them out gets those of its task
INITIAL: dict[str, Any] = {"overlap": Overlap.ALLOW, "missed": Missed(), "jitter": NO_JITTER}
# What an edit sets for the options that a complete definition leaves out.
LEFT_OUT: dict[str, Any] = {
    "payload": {},
    "queue": None,
    "priority": None,
    "timeout": None,
    "retry": None,
    "delivery": None,
    "expires": None,
    "owner": None,
    "labels": {},
    "overlap": "allow",
    "missed": None,
    "jitter": "0s",
    "start_at": None,
    "end_at": None,
    "max_runs": None,
}
DefaultsOf = Callable[[str, bytes | None], Awaitable[Defaults]]
DECLARED = "declared"  # the kind of records that keep declarations, by the name of the schedule


class ScheduleOptions(TypedDict, total=False):
    """The options of a schedule of a task, as callers write them."""

    payload: Mapping[str, Any]
    overlap: OverlapName
    missed: Missed | MissedPolicy
    jitter: Duration
    start_at: datetime | None
    end_at: datetime | None
    max_runs: int | None
    queue: str
    priority: int
    timeout: Duration | None
    retry: Retry | None
    delivery: DeliveryName | None
    expires: Duration | None
    owner: str | None
    labels: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a program declared last, and the set that it belongs to."""

    definition: Mapping[str, Any]
    group: str | None = None

    @staticmethod
    def of(draft: ScheduleDraft, group: str | None) -> Declaration:
        return Declaration(decode(encode(schedule_to_json(draft))), group)

    @staticmethod
    def from_bytes(value: bytes) -> Declaration:
        return Declaration(**decode(value))

    def to_bytes(self) -> bytes:
        return encode({"definition": self.definition, "group": self.group})

    def drift(self, stored: ScheduleDraft) -> list[FieldChange]:
        """How the stored schedule differs: it was edited after the declaration, or kept by it."""
        now = Declaration.of(stored, None).definition
        return [
            FieldChange(field, declared, now[field])
            for field, declared in self.definition.items()
            if field in now and now[field] != declared
        ]


def schedule_draft(
    ids: Ids,
    tenant: str,
    name: str,
    task: str,
    when: When,
    defaults: Defaults,
    now: Micros,
    options: Mapping[str, Any],
) -> ScheduleDraft:
    """A new schedule of a task."""
    refuse_unknown(options, SCHEDULE_OPTIONS)
    given = {**INITIAL, "queue": defaults.queue, "priority": defaults.priority, **options}
    values: dict[str, Any] = {
        "start_at": None,
        "end_at": None,
        "max_runs": None,
        "owner": None,
        "labels": None,
        **_read(given),
    }
    payload = defaults.encode(options.get("payload", {}))
    return ScheduleDraft(
        id=ids.new(now),
        tenant=tenant,
        name=check_name(name, "name"),
        when=seeded(_checked_when(when), name),
        target=task,
        target_spec=None,
        payload=payload,
        policies=policies(
            options.get("timeout"),
            options.get("retry"),
            options.get("delivery") or defaults.delivery,
            defaults.version,
            _expires(options),
        ),
        limit_key=defaults.limit_key(task, payload, values["owner"], tenant),
        **values,
    )


def check_schedule_options(options: Mapping[str, Any], arguments: Collection[str]) -> None:
    """Refuse unknown options. `arguments` are the task's: callers may mistake them for options."""
    for name in options:
        if name in arguments and name not in SCHEDULE_OPTIONS:
            raise UnknownOption(name, f"is an argument of the task: write payload={{{name!r}: ...}}")
    refuse_unknown(options, SCHEDULE_OPTIONS)


def declared(draft: ScheduleDraft, options: Mapping[str, Any]) -> ScheduleDraft:
    """The part of a schedule that its caller declared, without values from the task: these may change between
    releases."""
    own = {} if draft.policies is None else decode(draft.policies)
    kept = {name: value for name, value in own.items() if name in options}
    queue = draft.queue if "queue" in options else ""
    return replace(
        draft,
        queue=queue,
        priority=draft.priority if "priority" in options else 0,
        limit_key=None,
        policies=encode(kept),
    )


async def edited_draft(
    draft: ScheduleDraft, changes: Mapping[str, Any], defaults_of: DefaultsOf
) -> ScheduleDraft:
    """The draft with these changes, or the same object if they change nothing. A `target` is given as its
    name and its spec."""
    refuse_unknown(changes, EDITABLE)
    changes = await _with_task_values(draft, changes, defaults_of)
    given = {name: INITIAL.get(name) if value is None else value for name, value in changes.items()}
    new = replace(draft, **_read(given))
    if "when" in changes:
        new = replace(new, when=seeded(_read_when(changes["when"]), draft.name))
    if changes.keys() & POLICIES:
        new = replace(new, policies=_policies(draft.policies, changes))
    if changes.keys() & (TARGET | {"owner"}):
        new = await _with_target(new, changes, defaults_of)
    same_inside = new.limit_key == draft.limit_key and _version(new) == _version(draft)
    return draft if same_inside and not difference(draft, new) else new


async def _with_task_values(
    draft: ScheduleDraft, changes: Mapping[str, Any], defaults_of: DefaultsOf
) -> Mapping[str, Any]:
    left_out = [name for name in FROM_TASK if name in changes and changes[name] is None]
    if not left_out:
        return changes
    defaults = await defaults_of(*changes.get("target", (draft.target, draft.target_spec)))
    return {**changes, **{name: getattr(defaults, name) for name in left_out}}


async def _with_target(
    draft: ScheduleDraft, changes: Mapping[str, Any], defaults_of: DefaultsOf
) -> ScheduleDraft:
    """Encodes the payload for its target and derives the limit key. For tasks without published defaults only
    the name is known."""
    target, spec = changes.get("target", (draft.target, draft.target_spec))
    defaults, payload = await defaults_of(target, spec), draft.payload
    if changes.keys() & TARGET:
        payload = _payload(
            changes["payload"] if "payload" in changes else decode(draft.payload), spec, defaults
        )
    new = replace(draft, target=target, target_spec=spec, payload=payload)
    if defaults is NO_DEFAULTS and target == draft.target:
        return new
    key = defaults.limit_key(target, payload, draft.owner, draft.tenant)
    return replace(
        new,
        limit_key=key,
        policies=at_version(draft.policies, defaults.version) if changes.keys() & TARGET else draft.policies,
    )


def _payload(value: Any, spec: bytes | None, defaults: Defaults) -> bytes:
    if spec is None and not isinstance(value, dict):
        raise Conflict(
            "payload: the schedule's target is a task, which takes named arguments: "
            "give an object, or another target"
        )
    return NULL if value is None else defaults.encode(value)


def _policies(stored: bytes | None, changes: Mapping[str, Any]) -> bytes | None:
    own = {} if stored is None else decode(stored)
    return policies(
        changes.get("timeout", own.get("timeout")),
        _retry(own, changes),
        changes.get("delivery", own.get("delivery")),
        own.get("version", 1),
        _expires(changes) if "expires" in changes else own.get("expires"),
    )


def _retry(own: Mapping[str, Any], changes: Mapping[str, Any]) -> Retry | None:
    if "retry" not in changes:
        return Retry.restore(own["retry"]) if "retry" in own else None
    given = changes["retry"]
    return Retry.from_json(given) if isinstance(given, Mapping) else given


def _expires(options: Mapping[str, Any]) -> str | None:
    expires = options.get("expires")
    return None if expires is None else duration.show(duration.positive(expires, "expires"))


def _version(draft: ScheduleDraft) -> Any:
    return 1 if draft.policies is None else decode(draft.policies).get("version", 1)


def _read(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: read(options[name]) for name, read in _READERS.items() if name in options}


def _read_when(value: Any) -> When:
    return from_json(dict(value)) if isinstance(value, Mapping) else _checked_when(value)


def _checked_when(value: Any) -> When:
    if not isinstance(value, Cron | Every | At | RRule):
        raise InvalidInput(
            "when",
            f"{value!r} is not a Cron, Every, At or RRule: "
            "write it like dt.Cron('0 9 * * MON') or dt.Every('5m')",
        )
    return value


def _missed(value: Any) -> Missed:
    return Missed.from_json(value) if isinstance(value, Mapping) else check_missed(value)


def _instant(field: str) -> Callable[[Any], Any]:
    return lambda value: None if value is None else instant.read(value, field)


_READERS: dict[str, Callable[[Any], Any]] = {
    "queue": lambda value: check_name(value, "queue"),
    "priority": check_priority,
    "owner": lambda value: None if value is None else check_name(value, "owner"),
    "labels": lambda value: None if value is None or value == {} else encode_labels(value),
    "overlap": check_overlap,
    "missed": _missed,
    "jitter": normalized,
    "start_at": _instant("start_at"),
    "end_at": _instant("end_at"),
    "max_runs": check_max_runs,
}
SCHEDULE_OPTIONS = ("payload", *sorted(POLICIES), *_READERS)
EDITABLE = ("when", "target", *SCHEDULE_OPTIONS)
