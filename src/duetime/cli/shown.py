"""A JSON record as lines for people: instants in the local zone, structures as JSON, nothing where nothing is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from duetime.cli.moments import full
from duetime.clock import wall_micros
from duetime.model.instant import to_datetime


def shown_fields(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    now = to_datetime(wall_micros())
    for name, value in record.items():
        yield name.replace("_", " "), _shown(name, value, now)


def _shown(name: str, value: Any, now: datetime) -> str:
    if value in (None, {}, []):
        return ""
    match value:
        case bool():
            return "yes" if value else ""
        case str() if name.endswith(("_at", "_time", "_until")):
            return full(datetime.fromisoformat(value), now)
        case {"done": _} if name == "progress":
            return _progress(**value)
        case dict() | list():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value).rstrip()


def _progress(done: float, total: float | None = None, note: str | None = None) -> str:
    """As "3 of 10 (30 %): pages"."""
    far = f"{done:g}" if total is None else f"{done:g} of {total:g}{f' ({done / total:.0%})'.replace('%', ' %') if total else ''}"
    return f"{far}: {note}" if note else far
