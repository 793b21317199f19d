"""Limits: the limit key of a job, and limits that hold across nodes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

import duetime as dt
from duetime.engine.submit.build import limit_key
from tests.app.conftest import MakeApp
from tests.app.waiting import eventually


async def key_of(job: dt.JobHandle) -> str | None:
    return (await job.refresh()).record.limit_key


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (dt.Limit(2), "call"),
        (dt.Limit(2, per="customer"), 'call/"c1"'),
        (dt.Limit(rate="10/1m", per="region"), 'call/"eu"'),
        (dt.Limit(per="owner"), 'call/"ann"'),
        (dt.Limit(1, per="tenant"), 'call/"default"'),
        (None, None),
    ],
)
async def test_submit_derives_the_limit_key(
    app: dt.App, limit: dt.Limit | None, expected: str | None
) -> None:
    @app.task("call", limit=limit)
    async def call(customer: str, region: str = "eu") -> None: ...

    await app.open()
    alone = await call.submit(customer="c1", owner="ann", delay="1h")
    [in_bulk] = await app.submit_many([dt.NewJob("call", {"customer": "c1"}, owner="ann", delay="1h")])
    assert [await key_of(alone), await key_of(in_bulk)] == [expected, expected]


async def test_fires_of_a_schedule_have_the_limit_key(app: dt.App) -> None:
    @app.task("call", limit=dt.Limit(2, per="customer"))
    async def call(customer: str) -> None: ...

    async with app.running(roles=["planner"]):
        await app.schedule("often", call, dt.Every("1s"), payload={"customer": "c1"})
        declared_again = await app.schedule("often", call, dt.Every("1s"), payload={"customer": "c1"})
        assert declared_again.version == 1
        triggered = await app.trigger("often")

        async def fired() -> bool:
            return len(await app.jobs(schedule="often")) > 2

        await eventually(fired)
        keys = {job.record.limit_key for job in await app.jobs(schedule="often")}
        assert await key_of(triggered) == 'call/"c1"'
    assert keys == {'call/"c1"'}


async def test_never_more_than_the_limit_per_key_across_nodes(make_app: MakeApp) -> None:
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    together: list[int] = []

    def register(app: dt.App) -> None:
        @app.task("call", limit=dt.Limit(2, per="customer"))
        async def call(customer: str) -> None:
            running[customer] += 1
            most[customer] = max(most[customer], running[customer])
            together.append(running.total())
            await asyncio.sleep(0.005)
            running[customer] -= 1

    first, second = make_app(), make_app()
    register(first)
    register(second)
    async with first.running(), second.running():
        jobs = await first.submit_many(dt.NewJob("call", {"customer": f"c{n % 4}"}) for n in range(60))
        for job in jobs:
            await job.wait("60s")
    assert set(most.values()) <= {1, 2}
    assert max(most.values()) == 2
    assert max(together) > 2, "customers do not wait for each other"


async def test_rate_is_never_exceeded(app: dt.App) -> None:
    @app.task("call", limit=dt.Limit(rate="3/1h"))
    async def call() -> None: ...

    async with app.running():
        jobs = await app.submit_many(dt.NewJob("call") for _ in range(5))

        async def three_are_done() -> bool:
            return len(await app.jobs(state="succeeded")) == 3

        await eventually(three_are_done)
        free = await app.submit("other", delay="1h")
        assert len(await app.jobs(state="pending")) == 3
    assert len(jobs) == 5
    assert free.created


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (2, "not a Limit"),
        ("2", "not a Limit"),
        (dt.Limit(2, per="custmer"), r"limit\.per.*did you mean 'customer'"),
    ],
)
def test_a_wrong_limit_is_refused_at_once(memory_app: dt.App, limit: Any, text: str) -> None:
    def call(customer: str) -> None: ...

    with pytest.raises(dt.InvalidInput, match=text):
        memory_app.task("call", limit=limit)(call)
    assert memory_app.tasks == {}


def test_limit_keys_distinguish_values() -> None:
    limit = dt.Limit(2, per="key")
    values: list[Any] = [1, "1", None, 1.5, {"b": 1, "a": 2}, {"a": 2, "b": 1}, ["x"], "x" * 300, "y" * 300]
    keys = [limit_key("t", limit, {"key": value}, None, "default") for value in values]
    assert keys[4] == keys[5]
    assert len(set(keys)) == len(values) - 1
    assert max(map(len, keys)) < 210


def test_argument_called_tenant_takes_precedence_over_the_tenant() -> None:
    limit = dt.Limit(2, per="tenant")
    assert limit_key("t", limit, {"tenant": "theirs"}, None, "ours") == 't/"theirs"'
    assert limit_key("t", limit, {}, None, "ours") == 't/"ours"'
