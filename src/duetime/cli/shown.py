"""A JSON record as lines for people: instants in the local zone, structures as JSON, nothing where nothing is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from duetime.cli.moments import full, now_here

if TYPE_CHECKING:
    from duetime.remote.results import JobSummary


def due_of(job: JobSummary) -> datetime:
    """When it was to start. Of a job whose agent works elsewhere `due_at` is when a report has to come, or had to."""
    handed_over = job.state == "running" and job.node is None
    reported = job.state in ("succeeded", "dead") and job.finished_at is not None and job.finished_at < job.due_at
    return job.fire_time if handed_over or reported else job.due_at


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
