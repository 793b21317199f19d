"""Watches the transaction in which a test submits jobs with `connection=`: a rollback takes them along.

Libraries are recognised by their modules and attributes: none is imported here."""

from __future__ import annotations

import sys
from typing import Any


class SqlalchemyWatch:
    """The first end of the transaction counts, or of a savepoint around the submission."""

    def __init__(self, connection: Any) -> None:
        self._savepoints: set[str] = set()
        self._ended = self.rolled_back = False
        nested = connection.get_nested_transaction()
        while nested is not None:
            self._savepoints.add(nested._savepoint)
            nested = nested._previous_nested
        for event in ("commit", "rollback", "rollback_savepoint"):
            sys.modules["sqlalchemy"].event.listen(connection, event, getattr(self, f"_{event}"))

    def _commit(self, _connection: Any) -> None:
        self._ended = True

    def _rollback(self, _connection: Any) -> None:
        self.rolled_back = self.rolled_back or not self._ended
        self._ended = True

    def _rollback_savepoint(self, connection: Any, name: str, _context: Any) -> None:
        if name in self._savepoints:
            self._rollback(connection)


class DjangoWatch:
    """Django forgets what it would call at the commit when it rolls back the transaction or a savepoint."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._committed = False
        connection.on_commit(self._commit)

    def _commit(self) -> None:
        self._committed = True

    @property
    def rolled_back(self) -> bool:
        waiting = [entry[1] for entry in self._connection.run_on_commit]
        return not self._committed and self._commit not in waiting


def is_async(connection: Any) -> bool:
    return type(connection).__module__.startswith("sqlalchemy.ext.asyncio")


async def watch_async(connection: Any) -> SqlalchemyWatch:
    """Of an AsyncConnection or AsyncSession."""
    inner = await connection.connection() if hasattr(connection, "flush") else connection
    return SqlalchemyWatch(inner.sync_connection)


def watch(connection: Any) -> SqlalchemyWatch | DjangoWatch | None:
    """None: of other libraries the kit sees no rollback."""
    if isinstance(connection, SqlalchemyWatch | DjangoWatch):
        return connection
    if hasattr(connection, "run_on_commit"):
        return DjangoWatch(connection)
    if not type(connection).__module__.startswith("sqlalchemy."):
        return None
    return SqlalchemyWatch(connection.connection() if hasattr(connection, "flush") else connection)
