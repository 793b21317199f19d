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
        rows = [tuple(row) for row in arguments]
        await self.run(lambda connection: connection.executemany(numbered(query), rows))


def numbered(query: str) -> str:
    """PostgreSQL's $1 as SQLite's ?1."""
    return replaced(query, lambda number: f"?{number}")


def _fetched(
    connection: sqlite3.Connection, query: str, arguments: Sequence[Any]
) -> tuple[list[sqlite3.Row], int]:
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    statement = numbered(query)
    cursor.execute(statement, arguments if statement == query else bound(arguments))
    rows: list[sqlite3.Row] = cursor.fetchall()
    return rows, cursor.rowcount
