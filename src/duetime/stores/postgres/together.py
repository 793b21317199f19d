"""Callers of one verb who come at the same moment, served by the same statements: they wait for the server and for the disk once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from duetime.errors import DuetimeError, StoreError
from duetime.stores.postgres.line import Line, Work

MOST = 128  # so that nobody else on this line waits for long

Subject = tuple[str, Any]  # a tenant, and an id or a name


class Asked(NamedTuple):
    subject: Subject
    values: tuple[Any, ...]
    answer: asyncio.Future[Any]


Part = Sequence[Asked]
Answers = Mapping[Subject, Any]


class Together:
    """For a verb about one job or schedule, which may be repeated. `work_of` makes of a part, no two of it about the same one, the work
    that finds their answers: who has none is told None, and an error as an answer is raised. Who comes alone waits for nobody."""

    def __init__(self, line: Line, work_of: Callable[[Part], Work[Answers]], *, atomic: bool = False) -> None:
        self._line = line
        self._work_of = work_of
        self._atomic = atomic
        self._waiting: list[Asked] = []
        self._work: asyncio.Task[None] | None = None

    async def ask(self, subject: Subject, *values: Any) -> Any:
        asked = Asked(subject, values, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._carry_out(), name="duetime-together")
        return await asked.answer

    async def _carry_out(self) -> None:
        while self._waiting:
            part = self._next_part()
            try:
                await self._try(part)
            except BaseException as problem:
                _refuse(part, problem)
                if not isinstance(problem, Exception):
                    _refuse(self._waiting, problem)
                    raise

    def _next_part(self) -> list[Asked]:
        chosen: dict[Subject, Asked] = {}
        rest: list[Asked] = []
        for asked in self._waiting:
            if len(chosen) < MOST and asked.subject not in chosen:
                chosen[asked.subject] = asked
            else:
                rest.append(asked)
        self._waiting = rest
        # In one order, so that two parts do not stand in each other's way.
        return sorted(chosen.values(), key=lambda asked: asked.subject)

    async def _try(self, part: Part) -> None:
        try:
            answers = await self._line.run(self._work_of(part), atomic=self._atomic)
        except Exception as problem:
            if len(part) == 1 or not _concerns_one(problem):
                raise
            for asked in part:  # one of them is to blame, and only that one shall hear of it
                await self._alone(asked)
            return
        for asked in part:
            _answer(asked, answers.get(asked.subject))

    async def _alone(self, asked: Asked) -> None:
        try:
            await self._try([asked])
        except Exception as problem:
            _refuse([asked], problem)


def columns(part: Part) -> list[Sequence[Any]]:
    """Tenants, ids or names, and the values, each as an array of the server."""
    return [*zip(*((*asked.subject, *asked.values) for asked in part), strict=True)]


def by_statement(statement: str, key: str, alone: str | None = None) -> Callable[[Part], Work[Answers]]:
    """Work that is one statement about all of them; `key` is the column beside the tenant that tells its rows apart. `alone` asks the same
    about one: where the server plans anew each time, that is a tenth of the price."""

    def work_of(part: Part) -> Work[Answers]:
        single = alone is not None and len(part) == 1
        text, arguments = (alone, part[0].subject) if single else (statement, columns(part))

        async def work(connection: Any) -> Answers:
            return {(row["tenant"], row[key]): row for row in await connection.fetch(text, *arguments)}

        return work

    return work_of


def _concerns_one(problem: Exception) -> bool:
    """A statement that was refused as such; what else goes wrong with a store goes wrong for all."""
    return type(problem) is StoreError or not isinstance(problem, DuetimeError)


def _answer(asked: Asked, answer: Any) -> None:
    if asked.answer.done():
        return
    if isinstance(answer, Exception):
        asked.answer.set_exception(answer)
    else:
        asked.answer.set_result(answer)


def _refuse(part: Part, problem: BaseException) -> None:
    for asked in part:
        _answer(asked, problem if isinstance(problem, Exception) else StoreError("the store was closed meanwhile"))
