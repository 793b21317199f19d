"""Two services on one PostgreSQL, and an HTTP target that records every call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import httpx2
import pytest

from tests.servers.agent import Agent, Call, doubled
from tests.servers.postgres import PostgresServer
from tests.servers.service import Service

pytestmark = [pytest.mark.slow, pytest.mark.server]
SCHEDULES = 200
SECONDS = 12
CLOCK_ERROR = 0.002  # seconds; target and database read the same clock, but not at the same instant
MAX_TRANSIT = 5.0  # seconds until the target has read the last calls of a killed service, on a busy machine
_numbers = count(1)


@pytest.fixture
def store(durable_server: PostgresServer) -> str:
    return durable_server.create_database(f"service_{next(_numbers)}")


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with Agent(tmp_path) as agent:
        yield agent


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def declare(address: str, agent: Agent) -> None:
    with httpx2.Client(base_url=f"{address}/api/v1", timeout=60) as client:
        for number in range(SCHEDULES):
            target = {"type": "http", "url": f"{agent.url}/{number}"}
            made = client.post(
                "/schedules",
                json={
                    "name": f"agent {number}",
                    "when": {"cron": "* * * * * *"},
                    "target": target,
                    "missed": {"policy": "all"},  # on a busy machine a fire can be late
                },
            )
            assert made.status_code == 201, made.text


def expected_fires(begin: float, seconds: int) -> set[tuple[str, float]]:
    return {
        (f"agent {number}", float(begin + second)) for number in range(SCHEDULES) for second in range(seconds)
    }


def received_fires(calls: list[Call]) -> set[tuple[str, float]]:
    return {(call.schedule, call.fire_time) for call in calls}


def calls_of_all_fires(agent: Agent, begin: float) -> list[Call]:
    """The calls of the window. Waits for the fires of two more seconds: second calls would arrive before
    those."""
    wait_until(lambda: expected_fires(begin, SECONDS + 2) <= received_fires(agent.calls()))
    calls = window(agent.calls(), begin, begin + SECONDS)
    assert received_fires(calls) == expected_fires(begin, SECONDS)
    return calls


def window(calls: list[Call], begin: float, end: float) -> list[Call]:
    return [call for call in calls if begin <= call.fire_time < end]


def test_two_services_call_the_target_once_per_fire(store: str, agent: Agent, tmp_path: Path) -> None:
    with Service(store, tmp_path / "1.log", "--migrate") as one, Service(store, tmp_path / "2.log"):
        declare(one.address, agent)
        begin = int(time.time()) + 2
        seen = calls_of_all_fires(agent, begin)
    assert doubled(seen) == []
    assert [call for call in seen if call.late < -CLOCK_ERROR] == []
    assert {call.attempt for call in seen} == {1}


def test_kill_of_a_service_loses_no_fire_and_repeats_only_open_calls(
    store: str, agent: Agent, tmp_path: Path
) -> None:
    with Service(store, tmp_path / "1.log", "--migrate") as one, Service(store, tmp_path / "2.log") as two:
        declare(one.address, agent)
        begin = int(time.time()) + 2
        wait_until(lambda: any(call.fire_time >= begin + SECONDS / 2 for call in agent.calls()))
        one.process.kill()
        killed = time.time()
        seen = calls_of_all_fires(agent, begin)
        assert two.process.poll() is None
    for calls in doubled(seen):
        assert len({call.key for call in calls}) == 1  # so the target can recognise the repetition
        assert min(call.at for call in calls) <= killed + MAX_TRANSIT
        assert max(call.at for call in calls) >= killed
    assert [call for call in seen if call.late < -CLOCK_ERROR] == []
