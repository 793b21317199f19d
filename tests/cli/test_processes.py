"""Roles and processes of a fleet, each really started: `serve --roles ...` and `--processes N`."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.conftest import Duetime
from tests.cli.node import Node

TASKS = """
import duetime as dt

app = dt.App("sqlite:///own.db")


@app.task("hello", queue="mail")
async def hello() -> str:
    return "hello"
"""
OWN = ("--store", "sqlite:///own.db")
WORKER = ("--app", "tasks:app", "--roles", "worker", "--queues", "billing,mail", "--concurrency", "200")
# Nothing listens there: a node starts without its broker.
BROKER = "redis://worker:secret@127.0.0.1:1"


@pytest.fixture
def serve(folder: Path) -> Iterator[Callable[..., Node]]:
    (folder / "tasks.py").write_text(TASKS)
    nodes: list[Node] = []

    def start(*options: str) -> Node:
        nodes.append(Node(folder, "serve", *OWN, *options))
        return nodes[-1]

    yield start
    for node in nodes:
        node.kill()


def pid_in(line: str) -> int:
    return int(re.findall(r"pid (\d+)", line)[-1])


@pytest.mark.parametrize(
    ("options", "lines", "missing"),
    [
        (["--roles", "planner"], ["roles   planner\n"], ["tasks  ", "queues ", "API "]),
        (
            ["--roles", "dispatcher", "--queue", BROKER],
            ["broker  redis://worker:***@127.0.0.1:1\n", "roles   dispatcher\n"],
            ["tasks  ", "queues ", "secret"],
        ),
        (["--roles", "api"], ["roles   api\n", "API     http://"], ["tasks  ", "queues "]),
        (
            [*WORKER],
            ["roles   worker\n", "tasks   hello\n", "queues  billing, mail (up to 200 jobs at a time)\n"],
            ["API "],
        ),
        (["--queue", BROKER], ["roles   api, planner, dispatcher, worker\n"], []),
    ],
)
def test_banner_shows_the_roles_that_run(
    serve: Callable[..., Node], options: list[str], lines: list[str], missing: list[str]
) -> None:
    node = serve(*options)
    said = node.until("stop")
    assert [line for line in lines if line not in said] == [], said
    assert [line for line in missing if line in said] == [], said
    assert node.end(signal.SIGTERM)[0] == 0


def test_each_process_is_a_node_and_a_killed_one_is_replaced(
    serve: Callable[..., Node], duetime: Duetime
) -> None:
    node = serve(*WORKER, "--processes", "2")
    first = pid_in(node.until("process 1 of 2"))
    second = pid_in(node.until("process 2 of 2"))
    for _ in range(2):
        node.until("stop    Ctrl-C")
    nodes = duetime(*OWN, "node", "list", "--json").json
    assert [(one["state"], one["roles"]) for one in nodes] == [("alive", ["worker"])] * 2
    os.kill(second, signal.SIGKILL)
    node.until(f"pid {second} was killed: another process starts")
    third = pid_in(node.until("process 2 of 2"))
    node.until("stop    Ctrl-C")
    done = duetime(*OWN, "job", "submit", "hello", "--queue", "mail", "--wait", "--json")
    assert (done.status, done.json["result"]) == (0, "hello")
    assert node.end(signal.SIGTERM)[0] == 0
    for pid in (first, second, third):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    states = [one["state"] for one in duetime(*OWN, "node", "list", "--all", "--json").json]
    assert sorted(states) == ["dead", "left", "left"]


def test_processes_end_when_their_parent_is_killed(serve: Callable[..., Node]) -> None:
    node = serve(*WORKER, "--processes", "2")
    for _ in range(2):
        node.until("stop    Ctrl-C")
    node.process.send_signal(signal.SIGKILL)
    try:
        node.process.communicate(timeout=60)  # the pipes close when the last of them has ended
    finally:
        with suppress(ProcessLookupError):
            os.killpg(node.process.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--processes", "2"], "processes: several processes cannot answer on one port"),
        ([*WORKER, "--port", "0", "--processes", "2"], "processes: several processes cannot answer on one"),
        (["--processes", "0"], "processes (from --processes): '0' must be a whole number from 1 to 1,000"),
        (["--roles", "dispatcher"], "roles: a dispatcher needs a broker: give its address as queue (--queue"),
        (["--roles", "worker", "--app", "nowhere:app", "--processes", "2"], "app: no module 'nowhere'"),
    ],
)
def test_wrong_roles_and_processes_are_refused_with_the_setting_and_the_fix(
    serve: Callable[..., Node], options: list[str], message: str
) -> None:
    node = serve(*options)
    _, err = node.process.communicate(timeout=60)
    assert (node.process.returncode, message in err, "config_invalid" in err) == (2, True, True), err
