"""The transactions of simulated tasks: their writes are committed together with the job's success, or not at
all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from duetime.model.settle import Settlement

Write = tuple[Any, ...]
Commit = Callable[[Settlement, tuple[Write, ...]], Awaitable[bool]]


class TaskWrites:
    """The connection of a task: accepts any statement and keeps it for the commit."""

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

    async def abandon(self) -> bool:
        self.connection.written.clear()
        return True
