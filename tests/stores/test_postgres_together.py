"""Statements that come at the same moment are committed together, and nobody pays for another's fault."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast
from uuid import UUID

import pytest

from duetime.errors import StoreUnavailable
from duetime.stores.postgres.line import Line
from duetime.stores.postgres.together import MOST, Together


class PaperLine:
    """Runs what it is given on itself, and notes how it was asked."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.gone = False
        self._size = 0

    async def run(self, work: Callable[[Any], Awaitable[Any]], *, atomic: bool = False) -> Any:
        self._size = 0
        if self.gone:
            raise StoreUnavailable("gone")
        try:
            return await work(self)
        finally:
            self.sizes.append(self._size)
            assert atomic is (self._size > 1) or self._size == 1

    async def fetchrow(self, statement: str, *arguments: Any) -> str:
        self._size += 1
        await asyncio.sleep(0)
        if statement == "bad":
            raise ValueError(arguments[0])
        return f"{statement} {arguments[0]}"


def asked(together: Together, number: int, statement: str = "good") -> asyncio.Task[Any]:
    return asyncio.ensure_future(together.row(UUID(int=number), statement, number))


async def test_those_who_come_at_once_share_a_transaction() -> None:
    line = PaperLine()
    together = Together(cast(Line, line))
    answers = await asyncio.gather(*(asked(together, number) for number in range(MOST + 3)))
    assert answers == [f"good {number}" for number in range(MOST + 3)]
    assert line.sizes == [MOST, 3]
    assert await asked(together, 7) == "good 7"
    assert line.sizes == [MOST, 3, 1]


async def test_one_that_fails_fails_alone() -> None:
    line = PaperLine()
    together = Together(cast(Line, line))
    answers = await asyncio.gather(
        *(asked(together, number, "bad" if number == 2 else "good") for number in range(4)), return_exceptions=True
    )
    assert [str(answer) for answer in answers] == ["good 0", "good 1", "2", "good 3"]
    assert isinstance(answers[2], ValueError)


async def test_a_server_that_is_gone_is_told_to_all_and_tried_again_by_the_next() -> None:
    line = PaperLine()
    together = Together(cast(Line, line))
    line.gone = True
    answers = await asyncio.gather(*(asked(together, number) for number in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 3
    line.gone = False
    assert await asked(together, 1) == "good 1"


async def test_a_caller_who_does_not_wait_takes_nobody_along() -> None:
    together = Together(cast(Line, PaperLine()))
    first, second = asked(together, 1), asked(together, 2)
    await asyncio.sleep(0)
    first.cancel()
    assert await second == "good 2"
    with pytest.raises(asyncio.CancelledError):
        await first
