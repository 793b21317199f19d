"""Statements of callers that come at the same moment, in one transaction: they wait for the disk once."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple
from uuid import UUID

from duetime.errors import StoreError
from duetime.stores.postgres.line import Line

MOST = 32


class _Asked(NamedTuple):
    job: UUID
    statement: str
    arguments: tuple[Any, ...]
    answer: asyncio.Future[Any]


class Together:
    """For statements about one job each, which may be repeated. A caller who comes alone waits for nobody."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._waiting: list[_Asked] = []
        self._work: asyncio.Task[None] | None = None

    async def row(self, job: UUID, statement: str, *arguments: Any) -> Any:
        asked = _Asked(job, statement, arguments, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._carry_out(), name="duetime-together")
        return await asked.answer

    async def _carry_out(self) -> None:
        while self._waiting:
            # In one order, so that two batches do not stand in each other's way.
            batch, self._waiting = sorted(self._waiting[:MOST], key=lambda asked: asked.job), self._waiting[MOST:]
            try:
                await self._try(batch)
            except BaseException as problem:
                _refuse(batch, problem)
                if not isinstance(problem, Exception):
                    _refuse(self._waiting, problem)
                    raise

    async def _try(self, batch: list[_Asked]) -> None:
        try:
            answers = await self._line.run(lambda connection: _all(connection, batch), atomic=len(batch) > 1)
        except StoreError:
            raise
        except Exception:
            if len(batch) == 1:
                raise
            for asked in batch:  # one of them is to blame, and only that one shall hear of it
                await self._alone(asked)
            return
        for asked, answer in zip(batch, answers, strict=True):
            if not asked.answer.done():
                asked.answer.set_result(answer)

    async def _alone(self, asked: _Asked) -> None:
        try:
            await self._try([asked])
        except Exception as problem:
            _refuse([asked], problem)


async def _all(connection: Any, batch: list[_Asked]) -> list[Any]:
    return [await connection.fetchrow(asked.statement, *asked.arguments) for asked in batch]


def _refuse(batch: list[_Asked], problem: BaseException) -> None:
    for asked in batch:
        if not asked.answer.done():
            asked.answer.set_exception(problem if isinstance(problem, Exception) else StoreError("the store was closed meanwhile"))
