"""Queue depth over time: the leader counts once a minute, less often if counting is slow, and writes nothing
while there are no jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any, cast

import pytest

from duetime.engine.node.loop import Loop
from duetime.engine.plan.queue_depth import KEEP, DepthSampler
from duetime.errors import StoreUnavailable
from duetime.model.codec import decode
from duetime.model.instant import MINUTE, Micros, minute_of
from duetime.model.limit import MAX_QUEUES, OTHER, Queue, QueueCounts, largest
from duetime.observer import Observers
from duetime.store import Store
from tests.unit.engine.fake_store import play, virtual_clock


class Counted:
    """A store whose queues take a while to count."""

    def __init__(self, takes: float = 0.0) -> None:
        self.takes = takes  # seconds
        self.mail = QueueCounts(pending=3, due=2, running=1)
        self.problem: Exception | None = None
        self.counted_at: list[float] = []
        self.written: list[tuple[int, dict[str, list[int]]]] = []  # minutes and counts

    async def queues(self, counted: bool = False) -> list[Queue]:
        assert counted
        self.counted_at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.takes)
        if self.problem is not None:
            raise self.problem
        return [Queue("mail", counts=self.mail), Queue("empty", counts=QueueCounts())]

    async def put_record(self, kind: str, tenant: str, key: str, value: bytes, *, expires_at: Micros) -> int:
        assert (kind, tenant) == ("depth", "")
        assert 0 <= expires_at - KEEP - minute_of(key) * MINUTE < MINUTE
        self.written.append((minute_of(key), decode(value)))
        return 1


def during(scene: Callable[[Counted], Coroutine[Any, Any, None]], leads: bool = True) -> Counted:
    """Play the scene while the loop of a sampler runs."""
    store = Counted()

    async def both() -> None:
        clock = virtual_clock()
        loop = Loop(DepthSampler(cast(Store, store), clock, lambda: leads), clock, Observers())
        running = asyncio.create_task(loop.run())
        await scene(store)
        loop.stop()
        await running

    play(both)
    return store


def intervals(store: Counted) -> list[float]:
    times = store.counted_at
    return [round(after - before) for before, after in pairwise(times)]


def test_queues_with_jobs_are_sampled_once_a_minute() -> None:
    async def scene(store: Counted) -> None:
        await asyncio.sleep(301)

    store = during(scene)
    assert intervals(store) == [60] * 5
    first = store.written[0][0]
    assert store.written == [(first + number, {"mail": [3, 2, 1]}) for number in range(6)]


@pytest.mark.parametrize(("takes", "apart"), [(0.1, 60), (0.5, 250), (3.0, 600)])
def test_samples_are_spaced_by_the_time_that_counting_takes(takes: float, apart: int) -> None:
    async def scene(store: Counted) -> None:
        store.takes = takes
        await asyncio.sleep(2_000)

    assert set(intervals(during(scene))) == {round(apart + takes)}


def test_slow_count_that_fails_is_not_repeated_soon() -> None:
    async def scene(store: Counted) -> None:
        store.takes, store.problem = 4.0, StoreUnavailable("away")
        await asyncio.sleep(700)
        store.takes, store.problem = 0.0, None
        await asyncio.sleep(600)

    store = during(scene)
    assert intervals(store)[:2] == [604, 604]
    assert [counts for _, counts in store.written] == [{"mail": [3, 2, 1]}] * 2


def test_idle_fleet_writes_one_empty_sample() -> None:
    async def scene(store: Counted) -> None:
        store.mail = QueueCounts()
        await asyncio.sleep(3_601)
        store.mail = QueueCounts(pending=1)
        await asyncio.sleep(60)
        store.mail = QueueCounts()
        await asyncio.sleep(3_600)

    store = during(scene)
    assert [counts for _, counts in store.written] == [{}, {"mail": [1, 0, 0]}, {}]
    assert len(store.counted_at) > 120


def test_only_the_leader_counts() -> None:
    async def scene(store: Counted) -> None:
        await asyncio.sleep(600)

    assert during(scene, leads=False).counted_at == []


def test_leader_writes_its_first_sample_even_if_it_is_empty() -> None:
    """The leader before it may have written one with jobs."""

    async def scene() -> None:
        store, leads = Counted(), True
        store.mail = QueueCounts()
        sampler = DepthSampler(cast(Store, store), virtual_clock(), lambda: leads)
        await sampler.run_once()
        leads = False
        await sampler.run_once()
        leads = True
        await sampler.run_once()
        assert len(store.written) == 2

    play(scene)


def test_queues_beyond_the_largest_count_together() -> None:
    """Also with one that has the name of the others."""
    queues = [Queue(f"q{number:03}", counts=QueueCounts(number, 1, 0)) for number in range(150)]
    found = largest([Queue(OTHER, counts=QueueCounts(1_000, 0, 5)), Queue("bare"), *queues])
    names = [OTHER, *(f"q{number:03}" for number in range(149, 149 - MAX_QUEUES + 1, -1))]
    assert list(found) == names
    assert found["q149"] == QueueCounts(149, 1, 0)
    assert found[OTHER] == QueueCounts(1_000 + sum(range(51)), 51, 5)
