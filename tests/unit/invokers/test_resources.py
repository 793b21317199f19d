"""Resources: opened once at first use, shared, closed in reverse order; whatever kind of function opens
them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest

from duetime.errors import InvalidInput, UnknownOption
from duetime.invokers.resources import ResourceBox, Use, check_resource
from duetime.invokers.task import Signature
from duetime.model.codec import encode
from tests.unit.invokers.attempts import context, handler, invoke

events: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    events.clear()


@check_resource
async def pool() -> AsyncIterator[str]:
    events.append("pool opened")
    yield "pool"
    events.append("pool closed")


@check_resource
def client(source: Annotated[str, Use(pool)]) -> Iterator[str]:
    events.append(f"client of {source} opened on {threading.current_thread().name.rpartition('-')[0]}")
    yield f"client of {source}"
    events.append("client closed")


@check_resource
async def setting() -> int:
    events.append("setting read")
    return 3


def number() -> int:
    return 4


async def work(a: int, client: Annotated[str, Use(client)], n: Annotated[int, Use(setting)]) -> list[Any]:
    return [a, client, n]


async def test_resources_are_filled_in_and_closed_in_reverse() -> None:
    box = ResourceBox()
    for _ in range(2):
        assert await invoke(work, {"a": 1}, resources=box) == [1, "client of pool", 3]
    await box.close()
    assert events == [
        "pool opened",
        "client of pool opened on duetime-resource",
        "setting read",
        "client closed",
        "pool closed",
    ]


async def test_plain_functions_get_them_too() -> None:
    def plain(a: int, p: Annotated[str, Use(pool)], n: Annotated[int, Use(number)]) -> list[Any]:
        return [a, p, n]

    box = ResourceBox()
    assert await invoke(plain, {"a": 1}, resources=box) == [1, "pool", 4]
    await box.close()
    assert events == ["pool opened", "pool closed"]


async def test_simultaneous_uses_open_one_resource() -> None:
    box = ResourceBox()
    handle = handler(work, resources=box)
    await asyncio.gather(*(handle.invoke(context(), encode({"a": 1})) for _ in range(5)))
    assert events.count("pool opened") == 1
    await box.close()


async def test_resource_is_not_an_argument_of_the_payload() -> None:
    signature = Signature("work", work)
    assert signature.names == signature.required == {"a"}
    with pytest.raises(UnknownOption, match="client"):
        signature.encode({"a": 1, "client": "mine"})


async def test_an_opening_that_failed_is_tried_again() -> None:
    attempts: list[int] = []

    async def shaky() -> str:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("not yet")
        return "there"

    async def needs(it: Annotated[str, Use(shaky)]) -> str:
        return it

    box = ResourceBox()
    with pytest.raises(OSError, match="not yet"):
        await invoke(needs, resources=box)
    assert await invoke(needs, resources=box) == "there"


async def test_an_attempt_that_is_cancelled_does_not_take_it_from_the_others() -> None:
    opening, go = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        opening.set()
        await go.wait()
        return "open"

    async def needs(it: Annotated[str, Use(slow)]) -> str:
        return it

    handle = handler(needs, resources=ResourceBox())
    first, second = (asyncio.ensure_future(handle.invoke(context(), b"{}")) for _ in range(2))
    await opening.wait()
    first.cancel()
    await asyncio.wait([first])
    go.set()
    assert await second == "open"
    assert first.cancelled()


async def test_resource_that_fails_to_close_does_not_keep_the_others_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def bad() -> AsyncIterator[int]:
        yield 1
        raise OSError("stuck")

    async def twice() -> AsyncIterator[int]:
        yield 1
        yield 2

    box = ResourceBox()
    for resource in (pool, bad, twice):
        await box.get(resource)
    await box.close()
    assert events[-1] == "pool closed"
    assert "bad failed: OSError('stuck')" in caplog.text
    assert "yielded twice" in caplog.text


async def test_circles_are_refused_and_no_resource_waits_forever() -> None:
    scope: dict[str, Any] = {}
    exec(
        "from typing import Annotated\nfrom duetime.invokers.resources import Use\n"
        "async def one(other: 'Annotated[int, Use(two)]'): ...\nasync def two(other: 'Annotated[int, Use(one)]'): ...",
        scope,
    )
    box = ResourceBox()
    for name in ("one", "two"):
        with pytest.raises(InvalidInput, match=r"one needs two needs one|two needs one needs two"):
            await box.get(scope[name])


async def test_a_stand_in_takes_its_place() -> None:
    box = ResourceBox({pool: "fake", setting: 9})
    assert await invoke(work, {"a": 1}, resources=box) == [1, "client of fake", 9]
    await box.close()
    assert "pool opened" not in events


def test_function_that_cannot_open_a_resource_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="needs 'address'"):
        check_resource(lambda address: address)
    with pytest.raises(InvalidInput, match="not a function"):
        Use("pool")  # type: ignore[arg-type]  # that is the case under test
