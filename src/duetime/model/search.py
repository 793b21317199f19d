"""Which jobs and schedules a filter selects, for stores that have no query language; what a search finds in a
job: its labels, the fields of its payload, and errors of the same cause; how filters write name and value."""

from __future__ import annotations

import re
from typing import Any, Protocol

from duetime.model.codec import decode
from duetime.model.job import Job, JobDraft, JobFilter, State, error_line
from duetime.model.schedule import Schedule, ScheduleFilter
from duetime.model.target import shown_name

# PostgreSQL has the same expressions, in the function `error_group`.
_VARIABLE_PART = re.compile("""'[^']*'|"[^"]*"|[A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]*""")
# `name:value`. The first colon ends the name, unless it has a backslash before it; `\\` is a backslash.
_PAIR = re.compile(r"((?:\\.|[^\\:])+):(.*)", re.DOTALL)
_ESCAPED, _SPECIAL = re.compile(r"\\([\\:])"), re.compile(r"([\\:])")
_LAST_PLACE = re.compile('.*File "(?:[^"]*/)?([^"/]*)", line [0-9]+, in ([^\n]+)', re.DOTALL)


class JobOutcome(Protocol):
    @property
    def state(self) -> State: ...
    @property
    def node(self) -> int | None: ...
    @property
    def error(self) -> str | None: ...
    @property
    def disposition(self) -> str | None: ...


def selects(wanted: JobFilter, draft: JobDraft | Job, outcome: JobOutcome) -> bool:
    """A job has both: what it was submitted with, and what became of it."""
    return (
        draft.tenant == wanted.tenant
        and (wanted.states is None or outcome.state in wanted.states)
        and (wanted.queue is None or draft.queue == wanted.queue)
        and (wanted.owner is None or draft.owner == wanted.owner)
        and (wanted.schedule is None or draft.schedule == wanted.schedule)
        and (not wanted.scheduled or draft.schedule is not None)
        and (wanted.target is None or wanted.target in (draft.target, shown_name(draft.target)))
        and (wanted.node is None or outcome.node == wanted.node)
        and (wanted.due_after is None or draft.due_at >= wanted.due_after)
        and (wanted.due_before is None or draft.due_at < wanted.due_before)
        and (wanted.fire_after is None or draft.fire_time >= wanted.fire_after)
        and (wanted.fire_before is None or draft.fire_time < wanted.fire_before)
        and (not wanted.undisposed or (outcome.state is State.DEAD and outcome.disposition is None))
        and (wanted.label is None or has_label(draft.labels, *wanted.label))
        and (wanted.error is None or wanted.error.casefold() in (outcome.error or "").casefold())
        and (wanted.error_group is None or wanted.error_group == error_group(outcome.error or ""))
        and (wanted.payload is None or has_field(draft.payload, *wanted.payload))
    )


def selects_schedule(wanted: ScheduleFilter, schedule: Schedule) -> bool:
    draft = schedule.draft
    return (
        draft.tenant == wanted.tenant
        and (wanted.text is None or wanted.text.casefold() in draft.name.casefold())
        and (wanted.paused is None or schedule.paused is wanted.paused)
        and (wanted.owner is None or draft.owner == wanted.owner)
        and (wanted.target is None or wanted.target in (draft.target, shown_name(draft.target)))
        and (wanted.queue is None or draft.queue == wanted.queue)
        and (wanted.label is None or has_label(draft.labels, *wanted.label))
    )


def error_group(error: str) -> str:
    """The same for all errors of one cause: type and message, with N for each number, id and quoted text, and
    the function that raised it."""
    message = _VARIABLE_PART.sub("N", error_line(error))
    place = _LAST_PLACE.match(error)
    return message if place is None else f"{message} (in {place[2]}, {place[1]})"


def parse_pair(text: str) -> tuple[str, str] | None:
    """Name and value; None if the text has not this form. Only the name has escapes."""
    found = _PAIR.fullmatch(text)
    return None if found is None else (_ESCAPED.sub(r"\1", found[1]), found[2])


def format_pair(name: str, value: str) -> str:
    return _SPECIAL.sub(r"\\\1", name) + ":" + value


def has_label(labels: bytes | None, key: str, value: str) -> bool:
    found = _read(labels)
    return isinstance(found, dict) and found.get(key) == value


def has_field(payload: bytes | None, path: str, value: str) -> bool:
    """Whether the payload has this value at a path such as "order.id"."""
    found = _read(payload)
    for name in path.split("."):
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            return False
    return any(
        found == one and isinstance(found, bool) == isinstance(one, bool) for one in field_values(value)
    )


def field_values(value: str) -> list[Any]:
    """The JSON values that a value in a search may mean: `17` is a number, and a text."""
    try:
        return [value, decode(value)]
    except ValueError:
        return [value]


def _read(data: bytes | None) -> Any:
    try:
        return None if data is None else decode(data)
    except ValueError:
        return None  # not written by this version
