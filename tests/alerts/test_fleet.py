"""Real processes: one schedule, one worker, the fleet and the database stop in turn. Each is told once, and told
again when it is well; the outside monitor notices what no node can tell."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from tests.servers.postgres import PostgresServer
from tests.servers.receiver import Receiver
from tests.servers.service import Service

pytestmark = [pytest.mark.slow, pytest.mark.server]
LIMIT = 60.0  # seconds after the grace
RECOVERED = ["alert.resolved"]
OPTIONS = ("--alert-interval", "1s", "--lease", "3s", "--watchdog-interval", "1s")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


def until(condition: Callable[[], object], seconds: float = LIMIT) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Told:
    """What the webhook was told, as (type, condition, subjects)."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def of(self, condition: str) -> list[tuple[str, list[str]]]:
        found = [one.json for one in self._receiver.received if one.path == "/alerts"]
        return [
            (one["type"], [alert["subject"] for alert in one["data"]["alerts"]])
            for one in found
            if one["data"]["condition"] == condition
        ]


def pings(monitor: Receiver, seconds: float = 4.0) -> bool:
    """Whether the outside monitor was called lately."""
    return bool(monitor.received) and time.monotonic() - monitor.received[-1].at < seconds


def test_each_loss_is_told_once_and_its_end(server: PostgresServer, tmp_path: Path) -> None:
    store = server.create_database("alerts")
    with Receiver() as receiver, Receiver() as monitor:
        watchdog = ("--watchdog-url", f"{monitor.url}/ping/secret")
        with Service(store, tmp_path / "planner.log", "--migrate", *OPTIONS, *watchdog) as planner:
            told = Told(receiver)
            with httpx2.Client(base_url=f"{planner.address}/api/v1", timeout=60) as client:
                set_up(client, receiver)
                until(lambda: pings(monitor))
                one_schedule(client, told)
                one_worker(client, told, store, tmp_path)
                the_database(server, told, monitor)
            before = len(told.of("no_leader"))
            the_fleet(planner, monitor)
        with Service(store, tmp_path / "again.log", *OPTIONS, *watchdog):
            until(lambda: pings(monitor))
            until(lambda: ("alert.resolved", ["fleet"]) in told.of("no_leader")[before:])
        assert [kind for kind, _ in told.of("no_leader")][before:] in (
            RECOVERED,
            ["alert.firing", *RECOVERED],
        )
        assert all(one.path == "/ping/secret" for one in monitor.received)


def set_up(client: httpx2.Client, receiver: Receiver) -> None:
    target = {"type": "webhook", "url": f"{receiver.url}/alerts"}
    assert client.put("/alerts/channels/ops", json={"target": target}).status_code == 200
    for name, after in (("silent", "3s"), ("queue_lag", "1h"), ("node_lost", "1s"), ("no_leader", "2s")):
        made = client.put(f"/alerts/rules/{name}", json={"condition": name, "after": after})
        assert made.status_code == 200, made.text


def one_schedule(client: httpx2.Client, told: Told) -> None:
    """A target that no node knows: the schedule fires, and nothing succeeds."""
    body = {"name": "nightly", "when": {"every": "2s"}, "target": {"type": "task", "name": "missing"}}
    assert client.post("/schedules", json=body).status_code == 201
    until(lambda: told.of("silent"))
    assert client.post("/schedules/nightly/pause").status_code == 200
    until(lambda: len(told.of("silent")) == 2)
    assert told.of("silent") == [("alert.firing", ["nightly"]), ("alert.resolved", ["nightly"])]


def one_worker(client: httpx2.Client, told: Told, store: str, folder: Path) -> None:
    roles = ("--roles", "worker", "--port", "0", *OPTIONS)
    with Service(store, folder / "worker.log", *roles) as worker:
        until(lambda: len(client.get("/nodes").json()["items"]) == 2)
        time.sleep(2.5)  # the leader has seen it
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
    until(lambda: told.of("node_lost"))
    with Service(store, folder / "worker-2.log", *roles):
        until(lambda: len(told.of("node_lost")) == 2)
    assert [kind for kind, _ in told.of("node_lost")] == ["alert.firing", "alert.resolved"]


def the_database(server: PostgresServer, told: Told, monitor: Receiver) -> None:
    server.stop()
    until(lambda: not pings(monitor))
    time.sleep(2)  # the last ping may be older than the last sweep, and a gap of four sweeps is not told
    server.start()
    until(lambda: pings(monitor))
    # The same process may tell it before it leads again
    until(lambda: ("alert.resolved", ["fleet"]) in told.of("no_leader"))
    assert [kind for kind, _ in told.of("no_leader")] in (RECOVERED, ["alert.firing", *RECOVERED])


def the_fleet(service: Service, monitor: Receiver) -> None:
    os.kill(service.process.pid, signal.SIGKILL)
    service.process.wait()
    until(lambda: not pings(monitor))
    time.sleep(2)  # longer than the leader may be absent
