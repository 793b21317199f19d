"""Limits per key across several processes, also while workers are killed."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict

import pytest

import duetime as dt
from tests.faults.fleet import TIMEOUT
from tests.faults.tool_fleet import ToolFleet

pytestmark = pytest.mark.slow

KEYS = 10
MAX_RUNNING = 2
UNSETTLED = 50  # jobs of a killed worker that had ended, and whose end was not stored yet


def most_running(tools: ToolFleet, killed: dict[int, float]) -> int:
    """The highest number of running jobs of one key. Jobs of a killed worker ended when it was killed; a
    start recorded after that is ignored."""
    changes: dict[int, list[tuple[float, int]]] = defaultdict(list)
    ended = {(event["job"], event["attempt"]): event["at"] for event in tools.seen("end")}
    for event in tools.seen("start"):
        end = ended.get((event["job"], event["attempt"]), killed.get(event["pid"]))
        assert end is not None, f"{event} did not end, and its worker was not killed"
        if event["at"] < end:
            changes[event["key"]] += [(event["at"], 1), (end, -1)]
    return max(_highest(each) for each in changes.values())


def _highest(changes: list[tuple[float, int]]) -> int:
    running = highest = 0
    for _, change in sorted(changes):
        running += change
        highest = max(highest, running)
    return highest


@pytest.mark.parametrize("kills", [0, 2])
async def test_limit_per_key_holds_across_three_processes(tools: ToolFleet, kills: int) -> None:
    count = 3_000 if tools.on_postgres else 1_000
    for _ in range(3):
        tools.spawn()
    await tools.joined(3)
    jobs = await tools.app.submit_many(
        [dt.NewJob("keyed", {"key": number % KEYS}) for number in range(count)]
    )
    killed: dict[int, float] = {}
    for victim in tools.workers[:kills]:
        await tools.recorded("end", 150 * (len(killed) + 1))
        # Taken before the kill: others may take over before `wait` returns.
        killed[victim.pid] = time.time()
        victim.kill()
        await asyncio.to_thread(victim.wait, TIMEOUT)
    await tools.until(tools.queues_are_empty, "the jobs to end", timeout=150.0)
    assert most_running(tools, killed) == MAX_RUNNING
    ends: dict[str, list[int]] = defaultdict(list)
    for event in tools.seen("end"):
        ends[event["job"]].append(event["pid"])
    assert len(ends) == count == len(jobs)
    again = [pids for pids in ends.values() if len(pids) > 1]
    assert all(pid in killed for pids in again for pid in pids[:-1]), "a job ended twice without a kill"
    assert len(again) <= kills * UNSETTLED
