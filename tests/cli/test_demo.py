"""`duetime demo`: sample schedules, with and without a running service, and their removal."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from uuid import UUID

import pytest

import duetime as dt
from duetime.app.demo import EXAMPLES, LABEL
from duetime.remote.client import Client
from tests.cli.conftest import Duetime
from tests.cli.node import Node
from tests.cli.served import served
from tests.servers.process import free_port

NAMES = sorted(example.name for example in EXAMPLES)
MOVING = ("last_fire_time", "next_fire_time", "runs")


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch, folder: Path) -> int:
    found = free_port()
    monkeypatch.setenv("DUETIME_PORT", str(found))
    return found


def schedules(duetime: Duetime) -> list[dict[str, Any]]:
    """Without the fields that change as schedules fire."""
    listed: list[dict[str, Any]] = duetime("schedule", "list", "--json").json
    return [{name: value for name, value in one.items() if name not in MOVING} for one in listed]


def test_demo_without_a_service_says_what_to_start(duetime: Duetime, port: int) -> None:
    ran = duetime("demo")
    assert ran.status == 0, ran.err
    assert f"duetime serve --port {port}" in ran.out
    first = schedules(duetime)
    assert [one["name"] for one in first] == NAMES
    [waiting] = duetime("job", "list", "--json").json
    assert waiting["schedule"] == "demo.broken"


def test_demo_on_a_named_store_says_how_to_use_it(duetime: Duetime, port: int) -> None:
    ran = duetime("demo", "--store", "sqlite:///other.db")
    place = "duetime --store sqlite:///other.db"
    for line in (f"{place} serve --port {port}", f"{place} job list", f"{place} demo --remove --port {port}"):
        assert line in ran.out


def test_demo_on_a_service_says_how_to_use_it(duetime: Duetime, folder: Path) -> None:
    with served(f"sqlite:///{folder}/there.db") as url:
        for words in (["--server", url, "demo"], ["demo", "--port", url.rpartition(":")[2]]):
            ran = duetime(*words)
            assert f"duetime --server {url} job list" in ran.out
            assert f"duetime --server {url} demo --remove\n" in ran.out


def test_demo_twice_changes_nothing(duetime: Duetime, port: int) -> None:
    duetime("demo")
    before = schedules(duetime), duetime("job", "list", "--json").json
    assert duetime("demo").status == 0
    assert (schedules(duetime), duetime("job", "list", "--json").json) == before


def test_demo_updates_the_port_of_its_schedules(duetime: Duetime, port: int) -> None:
    duetime("demo")
    other = str(free_port())
    assert duetime("demo", "--port", other).status == 0
    assert all(f":{other}/" in json.dumps(one) for one in schedules(duetime))


def test_demo_remove_removes_all_samples(duetime: Duetime, port: int) -> None:
    duetime("schedule", "add", "mine", "report.build", "--every", "1h")
    duetime("demo")
    ran = duetime("demo", "--remove")
    assert ran.status == 0, ran.err
    assert [one["name"] for one in schedules(duetime)] == ["mine"]
    assert {one["state"] for one in duetime("job", "list", "--json").json} == {"cancelled"}
    assert duetime("demo", "--remove").status == 0


def test_demo_needs_a_fixed_port(duetime: Duetime, folder: Path) -> None:
    ran = duetime("demo", "--port", "0")
    assert (ran.status, "--port 8080" in ran.err) == (2, True)


def test_demo_fails_if_the_named_service_is_unreachable(duetime: Duetime, port: int) -> None:
    ran = duetime("--server", f"http://127.0.0.1:{port}", "demo")
    assert (ran.status, "service_unreachable" in ran.err) == (1, True)


@pytest.fixture
def stranger(port: int) -> Iterator[None]:
    """Another program at the port of the service."""

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", port), Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.usefixtures("stranger")
def test_demo_refuses_an_address_without_a_local_service(duetime: Duetime) -> None:
    ran = duetime("demo")
    assert (ran.status, "is not a Duetime service in local mode" in ran.err) == (2, True)


@pytest.fixture
def service(port: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr("duetime.cli.commands.demo.TIMEOUT", "60s")  # this machine may be busy
    node = Node(folder, "serve", DUETIME_PORT=str(port))
    node.until("stop")
    with Client(f"http://127.0.0.1:{port}") as client:
        yield client
    node.kill()


@pytest.mark.slow
def test_demo_jobs_run_within_a_minute(duetime: Duetime, service: Client, port: int) -> None:
    ran = duetime("--server", f"http://127.0.0.1:{port}", "demo")
    assert ran.status == 0, ran.err
    assert "duetime serve" not in ran.out
    assert [one.name for one in service.schedules()] == NAMES
    versions = [one.version for one in service.schedules()]
    assert duetime("demo").status == 0
    assert [one.version for one in service.schedules()] == versions
    seen: set[str] = set()
    for event in service.events(["job"], after=0):
        seen |= looked_at(service)
        if seen >= {"succeeded", "retried", "dead", "progress"}:
            break
        assert event is not None
    assert duetime("demo", "--remove").status == 0
    assert service.schedules() == []
    assert [job for job in service.jobs(label=LABEL, limit=1_000) if not job.state.final] == []
    assert service.dead_letters() == []


def looked_at(service: Client) -> set[str]:
    jobs = service.jobs(label=LABEL, limit=100)
    found = {"dead"} if service.dead_letters() else set()
    for job in jobs:
        if job.state is dt.State.SUCCEEDED:
            found.add("retried" if job.failures else "succeeded")
        elif job.state is dt.State.RUNNING and service.get_job(job.id).progress:
            found.add("progress")
    return found


def test_echo_agent_answers_as_its_path_says(service: Client, port: int) -> None:
    def ask(path: str, **headers: str) -> tuple[int, dict[str, Any]]:
        request = Request(f"http://127.0.0.1:{port}/demo/echo{path}", b'{"n": 1}', headers)
        try:
            with urlopen(request) as answer:
                return answer.status, json.loads(answer.read())
        except OSError as refused:
            return refused.code, json.loads(refused.read())  # type: ignore[attr-defined]  # an HTTPError

    assert ask("/hello") == (200, {"method": "POST", "path": "/hello", "body": '{"n": 1}'})
    assert ask("/status/418")[0] == 418
    assert ask("/slow/0.01")[0] == 200
    assert (ask("/later")[0], ask("/status/202")[0]) == (202, 202)
    unlucky, lucky = ({"Duetime-Job-Id": str(UUID(int=number)), "Duetime-Attempt": "1"} for number in (3, 4))
    assert (ask("/flaky", **unlucky)[0], ask("/flaky", **lucky)[0]) == (503, 200)
    assert ask("/flaky", **{**unlucky, "Duetime-Attempt": "2"})[0] == 200
    assert (ask("/flaky", **{"Duetime-Job-Id": "x"})[0], ask("/later", **{"Duetime-Job-Id": "x"})[0]) == (
        200,
        202,
    )


@pytest.mark.slow
def test_echo_agent_reports_only_with_the_token(service: Client, port: int) -> None:
    target = {"url": f"http://127.0.0.1:{port}/demo/echo/later/1", "async": True}
    job = service.submit(target, timeout="60s")
    forged = Request(
        f"http://127.0.0.1:{port}/demo/echo/later/0",
        b"",
        {"Duetime-Job-Id": str(job.id), "Duetime-Report-Token": "1.x"},
    )
    urlopen(forged).close()
    assert service.wait_for(job.id, timeout="60s").result == {"pages": 1}
