"""Durations as people write them ("100ms", "15m", "1h30m") and as the engine counts them (microseconds)."""

from __future__ import annotations

from datetime import timedelta

from duetime.errors import InvalidInput

UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000, "w": 604_800_000_000}
LONGEST = 3_660 * UNITS["d"]
REMEDY = 'write it like "100ms", "15m" or "1h30m"'

Duration = str | timedelta


def parse(value: Duration, field: str) -> int:
    """Microseconds in `value`; refuses what is negative, nameless or longer than ten years."""
    if isinstance(value, timedelta):
        total = value // timedelta(microseconds=1)
    elif isinstance(value, str):
        total = _parse_text(value, field)
    else:
        raise InvalidInput(field, f"{value!r} is not a duration: {REMEDY}, or give a timedelta")
    if total < 0:
        raise InvalidInput(field, f"{value!s} is negative: it must be zero or longer")
    if total > LONGEST:
        raise InvalidInput(field, f"{value!s} is longer than ten years")
    return total


def positive(value: Duration, field: str) -> int:
    """As `parse`, and zero is refused too."""
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


def _parse_text(text: str, field: str) -> int:
    if text.strip().startswith("-"):
        raise InvalidInput(field, f"{text!r} is negative: {REMEDY}")
    total, digits, unit = 0, "", ""
    # A trailing digit closes the last unit, so that one loop reads them all.
    for character in text.strip().lower() + "0":
        if (character.isascii() and character.isdigit()) or character == ".":
            if unit:
                total += _count(digits, unit, text, field)
                digits, unit = "", ""
            digits += character
        else:
            unit += character
    if digits != "0" or unit or not text.strip():
        raise InvalidInput(field, f"{text!r} is not a duration: {REMEDY}")
    return total


def _count(digits: str, unit: str, text: str, field: str) -> int:
    if unit not in UNITS or not digits or digits.count(".") > 1 or digits == "." or len(digits) > 18:
        raise InvalidInput(field, f"{text!r} is not a duration: {REMEDY}")
    whole, _, fraction = digits.partition(".")
    scale = UNITS[unit]
    return int(whole or "0") * scale + (int(fraction) * scale // 10 ** len(fraction) if fraction else 0)
