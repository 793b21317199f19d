"""Values as text for people: nothing that acts on a terminal, instants in the local zone and how far away
they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from typing import Any

from duetime.clock import wall_micros
from duetime.model.instant import Micros, to_datetime

_UNITS = (
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
    (timedelta(minutes=1), "min"),
    (timedelta(seconds=1), "s"),
)

Moment = datetime | Micros


# -- text ------------------------------------------------------------------------------------------
def visible(text: object) -> str:
    """One printable line. Control characters, escape sequences and marks of writing direction become
    \\x1b, \\u202e and so on."""
    line = str(text)
    return line if line.isprintable() else "".join(one if one.isprintable() else _escape(one) for one in line)


def visible_lines(text: str) -> str:
    """As `visible`, but line ends stay."""
    return "\n".join(visible(line.replace("\t", "    ")) for line in text.split("\n"))


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def plural(count: int, noun: str) -> str:
    """As "1 job" or "2,000 jobs"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def last_line(text: str | None, missing: str = "-") -> str:
    """Of an error: the line that names it."""
    return (text or missing).strip().splitlines()[-1]


# -- instants --------------------------------------------------------------------------------------
def now_here() -> datetime:
    """By this machine's clock."""
    return to_datetime(wall_micros())


def local(moment: Moment, zone: tzinfo | None = None) -> str:
    """As "2030-01-01 09:00:00+01:00", in this machine's zone unless another is given."""
    return _datetime(moment).astimezone(zone).isoformat(sep=" ", timespec="seconds")


def relative(moment: Moment, now: datetime) -> str:
    """As "in 5 min", "3 h ago" or "now"."""
    there = _datetime(moment)
    distance = abs(there - now)
    for step, unit in _UNITS:
        if distance >= step:
            return f"in {distance // step} {unit}" if there >= now else f"{distance // step} {unit} ago"
    return "now"


def moment_text(moment: Moment | None, missing: str = "-", now: Moment | None = None) -> str:
    """As "2030-01-01 09:00:00+01:00 (in 5 min)"."""
    return (
        missing
        if moment is None
        else f"{local(moment)} ({relative(moment, now_here() if now is None else _datetime(now))})"
    )


def iso(micros: Micros | None) -> str | None:
    """As JSON has it."""
    return None if micros is None else to_datetime(micros).isoformat().replace("+00:00", "Z")


def _datetime(moment: Moment) -> datetime:
    return moment if isinstance(moment, datetime) else to_datetime(moment)


# -- records ---------------------------------------------------------------------------------------
def target_text(target: dict[str, Any]) -> str:
    """A task's name, or the method and URL of an HTTP target."""
    return str(
        target.get("name")
        or f"{target.get('method', '')} {target.get('url', target.get('type', '-'))}".strip()
    )


def record_fields(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and text of each field of a JSON record that has a value."""
    for name, value in record.items():
        if text := _value_text(name, value):
            yield name.replace("_", " "), text


def _value_text(name: str, value: Any) -> str:
    match value:
        case None | False | {} | [] if not value:
            return ""
        case True:
            return "yes"
        case str() if name.endswith(("_at", "_time", "_until")):
            return moment_text(datetime.fromisoformat(value))
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
    share = f" ({done / total * 100:.0f} %)" if total else ""
    text = f"{done:g}" if total is None else f"{done:g} of {total:g}{share}"
    return f"{text}: {note}" if note else text
