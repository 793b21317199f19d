"""What simulated tasks write in a transaction of their own: in the store's database, with their job's completion or not at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from duetime.model.settle import Settlement

Write = tuple[Any, ...]
Commit = Callable[[Settlement, tuple[Write, ...]], Awaitable[bool]]


class TaskWrites:
    """The connection a task is given: it takes any statement, and keeps its arguments for the commit."""

    def __init__(self) -> None:
        self.written: list[Write] = []

    async def execute(self, query: str, *arguments: Any) -> str:
        self.written.append((query, *arguments))
        return "OK"


class RemoteTransaction:
    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self.connection = TaskWrites()

    async def finish(self, settlement: Settlement) -> bool:
        return await self._commit(settlement, tuple(self.connection.written))

    async def abandon(self) -> None:
        self.connection.written.clear()
