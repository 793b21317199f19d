"""One statement for many rows.

For every None and every bytes that it binds, sqlite3 looks for an adapter of the type, which costs more than
storing the value. Therefore a value that is the same in all rows is bound once, None is written into the
statement, and bytes travel as bytearray."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, compress
from typing import Any

# In a statement for many rows: the parenthesis behind it is repeated for each row.
MARK = "/* rows */ "
SIZES = (128, 32, 8, 2, 1)
_NULL, _SHARED, _OWN = "null", "shared", "own"


def pieces(statement: str, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[str, list[Any]]]:
    """Statements and their parameters, which together cover all rows, in their order."""
    at = 0
    for size in SIZES:
        while len(rows) - at >= size:
            yield _piece(statement, rows[at : at + size])
            at += size


def _piece(statement: str, rows: Sequence[Sequence[Any]]) -> tuple[str, list[Any]]:
    if len(rows) == 1:
        kinds = tuple([_NULL if value is None else _SHARED for value in rows[0]])
        return _expanded(statement, kinds, 1), [value for value in rows[0] if value is not None]
    kinds = tuple(_kind(column) for column in zip(*rows, strict=True))
    shared = [kind is _SHARED for kind in kinds]
    own = [kind is _OWN for kind in kinds]
    parameters = list(compress(rows[0], shared))
    parameters += chain.from_iterable(compress(row, own) for row in rows)
    return _expanded(statement, kinds, len(rows)), parameters


def _kind(column: tuple[Any, ...]) -> str:
    first = column[0]
    if column.count(first) < len(column):
        return _OWN
    return _NULL if first is None else _SHARED


@lru_cache(maxsize=512)
def _expanded(statement: str, kinds: tuple[str, ...], size: int) -> str:
    """The statement with one parenthesis per row. Shared values have the first numbers."""
    before, _, rest = statement.partition(MARK)
    after = rest.partition(")")[2]
    own = kinds.count(_SHARED)
    rows: list[str] = []
    for _ in range(size):
        shared, values = 0, list[str]()
        for kind in kinds:
            own, shared = own + (kind is _OWN), shared + (kind is _SHARED)
            values.append({_NULL: "NULL", _SHARED: f"?{shared}", _OWN: f"?{own}"}[kind])
        rows.append(f"({', '.join(values)})")
    return before + ", ".join(rows) + after
