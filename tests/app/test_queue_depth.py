"""Queue depth over time, as the library reads it from the samples in the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import duetime as dt
from duetime import testing
from duetime.engine.plan.queue_depth import KIND, DepthSampler
from duetime.model.codec import encode
from duetime.model.instant import MINUTE, Micros, minute_key, to_micros
from duetime.model.views import QueueDepths
from tests.app.conftest import MakeApp


async def add_samples(app: dt.App, now: Micros, samples: Mapping[int, Mapping[str, Sequence[int]]]) -> None:
    """`samples`: how many minutes ago, and the counts by queue."""
    for ago, counts in samples.items():
        key = minute_key(now // MINUTE - ago)
        await app.store.put_record(KIND, "", key, encode(counts), expires_at=now + 60 * MINUTE)


def by_age(
    depths: QueueDepths, name: str, now: Micros, step: Micros = MINUTE, count: str = "pending"
) -> dict[int, int | None]:
    """How many steps ago. A test may take place in two minutes, so there may be a later one."""
    [values] = [getattr(queue, count) for queue in depths.queues if queue.name == name]
    ages = [now // step - to_micros(at) // step for at in depths.times]
    return dict(zip(ages, values, strict=True))


async def test_sample_has_the_jobs_of_all_tenants(app: dt.App) -> None:
    await app.open()
    now = await app.now()
    await app.submit("work", queue="mail", delay="1h")
    await app.submit("work", queue="mail")
    await app.for_tenant("acme").submit("work", queue="reports")
    await DepthSampler(app.store, app.clock, lambda: True).run_once()
    depths = await app.queues.depth()
    assert [queue.name for queue in depths.queues] == ["mail", "reports"]
    mail, reports = depths.queues
    assert (mail.pending[-1], mail.due[-1], mail.running[-1]) == (2, 1, 0)
    assert reports.pending[-1] == 1
    assert by_age(depths, "mail", now)[1] is None
    assert len(depths.times) == 61


async def test_sample_holds_until_the_next_one(memory_app: dt.App) -> None:
    await memory_app.open()
    now = await memory_app.now()
    samples = {40: {"a": (1, 0, 0)}, 30: {"a": (2, 0, 0), "b": (9, 0, 0)}, 20: {}, 5: {"a": (4, 0, 0)}}
    await add_samples(memory_app, now, samples)
    depths = await memory_app.queues.depth()
    assert [queue.name for queue in depths.queues] == ["b", "a"]
    a, b = by_age(depths, "a", now), by_age(depths, "b", now)
    assert [a[ago] for ago in (0, 5, 6, 20, 21, 30, 31, 40)] == [4, 4, 0, 0, 2, 2, 1, 1]
    assert [b[ago] for ago in (0, 20, 21, 30, 31)] == [0, 0, 9, 9, 0]
    assert {a[ago] for ago in range(41, 60)} == {None}


async def test_old_sample_with_jobs_does_not_hold(memory_app: dt.App) -> None:
    """No leader has counted since."""
    await memory_app.open()
    now = await memory_app.now()
    await add_samples(memory_app, now, {65: {"a": (7, 0, 0)}, 40: {"a": (1, 0, 0)}})
    values = by_age(await memory_app.queues.depth(), "a", now)
    assert [values[ago] for ago in (59, 54, 53, 41, 40, 29, 28, 0)] == [7, 7, None, None, 1, 1, None, None]


async def test_longer_steps_show_the_last_sample_of_each(memory_app: dt.App) -> None:
    await memory_app.open()
    now = await memory_app.now()
    hour = 60 * MINUTE
    samples = {now % hour // MINUTE + ago: {"a": (ago, 0, 0)} for ago in (1, 2, 61)}
    await add_samples(memory_app, now, samples)
    values = by_age(await memory_app.queues.depth("3h", "1h"), "a", now, hour)
    assert (values[1], values[2]) == (1, 61)


async def test_unusable_times_are_refused(memory_app: dt.App) -> None:
    await memory_app.open()
    with pytest.raises(dt.InvalidInput, match="since: must be at most 24h"):
        await memory_app.queues.depth("25h")
    with pytest.raises(dt.InvalidInput, match="step: must be whole minutes"):
        await memory_app.queues.depth(step="90s")


async def test_leader_of_a_fleet_samples(memory_app: dt.App) -> None:
    async with testing.virtual(memory_app) as time:
        await memory_app.submit("unknown", queue="mail", delay="1d")
        await time.advance("10m")
        [mail] = (await memory_app.queues.depth()).queues
        assert (mail.name, mail.pending[-1]) == ("mail", 1)


def test_depth_without_an_event_loop(make_app: MakeApp) -> None:
    depths: Any = make_app().sync.queues.depth("5m")
    assert (len(depths.times), depths.queues) == (6, [])
