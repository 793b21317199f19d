"""What a search finds in a job: its labels, the fields of its payload, and errors of the same cause."""

from __future__ import annotations

import re
from typing import Any

from duetime.model.codec import decode
from duetime.model.job import error_line

# PostgreSQL has the same expressions, in the function `error_group`.
_VARIABLE_PART = re.compile("""'[^']*'|"[^"]*"|[A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]*""")
_LAST_PLACE = re.compile('.*File "(?:[^"]*/)?([^"/]*)", line [0-9]+, in ([^\n]+)', re.DOTALL)


def error_group(error: str) -> str:
    """The same for all errors of one cause: type and message, with N for each number, id and quoted text, and
    the function that raised it."""
    message = _VARIABLE_PART.sub("N", error_line(error))
    place = _LAST_PLACE.match(error)
    return message if place is None else f"{message} (in {place[2]}, {place[1]})"


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
