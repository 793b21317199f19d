"""`make fleet`, really started: jobs run through the broker, a killed worker is not missed, and no process is
left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx2 as httpx
import pytest

import duetime as dt
from tests.servers import debian
from tests.servers.fleet import main

pytestmark = [pytest.mark.slow, pytest.mark.server]
ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 120.0  # seconds
ROLES = {"worker": ["worker"], "planner": ["planner", "dispatcher"]}


class StartedFleet:
    """All its processes inherit a variable, by which they can be found wherever they are."""

    def __init__(self) -> None:
        self._mark = f"TEST_FLEET={uuid4()}"
        name, _, value = self._mark.partition("=")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.fleet"],
            cwd=ROOT,
            env={**os.environ, name: value},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.said = self.until("stop  ")
        self.apis = re.findall(r"(http://\S+)/ui/", self.said)
        self.pids = {name: int(pid) for name, pid in re.findall(r"^  (\S+-\d) +pid (\d+)", self.said, re.M)}
        self.metrics = dict(re.findall(r"^  (\S+-\d) .*?(http://\S+/metrics)", self.said, re.M))

    def until(self, words: str) -> str:
        assert self.process.stdout is not None
        said = ""
        for line in self.process.stdout:
            said += line
            if words in line:
                return said
        raise AssertionError(f"ended without saying {words!r}: {said}")

    def alive(self) -> list[str]:
        """The processes of this fleet, by their environment."""
        return [
            folder.name
            for folder in Path("/proc").iterdir()
            if folder.name.isdigit() and self._mark in _environment(folder)
        ]


def _environment(folder: Path) -> str:
    try:
        return (folder / "environ").read_text("utf-8", "replace")
    except OSError:
        return ""  # it ended, or belongs to another user


@pytest.fixture
def fleet() -> Iterator[StartedFleet]:
    started = StartedFleet()
    yield started
    started.process.send_signal(signal.SIGTERM)
    started.process.communicate(timeout=TIMEOUT)


def tickets_received(fleet: StartedFleet) -> int:
    """By the workers, from the broker."""
    pages = [
        httpx.get(address, timeout=60).text
        for name, address in fleet.metrics.items()
        if name.startswith("worker")
    ]
    return sum(
        int(float(found))
        for found in re.findall(r"^duetime_tickets_received_total (\S+)", "".join(pages), re.M)
    )


def run_jobs(submit: str, wait: str, target: str, count: int) -> None:
    """Submit over one API, wait with the other."""
    with dt.Client(submit) as one, dt.Client(wait) as other:
        jobs = [one.submit({"type": "http", "url": f"{target}/demo/echo/hello"}) for _ in range(count)]
        for job in jobs:
            assert other.wait_for(job.id, timeout="1m").state == "succeeded"


def test_fleet_runs_jobs_through_the_broker_survives_a_worker_and_leaves_nothing(fleet: StartedFleet) -> None:
    first, second = fleet.apis
    assert (
        sorted(name.rpartition("-")[0] for name in fleet.pids)
        == ["api"] * 2 + ["planner"] * 2 + ["worker"] * 3
    )
    with dt.Client(second) as client:
        nodes = client.nodes()
        assert sorted(node.roles for node in nodes) == [ROLES["planner"]] * 2 + [ROLES["worker"]] * 3
        brokers = {node.broker for node in nodes} | {client.broker().address}
        assert len(brokers) == 1, brokers
        assert "amqp://worker:***@127.0.0.1" in str(brokers)
        assert client.broker().up
        assert [one.name for one in client.schedules()][:1] == ["demo.broken"]
    run_jobs(first, second, first, 5)
    deadline = time.monotonic() + TIMEOUT
    while tickets_received(fleet) == 0:
        assert time.monotonic() < deadline, "no ticket reached a worker"
        time.sleep(0.1)

    os.kill(fleet.pids["worker-1"], signal.SIGKILL)
    fleet.until(f"worker-1 (pid {fleet.pids['worker-1']}) ended with status -9")
    run_jobs(second, first, first, 20)

    assert len(fleet.alive()) > len(fleet.pids)
    fleet.process.send_signal(signal.SIGINT)
    assert fleet.process.wait(TIMEOUT) == 0
    assert fleet.alive() == []


def test_missing_server_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(debian, "installed", lambda name, package: None)
    monkeypatch.setattr(debian, "unpack", lambda name, package: None)
    debian.unpacked.cache_clear()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        assert main(["--broker", "redis"]) == 1
    finally:
        debian.unpacked.cache_clear()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("the fleet did not start: redis-server is missing: run `apt-get update")
