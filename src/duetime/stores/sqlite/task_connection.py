"""The connection that a task uses: the verbs of asyncpg over SQLite, so that a task need not know which
database it writes to."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Self

from duetime.errors import InvalidInput
from duetime.stores.sqlite.session import bound

# Literals, quoted names and comments come first, so that a $1 within them is left alone.
_PLACEHOLDER = re.compile(
    r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/)|\$(\d+)""", re.DOTALL
)
_FIRST_WORD = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w+)(?:\s+TRANSACTION)?(\s+TO\b)?", re.DOTALL | re.IGNORECASE
)
_ENDS_TRANSACTION = frozenset({"BEGIN", "COMMIT", "END", "ROLLBACK"})

Statement = Callable[[sqlite3.Connection], Any]


class SqliteTaskConnection:
    """Inside one transaction from its first statement to its last. Rows are sqlite3.Row: by position and by
    name."""

    def __init__(self, run: Callable[[Statement], Awaitable[Any]], is_open: Callable[[], bool]) -> None:
        self.run = run  # on the thread that owns the connection
        self.is_in_transaction = is_open
        self._savepoints = 0

    async def execute(self, query: str, *arguments: Any) -> str:
        """Returns the same as PostgreSQL, for example "UPDATE 3"."""
        word = _checked(query)
        count: int = await self.run(lambda connection: _cursor(connection, query, arguments).rowcount)
        return f"INSERT 0 {count}" if word == "INSERT" else f"{word} {count}" if count >= 0 else word

    async def executemany(self, query: str, arguments: Iterable[Sequence[Any]]) -> None:
        _checked(query)
        rows = [tuple(row) for row in arguments]
        await self.run(lambda connection: connection.executemany(numbered(query), rows))

    async def fetch(self, query: str, *arguments: Any) -> list[sqlite3.Row]:
        _checked(query)
        rows: list[sqlite3.Row] = await self.run(
            lambda connection: _cursor(connection, query, arguments).fetchall()
        )
        return rows

    async def fetchrow(self, query: str, *arguments: Any) -> sqlite3.Row | None:
        _checked(query)
        row: sqlite3.Row | None = await self.run(
            lambda connection: _first(_cursor(connection, query, arguments))
        )
        return row

    async def fetchval(self, query: str, *arguments: Any, column: int = 0) -> Any:
        row = await self.fetchrow(query, *arguments)
        return None if row is None else row[column]

    def transaction(self) -> Savepoint:
        """A part that can be rolled back alone; the end of the task decides about the whole."""
        self._savepoints += 1
        return Savepoint(self, f"duetime_{self._savepoints}")


class Savepoint:
    """As asyncpg's: `async with connection.transaction(): ...`, or start, commit and rollback explicitly."""

    def __init__(self, connection: SqliteTaskConnection, name: str) -> None:
        self._connection = connection
        self._name = name

    async def start(self) -> None:
        await self._execute(f"SAVEPOINT {self._name}")

    async def commit(self) -> None:
        await self._execute(f"RELEASE {self._name}")

    async def rollback(self) -> None:
        await self._execute(f"ROLLBACK TO {self._name}", f"RELEASE {self._name}")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # If the whole transaction has ended, there is no part of it to roll back, and the first error says
        # why.
        if kind is None:
            await self.commit()
        elif self._connection.is_in_transaction():
            await self.rollback()

    async def _execute(self, *statements: str) -> None:
        await self._connection.run(
            lambda connection: [connection.execute(statement) for statement in statements]
        )


def numbered(query: str) -> str:
    """PostgreSQL's $1 as SQLite's ?1."""
    return _PLACEHOLDER.sub(lambda match: match[1] or f"?{match[2]}", query)


def _checked(query: str) -> str:
    """The first word of the statement, unless it would end the transaction."""
    match = _FIRST_WORD.match(query)
    word = match[1].upper() if match else ""
    if word in _ENDS_TRANSACTION and not (match and match[2]):
        raise InvalidInput(
            "query",
            f"{word} would end the transaction, which the end of the task decides: use "
            "connection.transaction()",
        )
    return word


def _cursor(connection: sqlite3.Connection, query: str, arguments: Sequence[Any]) -> sqlite3.Cursor:
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    statement = numbered(query)
    return cursor.execute(statement, arguments if statement == query else bound(arguments))


def _first(cursor: sqlite3.Cursor) -> sqlite3.Row | None:
    row: sqlite3.Row | None = cursor.fetchone()
    cursor.close()  # an open one would keep the transaction from being rolled back to a savepoint
    return row
