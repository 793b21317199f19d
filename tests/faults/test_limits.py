"""Limits per key over several processes, seen from outside: never more at once than may, also while workers are killed (I19)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from tests.faults.test_tools import ToolFleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

KEYS = 10
AT_ONCE = 2


@pytest.fixture
async def tools(store_url: str, tmp_path: Path) -> AsyncIterator[ToolFleet]:
    async with ToolFleet(store_url, tmp_path) as made:
        yield made


def at_once(tools: ToolFleet, killed: dict[int, float]) -> int:
    """Of one key, at most. What was at work in a worker that was killed ended then, and what it still began after that at once."""
    changes: dict[int, list[tuple[float, int]]] = defaultdict(list)
    ended = {(event["job"], event["attempt"]): event["at"] for event in tools.seen("end")}
    for event in tools.seen("start"):
        end = ended.get((event["job"], event["attempt"]), killed.get(event["pid"]))
        assert end is not None, f"{event} did not end, and nobody killed it"
        if event["at"] < end:
            changes[event["key"]] += [(event["at"], 1), (end, -1)]
    return max(_most(each) for each in changes.values())


def _most(changes: list[tuple[float, int]]) -> int:
    running = most = 0
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    return most


async def all_done(tools: ToolFleet) -> bool:
    return all(queue.pending == queue.running == 0 for queue in await tools.app.store.count_jobs())


@pytest.mark.parametrize("kills", [0, 2])
async def test_never_more_of_a_key_than_may_over_three_processes(tools: ToolFleet, kills: int) -> None:
    count = 3_000 if tools.on_postgres else 1_000
    for _ in range(3):
        tools.spawn()
    await tools.joined(3)
    jobs = await tools.app.submit_many([dt.NewJob("keyed", {"key": number % KEYS}) for number in range(count)])
    killed: dict[int, float] = {}
    for victim in tools.workers[:kills]:
        await tools.until(lambda: _some_more(tools, len(killed) + 1), "some jobs to end")
        # Before, not after: others may have taken over by the time we hear that it is dead.
        killed[victim.pid] = time.time()
        victim.kill()
        await asyncio.to_thread(victim.wait)
    await tools.until(lambda: all_done(tools), "the jobs to end", patience=150.0)
    assert at_once(tools, killed) == AT_ONCE
    ends: Counter[Any] = Counter(event["job"] for event in tools.seen("end"))
    assert len(ends) == count == len(jobs)
    assert kills or set(ends.values()) == {1}


async def _some_more(tools: ToolFleet, times: int) -> bool:
    return len(tools.seen("end")) >= 150 * times
