"""Statements as text, with their values in it: the driver has no parameters of its own, and one text may hold
several statements, which the server executes in one round trip."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

MAX_ROWS = 500  # of one statement
MAX_TEXT = 2 * 1024 * 1024  # characters: less than any server's max_allowed_packet
_PLACE = re.compile(r"\?(\d+)|:(\w+)|(/\* rows \*/ \([?, ]+\))|(/\* firsts \*/)")

ROWS = "/* rows */"


class Values(tuple[Any, ...]):
    """A list in parentheses, as IN takes it."""

    __slots__ = ()


class Literals(dict[type[Any], Callable[[Any], str]]):
    """How values are written, by their type. Looked up without a function call: a batch has thousands."""

    def __missing__(self, kind: type[Any]) -> Callable[[Any], str]:
        """An enum or a bool."""
        return self[str] if issubclass(kind, str) else _number


def _number(value: Any) -> str:
    return str(int(value))


def _string(value: str) -> str:
    # A backslash means something else in each sql_mode.
    return f"'{value.replace(chr(39), chr(39) * 2)}'" if "\\" not in value else _text(value)


def _text(value: str) -> str:
    return f"(_utf8mb4 x'{value.encode().hex()}' COLLATE utf8mb4_bin)"


def _bytes(value: bytes) -> str:
    return f"x'{value.hex()}'"


def _list(values: Values) -> str:
    return f"({', '.join([LITERALS[type(value)](value) for value in values]) or 'NULL'})"


# For the store's own connections, which use utf8mb4_bin.
LITERALS = Literals(
    {
        int: str,
        bytes: _bytes,
        bytearray: _bytes,
        str: _string,
        Values: _list,
        type(None): lambda _: "NULL",
    }
)
# For connections of callers, which may use any character set.
FOREIGN_LITERALS = Literals(LITERALS | {str: _text})


def rendered(
    statement: str, parameters: Sequence[Any] | Mapping[str, Any], literals: Literals = LITERALS
) -> str:
    parts = list(_parts(statement))
    for at in range(1, len(parts), 2):
        value = parameters[parts[at]]
        parts[at] = literals[type(value)](value)
    return "".join(parts)


def pieces(
    statement: str,
    rows: Sequence[Sequence[Any]],
    row_word: str,
    literals: Literals = LITERALS,
    parameters: Sequence[Any] = (),
) -> Iterator[str]:
    """Statements that together cover all rows, in their order. Parameters are the same in all of them."""
    parts = [
        literals[type(parameters[part])](parameters[part]) if isinstance(part, int) else part
        for part in _parts(statement)
    ]
    for at in range(0, len(rows), MAX_ROWS):
        some = rows[at : at + MAX_ROWS]
        texts = (
            [f"{row_word}({', '.join([literals[type(value)](value) for value in row])})" for row in some]
            if "rows" in parts
            else []
        )
        firsts = [literals[type(row[0])](row[0]) for row in some] if "firsts" in parts else []
        for begin, end in bounded(texts or firsts):
            yield _filled(parts, texts[begin:end], firsts[begin:end])


def bounded(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Parts of the list that are not longer than MAX_TEXT, except by one text."""
    begin = length = 0
    for at, text in enumerate(texts):
        if length and length + len(text) > MAX_TEXT:
            yield begin, at
            begin, length = at, 0
        length += len(text)
    yield begin, len(texts)


def _filled(parts: Sequence[Any], texts: list[str], firsts: list[str]) -> str:
    filling = {"rows": ", ".join(texts), "firsts": f"({', '.join(firsts)})"}
    return "".join([filling.get(part, part) if at % 2 else part for at, part in enumerate(parts)])


@lru_cache(maxsize=1_024)
def _parts(statement: str) -> tuple[Any, ...]:
    """Text and places in turns. A place is the index or name of a parameter."""
    parts: list[Any] = []
    end = 0
    for found in _PLACE.finditer(statement):
        number, name, rows, _ = found.groups()
        place = int(number) - 1 if number else name or ("rows" if rows else "firsts")
        parts += [statement[end : found.start()], place]
        end = found.end()
    return (*parts, statement[end:])
