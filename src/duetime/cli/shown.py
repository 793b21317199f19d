"""A JSON record as lines for people: instants in the local zone, structures as JSON, nothing where nothing is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from duetime.cli.moments import full, now_here


def shown_fields(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    now = now_here()
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
        case {"type": _} if name == "target":
            return target_text(value)
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


def target_text(target: dict[str, Any]) -> str:
    """A task's name; of a URL also how it is called."""
    return str(target.get("name") or f"{target.get('method', '')} {target.get('url', target.get('type', '-'))}".strip())
