"""The connection that a task uses: the verbs of asyncpg over other databases, so that a task need not know
which database it writes to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from duetime.errors import InvalidInput

# Literals, quoted names and comments come first, so that a $1 within them is left alone.
_PLACEHOLDER = re.compile(
    r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/)|\$(\d+)""", re.DOTALL
)
_FIRST_WORD = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(\w+)(?:\s+TRANSACTION)?(\s+TO\b)?", re.DOTALL | re.IGNORECASE
)
_ENDS_TRANSACTION = frozenset({"BEGIN", "COMMIT", "END", "ROLLBACK"})


class SqlTaskConnection:
    """Inside one transaction from its first statement to its last. Rows are read by position and by name."""

    def __init__(self) -> None:
        self._savepoints = 0

    def is_in_transaction(self) -> bool:
        raise NotImplementedError

    async def perform(self, query: str, arguments: Sequence[Any]) -> tuple[Sequence[Any], int]:
        """The rows of a statement, and how many it changed, negative where that means nothing."""
        raise NotImplementedError

    async def execute(self, query: str, *arguments: Any) -> str:
        """Returns the same as PostgreSQL, for example "UPDATE 3"."""
        word = checked(query)
        _, count = await self.perform(query, arguments)
        return f"INSERT 0 {count}" if word == "INSERT" else f"{word} {count}" if count >= 0 else word

    async def executemany(self, query: str, arguments: Iterable[Sequence[Any]]) -> None:
        checked(query)
        for row in arguments:
            await self.perform(query, tuple(row))

    async def fetch(self, query: str, *arguments: Any) -> list[Any]:
        checked(query)
        return list((await self.perform(query, arguments))[0])

    async def fetchrow(self, query: str, *arguments: Any) -> Any:
        checked(query)
        rows, _ = await self.perform(query, arguments)
        return rows[0] if rows else None

    async def fetchval(self, query: str, *arguments: Any, column: int = 0) -> Any:
        row = await self.fetchrow(query, *arguments)
        return None if row is None else row[column]

    def transaction(self) -> Savepoint:
        """A part that can be rolled back alone; the end of the task decides about the whole."""
        self._savepoints += 1
        return Savepoint(self, f"duetime_{self._savepoints}")


class Savepoint:
    """As asyncpg's: `async with connection.transaction(): ...`, or start, commit and rollback explicitly."""

    def __init__(self, connection: SqlTaskConnection, name: str) -> None:
        self._connection = connection
        self._name = name

    async def start(self) -> None:
        await self._execute(f"SAVEPOINT {self._name}")

    async def commit(self) -> None:
        await self._execute(f"RELEASE SAVEPOINT {self._name}")

    async def rollback(self) -> None:
        await self._execute(f"ROLLBACK TO SAVEPOINT {self._name}", f"RELEASE SAVEPOINT {self._name}")

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
        for statement in statements:
            await self._connection.perform(statement, ())


def replaced(query: str, placeholder: Callable[[int], str]) -> str:
    """With another text for each of PostgreSQL's $1."""
    return _PLACEHOLDER.sub(lambda match: match[1] or placeholder(int(match[2])), query)


def checked(query: str) -> str:
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
