"""What an entry of a file of schedules means. `read_entry` makes of it the arguments of a new schedule;
`entry_of` writes a stored schedule as an entry. The fields are those of `POST /schedules`, and `shadow`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from duetime.cli.documents.references import (
    SecretSources,
    placeholder,
    references_in,
    with_values,
    without_values,
)
from duetime.cli.inputs import read_instant
from duetime.engine.submit.build import NO_DEFAULTS
from duetime.engine.submit.schedules import LEFT_OUT, schedule_draft
from duetime.engine.submit.validate import check_missed, check_name, refuse_unknown
from duetime.errors import InvalidInput, InvalidPayload
from duetime.model.command import CommandTarget
from duetime.model.ids import Ids
from duetime.model.job import DEFAULT_TENANT
from duetime.model.publish import PublishTarget
from duetime.model.retry import Retry
from duetime.model.schedule import Missed
from duetime.model.shadow import ShadowTarget
from duetime.model.target import SIGNING, HttpTarget
from duetime.model.views import ScheduleView
from duetime.model.when import When, from_json, to_json

MANAGED_BY = "managed-by"  # the label that says which files a schedule belongs to
FIELDS = ("name", "when", "target", *LEFT_OUT, "paused", "shadow")
REQUIRED = ("name", "when", "target")
KINDS: dict[Any, type[HttpTarget] | type[CommandTarget] | type[PublishTarget] | type[ShadowTarget]] = {
    "http": HttpTarget,
    "command": CommandTarget,
    "publish": PublishTarget,
    "shadow": ShadowTarget,
}
NO_SECRETS: dict[str, Any] = {"secret_headers": {}, SIGNING: None}  # as an edit removes them
HTTP_DEFAULTS = HttpTarget.from_json({"url": "https://agent.example/"}).to_json()


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    when: When
    target: Mapping[str, Any]  # as the API has it, with references in place of secrets
    options: Mapping[str, Any]  # those that were given, as `schedule` of a backend takes them
    paused: bool | None  # None: as it is; a new schedule is active
    managed_by: str | None = None

    @property
    def shown_target(self) -> dict[str, Any]:
        """As a view shows it, so that both can be compared."""
        return _shown(self.target)

    def sent_target(self) -> str | dict[str, Any]:
        """As a backend takes it: with the values of its secrets, a task by its name."""
        return self.target["name"] if self.target["type"] == "task" else with_values(self.target)

    @property
    def references(self) -> list[str]:
        """Which secrets are sent with the target, and where they come from."""
        return references_in(self.target) if self.target["type"] == "http" else []

    def with_secrets_of(self, sources: SecretSources) -> Entry:
        """Refuses references to secrets that this document may not use."""
        if self.target["type"] != "http":
            return self
        return replace(self, target=sources.located(self.target))

    def arguments(self) -> dict[str, Any]:
        """Of a new schedule."""
        return {**self.options, "payload": self.options.get("payload", {}), "paused": bool(self.paused)}

    def changes(self, stored: ScheduleView, send_secrets: bool = False) -> dict[str, Any]:
        """The edit that makes the stored schedule equal to the entry. What the entry leaves out gets its
        default. Stored secrets stay while the rest of the target is equal: they cannot be compared."""
        target = self.shown_target
        has_secrets = "secret_headers" in target or SIGNING in target
        edit = {**LEFT_OUT, **self.options, "when": self.when}
        if target != stored.target or (send_secrets and has_secrets):
            sent = self.sent_target()
            if isinstance(sent, dict) and sent["type"] == "http":
                sent = {**NO_SECRETS, **sent}  # an edit keeps the secrets that it does not name
            edit["target"] = sent
        return edit if self.paused is None else {**edit, "paused": self.paused}


# -- reading ---------------------------------------------------------------------------------------
def read_entry(value: Any, managed_by: str | None = None) -> Entry:
    """Every error names its field."""
    if not isinstance(value, Mapping):
        raise InvalidInput("schedules", "an entry must be a mapping with name, when and target")
    refuse_unknown(value, FIELDS)
    for name in REQUIRED:
        if value.get(name) is None:
            raise InvalidInput(name, "is missing: an entry needs name, when and target")
    for name, member in value.items():
        if member is None and name != "payload":
            raise InvalidInput(name, "is empty: set a value, or leave it out")
    options = {name: _READERS.get(name, _same)(value[name]) for name in LEFT_OUT if name in value}
    if managed_by is not None:
        options["labels"] = _managed(options.get("labels", {}), check_name(managed_by, "managed_by"))
    target = read_target(value["target"])
    if target["type"] == "task" and not isinstance(options.get("payload", {}), Mapping):
        raise InvalidPayload("payload", "a task takes named arguments: write a mapping")
    if _boolean(value.get("shadow", False), "shadow"):
        target = ShadowTarget.from_json({"type": "shadow", "target": without_values(target)}).to_json()
    paused = _boolean(value["paused"], "paused") if "paused" in value else None
    entry = Entry(value["name"], from_json(value["when"]), target, options, paused, managed_by)
    # Makes the row of a new schedule, which checks all the rest.
    schedule_draft(Ids(), DEFAULT_TENANT, entry.name, "task", entry.when, NO_DEFAULTS, 0, options)
    return entry


def read_target(value: Any) -> dict[str, Any]:
    """The name of a task, a URL, or a target as the API has it."""
    if isinstance(value, str):
        value = {"type": "http", "url": value} if "://" in value else {"type": "task", "name": value}
    if not isinstance(value, Mapping):
        raise InvalidInput("target", "must be the name of a task, a URL, or a mapping with its type")
    target = {"type": "http", **value} if "url" in value else dict(value)
    _shown(target)
    return target


def _shown(target: Mapping[str, Any]) -> dict[str, Any]:
    kind = target.get("type")
    if kind == "task":
        for name in target:
            if name not in ("type", "name"):
                raise InvalidInput(f"target.{name}", "unknown field of a task: use type and name")
        return {"type": "task", "name": check_name(target.get("name"), "target.name")}
    if kind not in KINDS:
        raise InvalidInput("target.type", f"must be one of task, {', '.join(KINDS)}")
    read = KINDS[kind].from_json(without_values(target) if kind == "http" else target)
    return read.to_json()


def _same(value: Any) -> Any:
    return value


def _boolean(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field, f"{value!r} must be true or false")
    return value


def _missed(value: Any) -> Missed:
    return Missed.from_json(value) if isinstance(value, Mapping) else check_missed(value)


def _instant(field: str) -> Callable[[Any], datetime | None]:
    def read(value: Any) -> datetime | None:
        if not isinstance(value, str):
            raise InvalidInput(field, f"{value!r} is not an instant: write it like 2030-01-01T09:00:00Z")
        return read_instant(value, field)

    return read


def _managed(labels: Any, name: str) -> dict[str, str]:
    if not isinstance(labels, Mapping):
        raise InvalidInput("labels", "must be a mapping of text to text")
    if labels.get(MANAGED_BY, name) != name:
        raise InvalidInput(f"labels.{MANAGED_BY}", "is set by managed_by of the file: leave it out")
    return {**labels, MANAGED_BY: name}


_READERS: dict[str, Callable[[Any], Any]] = {
    "missed": _missed,
    "retry": Retry.from_json,
    "start_at": _instant("start_at"),
    "end_at": _instant("end_at"),
}


# -- writing ---------------------------------------------------------------------------------------
def entry_of(view: ScheduleView) -> dict[str, Any]:
    """A stored schedule as an entry, without what is left to defaults. Queue, priority and delivery are
    always written for tasks, whose own values are the default of an entry without them."""
    target, shadow = view.target, view.target["type"] == "shadow"
    if shadow:
        target = target["target"]
    is_task = view.target["type"] == "task"
    labels = {name: text for name, text in view.labels.items() if name != MANAGED_BY}
    written: dict[str, Any] = {
        "name": view.name,
        "when": _when(view),
        "target": target_entry(view.name, target),
        "payload": view.payload,
        "queue": view.queue,
        "priority": view.priority,
        "timeout": view.timeout,
        "retry": view.retry,
        "delivery": view.delivery,
        "expires": view.expires,
        "owner": view.owner,
        "labels": labels,
        "overlap": view.overlap,
        "missed": _missed_entry(view.missed),
        "jitter": view.jitter,
        "start_at": _iso(view.start_at),
        "end_at": _iso(view.end_at),
        "max_runs": view.max_runs,
        "paused": view.paused,
        "shadow": shadow,
    }
    defaults: dict[str, Any] = {**LEFT_OUT, "missed": "latest", "paused": False, "shadow": False}
    if not is_task:
        defaults |= {"queue": "default", "priority": 5, "delivery": "at_least_once"}
    return {name: value for name, value in written.items() if name not in defaults or value != defaults[name]}


def target_entry(schedule: str, target: Mapping[str, Any]) -> Any:
    if target["type"] == "task":
        return target["name"] if "://" not in target["name"] else dict(target)
    if target["type"] != "http":
        return dict(target)
    plain = {**HTTP_DEFAULTS, "url": None}
    kept = {name: value for name, value in target.items() if plain.get(name) != value}
    if "secret_headers" in kept:
        kept["secret_headers"] = {name: placeholder(schedule, name) for name in kept["secret_headers"]}
    if SIGNING in kept:
        kept[SIGNING] = placeholder(schedule, SIGNING)
    return kept["url"] if len(kept) == 1 else {"type": "http", **kept}


def _when(view: ScheduleView) -> dict[str, str]:
    written = to_json(view.when)
    if written.get("key") == view.name:
        del written["key"]  # it is that of the name, unless another is given
    return written


def _missed_entry(missed: Mapping[str, Any]) -> Any:
    given = {name: value for name, value in missed.items() if value is not None}
    return given["policy"] if list(given) == ["policy"] else given


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
