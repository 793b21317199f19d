"""Durations as people write them ("100ms", "15m", "1h30m") and as the engine counts them (microseconds)."""

from __future__ import annotations

import re
from datetime import timedelta

from duetime.errors import InvalidInput

UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}
MAX_DURATION = 3_660 * UNITS["d"]
REMEDY = 'write it like "100ms", "15m" or "1h30m"'

Duration = str | timedelta
_PART = re.compile(r"(?=\.?[0-9])([0-9]{0,18})(?:\.([0-9]{0,18}))?(us|ms|s|m|h|d|w)")
_TEXT = re.compile(f"(?:{_PART.pattern})+")


def parse(value: Duration, field: str) -> int:
    """The microseconds in `value`. Rejects durations that are negative, have no unit or are longer than ten
    years."""
    if isinstance(value, timedelta):
        total = value // timedelta(microseconds=1)
    elif isinstance(value, str):
        total = _parse_text(value, field)
    else:
        raise InvalidInput(field, f"{value!r} is not a duration: {REMEDY}, or give a timedelta")
    if total < 0:
        raise InvalidInput(field, f"{value!s} is negative: it must be zero or longer")
    if total > MAX_DURATION:
        raise InvalidInput(field, f"{value!s} is longer than ten years")
    return total


def positive(value: Duration, field: str) -> int:
    """As `parse`, but rejects zero, too."""
    total = parse(value, field)
    if total == 0:
        raise InvalidInput(field, f"must be longer than zero: {REMEDY}")
    return total


def show(micros: int) -> str:
    """The shortest text that `parse` reads back as the same number."""
    if micros == 0:
        return "0s"
    parts: list[str] = []
    for unit in ("w", "d", "h", "m", "s", "ms", "us"):
        count, micros = divmod(micros, UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def show_millis(micros: int) -> str:
    """Rounded down to the millisecond, at least zero."""
    return show(max(0, micros) // 1_000 * 1_000)


def _parse_text(text: str, field: str) -> int:
    stripped = text.strip().lower()
    if stripped.startswith("-"):
        raise InvalidInput(field, f"{text!r} is negative: {REMEDY}")
    if not _TEXT.fullmatch(stripped):
        raise InvalidInput(field, f"{text!r} is not a duration: {REMEDY}")
    return sum(_micros(*part.groups("")) for part in _PART.finditer(stripped))


def _micros(whole: str, fraction: str, unit: str) -> int:
    return int(whole or "0") * UNITS[unit] + int(fraction or "0") * UNITS[unit] // int(10 ** len(fraction))
