"""Named statements on one connection, and what a transaction emits once it is committed."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from duetime.model.hint import EventHint, Hint, JobHint
from duetime.model.instant import SECOND, Micros
from duetime.stores.sqlite.batch import pieces
from duetime.stores.statements import load

STATEMENTS = load("duetime.stores.sqlite", "sql")
# Workers look at least once a second anyway: other processes need not be woken for jobs that are due later
# than this.
SOON = 2 * SECOND

# These releases take ?1 for a name and warn about parameters in a sequence (python/cpython#117995).
BY_NAME = (3, 12) <= sys.version_info < (3, 12, 4)

Row = tuple[Any, ...]
Parameters = Sequence[Any]


def bound(parameters: Parameters) -> Any:
    """The parameters of ?1, ?2 and so on, as this Python takes them without a warning."""
    return {str(number): value for number, value in enumerate(parameters, 1)} if BY_NAME else parameters


class Executes(Protocol):
    """The part of a sqlite3.Connection that a session needs."""

    def execute(self, statement: str, parameters: Any = ..., /) -> sqlite3.Cursor: ...


class SqliteSession:
    __slots__ = ("connection",)

    def __init__(self, connection: Executes) -> None:
        self.connection = connection

    def all(self, name: str, parameters: Parameters = ()) -> list[Row]:
        return self.connection.execute(STATEMENTS[name], bound(parameters)).fetchall()

    def one(self, name: str, parameters: Parameters = ()) -> Row | None:
        rows = self.connection.execute(STATEMENTS[name], bound(parameters)).fetchall()
        return rows[0] if rows else None

    def value(self, name: str, parameters: Parameters = ()) -> Any:
        return self.connection.execute(STATEMENTS[name], bound(parameters)).fetchall()[0][0]

    def change(self, name: str, parameters: Parameters = ()) -> int:
        """Returns how many rows it changed."""
        return self.connection.execute(STATEMENTS[name], bound(parameters)).rowcount

    def change_many(self, name: str, rows: Sequence[Parameters]) -> int:
        """As `change`, for each of these rows."""
        return sum(
            self.connection.execute(statement, bound(values)).rowcount
            for statement, values in pieces(STATEMENTS[name], rows)
        )

    def all_many(self, name: str, rows: Sequence[Parameters]) -> list[Row]:
        """As `all`, for each of these rows."""
        found: list[Row] = []
        for statement, values in pieces(STATEMENTS[name], rows):
            found += self.connection.execute(statement, bound(values)).fetchall()
        return found

    def composed(
        self, first: str, equal: Iterable[str], others: Iterable[str], values: dict[str, Any]
    ) -> list[Row]:
        """As `all`, for a statement of several parts, with columns that must equal their values after the
        first."""
        conditions = [f"AND {column} = :{column}" for column in equal]
        return self.connection.execute(
            "\n".join([STATEMENTS[first], *conditions, *(STATEMENTS[name] for name in others)]), values
        ).fetchall()


class SqliteTransaction(SqliteSession):
    """A session that may write. `now` is the store's clock for everything in it."""

    __slots__ = ("ended", "hints", "now", "waited", "wakes_others")

    def __init__(self, connection: Executes, now: Micros, waited: Micros = 0) -> None:
        super().__init__(connection)
        self.now = now
        self.waited = waited  # for the write lock
        self.hints: list[Hint] = []
        self.ended: list[Row] = []  # jobs that became final; the first column is the id
        self.wakes_others = False  # other processes should look

    def tell(self, hints: Iterable[Hint]) -> None:
        for hint in hints:
            self.hints.append(hint)
            if isinstance(hint, EventHint):
                continue  # pollers look at the event log themselves, and workers need not wake up for it
            if not isinstance(hint, JobHint) or hint.due_at <= self.now + SOON:
                self.wakes_others = True

    def count_change(self) -> int:
        """Let the pollers of other processes notice the commit, if it matters to them. Returns how much the
        counter rises."""
        return self.change("raise_changes") if self.wakes_others else 0
