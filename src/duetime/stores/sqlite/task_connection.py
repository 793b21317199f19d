"""The connection that a task uses, over SQLite. Rows are sqlite3.Row."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from duetime.stores.sql.task_connection import SqlTaskConnection, checked, replaced
from duetime.stores.sqlite.session import bound

Statement = Callable[[sqlite3.Connection], Any]


class SqliteTaskConnection(SqlTaskConnection):
    def __init__(self, run: Callable[[Statement], Awaitable[Any]], is_open: Callable[[], bool]) -> None:
        super().__init__()
        self.run = run  # on the thread that owns the connection
        self._is_open = is_open

    def is_in_transaction(self) -> bool:
        return self._is_open()

    async def perform(self, query: str, arguments: Sequence[Any]) -> tuple[Sequence[Any], int]:
        result: tuple[Sequence[Any], int] = await self.run(
            lambda connection: _fetched(connection, query, arguments)
        )
        return result

    async def executemany(self, query: str, arguments: Iterable[Sequence[Any]]) -> None:
        checked(query)
        statement = numbered(query)
        rows = [_bound(query, statement, tuple(row)) for row in arguments]
        await self.run(lambda connection: connection.executemany(statement, rows))


def numbered(query: str) -> str:
    """PostgreSQL's $1 as SQLite's ?1."""
    return replaced(query, lambda number: f"?{number}")


def _bound(query: str, statement: str, arguments: Sequence[Any]) -> Any:
    """The arguments for the numbered form of a query. A query of SQLite's own form keeps them."""
    return arguments if statement == query else bound(arguments)


def _fetched(
    connection: sqlite3.Connection, query: str, arguments: Sequence[Any]
) -> tuple[list[sqlite3.Row], int]:
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    statement = numbered(query)
    cursor.execute(statement, _bound(query, statement, arguments))
    rows: list[sqlite3.Row] = cursor.fetchall()
    return rows, cursor.rowcount
