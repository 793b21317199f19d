"""Named statements on one connection, and what a transaction emits once it is committed."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

from duetime.clock import wall_micros
from duetime.errors import Conflict
from duetime.model.hint import EventHint, Hint, JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.stored import RowKey
from duetime.store import Lane
from duetime.stores.row_values import range_condition
from duetime.stores.sql.rows import text_of
from duetime.stores.sql.session import Parameters, Row, run_now
from duetime.stores.sqlite.batch import MARK, pieces
from duetime.stores.statements import load

STATEMENTS = load("duetime.stores.sqlite", "sql", shared="duetime.stores.sql")
# Workers look at least once a second anyway: other processes need not be woken for jobs that are due later
# than this.
SOON = 2 * SECOND

# These releases take ?1 for a name and warn about parameters in a sequence (python/cpython#117995).
BY_NAME = (3, 12) <= sys.version_info < (3, 12, 4)


def bound(parameters: Parameters) -> Any:
    """The parameters of ?1, ?2 and so on, as this Python takes them without a warning."""
    return {str(number): value for number, value in enumerate(parameters, 1)} if BY_NAME else parameters


class Executes(Protocol):
    """The part of a sqlite3.Connection that a session needs."""

    def execute(self, statement: str, parameters: Any = ..., /) -> sqlite3.Cursor: ...


class SqliteSession:
    """Every coroutine ends without waiting: `run_now` runs them on the thread of the connection."""

    __slots__ = ("connection",)
    filters: frozenset[str] = frozenset()

    def __init__(self, connection: Executes) -> None:
        self.connection = connection

    async def all(self, name: str, parameters: Parameters = ()) -> list[Row]:
        return self.connection.execute(STATEMENTS[name], bound(parameters)).fetchall()

    async def one(self, name: str, parameters: Parameters = ()) -> Row | None:
        rows = self.connection.execute(STATEMENTS[name], bound(parameters)).fetchall()
        return rows[0] if rows else None

    async def value(self, name: str, parameters: Parameters = ()) -> Any:
        return self.connection.execute(STATEMENTS[name], bound(parameters)).fetchall()[0][0]

    async def change(self, name: str, parameters: Parameters = ()) -> int:
        return self.connection.execute(STATEMENTS[name], bound(parameters)).rowcount

    async def change_many(self, name: str, rows: Sequence[Parameters]) -> int:
        return sum(
            self.connection.execute(statement, bound(values)).rowcount
            for statement, values in pieces(STATEMENTS[name], rows)
        )

    async def change_each(self, name: str, rows: Sequence[Parameters]) -> list[int]:
        return [self.connection.execute(STATEMENTS[name], bound(row)).rowcount for row in rows]

    async def all_each(self, name: str, rows: Sequence[Parameters]) -> list[Row]:
        return [row for parameters in rows for row in await self.all(name, parameters)]

    async def each_lane(self, name: str, lanes: Sequence[Lane], parameters: Parameters) -> list[Row]:
        return await self.all(name, (text_of(lanes), *parameters))

    async def first_of_lanes(
        self, name: str, lanes: Sequence[Lane], parameters: Parameters, limit: int
    ) -> list[Row]:
        return await self.all(name, (text_of(lanes), *parameters, limit))

    def listed(self, values: Collection[Any]) -> str:
        """As JSON text, which SQLite's own functions can read."""
        return text_of(list(values))

    async def time(self) -> Micros:
        return wall_micros()

    async def all_many(self, name: str, rows: Sequence[Parameters]) -> list[Row]:
        found: list[Row] = []
        for statement, values in pieces(STATEMENTS[name], rows):
            found += self.connection.execute(statement, bound(values)).fetchall()
        return found

    async def composed(
        self, first: str, equal: Iterable[str], others: Iterable[str], values: dict[str, Any]
    ) -> list[Row]:
        conditions = [f"AND {column} = :{column}" for column in equal]
        return self.connection.execute(
            "\n".join([STATEMENTS[first], *conditions, *(STATEMENTS[name] for name in others)]), values
        ).fetchall()


class SqliteTransaction(SqliteSession):
    """A session that may write. `now` is the store's clock for everything in it."""

    __slots__ = ("ended", "hints", "now", "waited", "wakes_others")
    serial = True

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

    async def delete_range(
        self, table: str, columns: Sequence[str], after: RowKey | None, until: RowKey | None
    ) -> None:
        condition, values = range_condition(columns, after, until, "?{}")
        self.connection.execute(f"DELETE FROM {table} WHERE {condition}", bound(values))  # noqa: S608  # names of ours

    async def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        marks = ", ".join("?" * len(columns))
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES {MARK}({marks})"  # noqa: S608
        try:
            for text, values in pieces(statement, rows):
                self.connection.execute(text, bound(values))
        except sqlite3.IntegrityError as problem:
            raise Conflict(f"a row outside of the range is in the way ({problem})") from problem

    async def settle_plain(self, rows: Sequence[Row]) -> int:
        written = await self.change_many("settle_final", rows)
        await self.change_many("settle_delete", [row[:2] for row in rows])
        return written

    async def lock_permits(self) -> bool:
        return False

    def count_change(self) -> int:
        """Let the pollers of other processes notice the commit, if it matters to them. Returns how much the
        counter rises."""
        return run_now(self.change("raise_changes")) if self.wakes_others else 0
