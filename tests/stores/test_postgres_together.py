"""Callers who come at the same moment are served by the same statements, and nobody pays for another's fault."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import asyncpg
import pytest

from duetime.errors import Conflict, StoreError, StoreUnavailable
from duetime.stores.postgres import PostgresStore
from duetime.stores.postgres.line import Line
from duetime.stores.postgres.together import MOST, Together, by_statement, columns
from duetime.testing.conformance.drafts import put, schedule


class PaperLine:
    """Runs what it is given on itself, and notes how it was asked."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.atomic: set[bool] = set()
        self.gone = False

    async def run(self, work: Callable[[Any], Awaitable[Any]], *, atomic: bool = False) -> Any:
        self.atomic.add(atomic)
        if self.gone:
            raise StoreUnavailable("gone")
        return await work(self)

    async def fetch(self, statement: str, tenants: Sequence[str], ids: Sequence[int], *values: Sequence[Any]) -> list[dict[str, Any]]:
        self.sizes.append(len(ids))
        await asyncio.sleep(0)
        assert list(ids) == sorted(set(ids))
        if 13 in ids:
            raise StoreError("a statement was refused")
        rows = zip(tenants, ids, *values, strict=True)
        return [{"tenant": tenant, "id": number, "told": f"{statement} {rest}"} for tenant, number, *rest in rows if number != 404]


def together_on(line: PaperLine, **options: Any) -> Together:
    return Together(cast(Line, line), by_statement("good", "id"), **options)


def asked(together: Together, number: int, *values: Any) -> asyncio.Task[Any]:
    return asyncio.ensure_future(together.ask(("t", number), *values))


async def test_those_who_come_at_once_share_a_statement() -> None:
    line = PaperLine()
    together = together_on(line, atomic=True)
    numbers = [number + 1_000 for number in range(MOST + 3)]
    answers = await asyncio.gather(*(asked(together, number, number, None) for number in reversed(numbers)))
    assert [answer["told"] for answer in answers] == [f"good [{number}, None]" for number in reversed(numbers)]
    assert line.sizes == [MOST, 3]
    assert (await asked(together, 7))["told"] == "good []"
    assert line.sizes == [MOST, 3, 1]
    assert line.atomic == {True}


async def test_two_about_the_same_go_one_after_the_other() -> None:
    line = PaperLine()
    together = together_on(line)
    answers = await asyncio.gather(*(asked(together, number, at) for at, number in enumerate([5, 5, 6, 5])))
    assert [answer["told"] for answer in answers] == ["good [0]", "good [1]", "good [2]", "good [3]"]
    assert line.sizes == [2, 1, 1]


async def test_one_that_fails_fails_alone_and_one_without_a_row_is_told_none() -> None:
    together = together_on(PaperLine())
    answers: list[Any] = await asyncio.gather(*(asked(together, number) for number in (1, 13, 404, 2)), return_exceptions=True)
    assert [answer and answer["told"] for answer in (answers[0], *answers[2:])] == ["good []", None, "good []"]
    assert isinstance(answers[1], StoreError)


async def test_an_error_as_an_answer_is_raised_to_whom_it_concerns() -> None:
    def work_of(part: Any) -> Any:
        async def work(_: Any) -> dict[Any, Any]:
            return {asked.subject: Conflict("taken") if asked.subject[1] == 2 else columns(part)[1] for asked in part}

        return work

    together = Together(cast(Line, PaperLine()), work_of)
    answers = await asyncio.gather(*(asked(together, number) for number in (3, 2, 1)), return_exceptions=True)
    assert (answers[0], answers[2]) == ((1, 2, 3), (1, 2, 3))
    assert isinstance(answers[1], Conflict)


async def test_a_server_that_is_gone_is_told_to_all_and_tried_again_by_the_next() -> None:
    line = PaperLine()
    together = together_on(line)
    line.gone = True
    answers = await asyncio.gather(*(asked(together, number) for number in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 3
    assert line.sizes == []
    line.gone = False
    assert (await asked(together, 1))["told"] == "good []"


async def test_a_caller_who_does_not_wait_takes_nobody_along() -> None:
    together = together_on(PaperLine())
    first, second = asked(together, 1), asked(together, 2)
    await asyncio.sleep(0)
    first.cancel()
    assert (await second)["told"] == "good []"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_schedules_that_are_made_at_once_are_committed_together(postgres_database: str) -> None:
    store = PostgresStore.from_url(postgres_database)
    await store.open()
    now = await store.time()
    await asyncio.gather(*(put(store, schedule(f"schedule {number}"), now) for number in range(50)))
    await store.close()
    connection = await asyncpg.connect(postgres_database)
    made, transactions = await connection.fetchrow("SELECT count(*), count(DISTINCT xmin::text) FROM duetime.schedules")
    await connection.close()
    assert made == 50
    assert transactions < 10
