"""Schedules as YAML text, with comments for what a reader must know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from duetime.cli.documents.entry import MANAGED_BY, entry_of
from duetime.cli.documents.source import dumper, yaml_package
from duetime.cli.format import visible
from duetime.model.target import SIGNING
from duetime.model.views import ScheduleView

WIDTH = 110
SCHEMA = "https://raw.githubusercontent.com/duetime/duetime/main/docs/reference/schedules.schema.json"


@dataclass(frozen=True, slots=True)
class Written:
    """An entry, and comments that stand above it."""

    entry: Mapping[str, Any]
    comments: Sequence[str] = field(default_factory=tuple)


def exported(schedules: Iterable[ScheduleView]) -> str:
    """One YAML document for each name they are managed by; first those that are not managed."""
    ordered = sorted(schedules, key=_manager)  # keeps the order of names
    documents = [
        document([_written(one) for one in group], manager or None)
        for manager, group in groupby(ordered, key=_manager)
    ]
    return "---\n".join(documents or [document([])])


def document(entries: Iterable[Written], managed_by: str | None = None, comments: Sequence[str] = ()) -> str:
    lines = [f"# yaml-language-server: $schema={SCHEMA}", *_commented(comments)]
    if managed_by is not None:
        lines.append(_dumped({"managed_by": managed_by}, flow=False).rstrip())
    listed = [line for one in entries for line in _entry_lines(one)]
    return "\n".join([*lines, *(["schedules:", *listed] if listed else ["schedules: []"]), ""])


def _entry_lines(one: Written) -> Iterator[str]:
    for line in _commented(one.comments):
        yield f"  {line}"
    for number, line in enumerate(_dumped(one.entry).splitlines()):
        yield f"{'    ' if number else '  - '}{line}" if line else ""


def _commented(comments: Iterable[str]) -> Iterator[str]:
    return (f"# {visible(comment)}" for comment in comments)


def _manager(view: ScheduleView) -> str:
    return view.labels.get(MANAGED_BY, "")


def _written(view: ScheduleView) -> Written:
    entry = entry_of(view)
    target = entry["target"] if isinstance(entry["target"], dict) else {}
    references = [*target.get("secret_headers", {}).values(), *filter(None, [target.get(SIGNING)])]
    names = ", ".join(one["env"] for one in references)
    comments = [f"Secrets are not exported. Set {names} before you apply this."] if names else []
    return Written(entry, comments)


def _dumped(value: Any, flow: bool | None = None) -> str:
    """`flow` None: collections that hold only scalars stand on one line."""
    made: str = yaml_package().dump(
        value, Dumper=dumper(), sort_keys=False, allow_unicode=True, width=WIDTH, default_flow_style=flow
    )
    return made
