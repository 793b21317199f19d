"""Two services on one PostgreSQL and an agent outside that writes down every call."""

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

pytestmark = [pytest.mark.slow, pytest.mark.postgres]
SCHEDULES = 200
SECONDS = 12
CLOCKS = 0.002  # the agent and the database read the same clock, not at the same instant
ON_ITS_WAY = 2.0  # what a process had sent when it died is read by the agent when its turn comes
_numbers = count(1)


@pytest.fixture
def store(durable_server: PostgresServer) -> str:
    return durable_server.create_database(f"service_{next(_numbers)}")


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with Agent(tmp_path) as agent:
        yield agent


def wait(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def declare(address: str, agent: Agent) -> None:
    with httpx2.Client(base_url=f"{address}/api/v1") as client:
        for number in range(SCHEDULES):
            target = {"type": "http", "url": f"{agent.url}/{number}"}
            made = client.post("/schedules", json={"name": f"agent {number}", "when": {"cron": "* * * * * *"}, "target": target})
            assert made.status_code == 201, made.text


def until_all_came(agent: Agent, begin: float) -> list[Call]:
    """The calls of the window, once there is one of every fire; and those that came in the moment after."""
    wanted = {(f"agent {number}", float(begin + second)) for number in range(SCHEDULES) for second in range(SECONDS)}
    wait(lambda: time.time() > begin + SECONDS)
    wait(lambda: wanted <= {(call.schedule, call.fire_time) for call in agent.calls()})
    time.sleep(2)  # a double would come now
    seen = window(agent.calls(), begin, begin + SECONDS)
    assert {(call.schedule, call.fire_time) for call in seen} == wanted
    return seen


def window(calls: list[Call], begin: float, end: float) -> list[Call]:
    return [call for call in calls if begin <= call.fire_time < end]


def test_every_fire_reaches_the_agent_once_whichever_service_calls_it(store: str, agent: Agent, tmp_path: Path) -> None:
    with Service(store, tmp_path / "1.log", "--migrate") as one, Service(store, tmp_path / "2.log"):
        declare(one.address, agent)
        begin = int(time.time()) + 2
        seen = until_all_came(agent, begin)
    assert doubled(seen) == []
    assert [call for call in seen if call.late < -CLOCKS] == []
    assert {call.attempt for call in seen} == {1}


def test_a_service_that_is_killed_loses_nothing_and_repeats_only_what_was_under_way(store: str, agent: Agent, tmp_path: Path) -> None:
    with Service(store, tmp_path / "1.log", "--migrate") as one, Service(store, tmp_path / "2.log") as two:
        declare(one.address, agent)
        begin = int(time.time()) + 2
        wait(lambda: time.time() > begin + SECONDS / 2)
        one.process.kill()
        killed = time.time()
        seen = until_all_came(agent, begin)
        assert two.process.poll() is None
    for calls in doubled(seen):
        assert len({call.key for call in calls}) == 1  # so that the agent can tell
        assert min(call.at for call in calls) <= killed + ON_ITS_WAY
        assert max(call.at for call in calls) >= killed
    assert [call for call in seen if call.late < -CLOCKS] == []
