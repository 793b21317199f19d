"""`duetime serve` in its own process."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.cli.conftest import Duetime
from tests.cli.node import Node

TASKS = """
import asyncio
import os
import threading
import duetime as dt

app = dt.App("sqlite:///own.db")


@app.task("hello")
async def hello(ctx: dt.Context, name: str) -> str:
    ctx.log.info("greeting %s", name)
    return f"hello {name}"


@app.task("follow")
async def follow() -> str:
    return str((await hello.submit(name="again")).id)


@app.task("hang")
def hang() -> None:
    print("hanging", flush=True)
    threading.Event().wait()


@app.task("hang-elsewhere")
async def hang_elsewhere() -> None:
    await asyncio.to_thread(hang)
"""


@pytest.fixture
def serve(folder: Path) -> Iterator[Callable[..., Node]]:
    (folder / "tasks.py").write_text(TASKS)
    nodes: list[Node] = []

    def start(*options: str, command: str = "serve", **environment: str) -> Node:
        nodes.append(Node(folder, command, *options, **environment))
        return nodes[-1]

    yield start
    for node in nodes:
        node.kill()


def test_serve_runs_a_job_and_exits_with_0_on_sigterm(serve: Callable[..., Node], duetime: Duetime) -> None:
    """Files of the folder must not replace modules of Python or of Duetime, also not those imported late."""
    for name in ("json", "sqlite3", "uvloop", "msgspec"):
        Path(f"{name}.py").write_text("raise SystemExit('planted')")
    node = serve(
        "--app", "tasks:app", "--store", "sqlite:///shared.db", "--log-format", "json", "--grace", "5s"
    )
    said = node.until("stop")
    assert "store   sqlite:///shared.db" in said
    assert "roles   api, planner, worker" in said
    assert "tasks   follow, hang, hang-elsewhere, hello" in said
    shared = ("--store", "sqlite:///shared.db")
    done = duetime(*shared, "job", "submit", "hello", "--payload", '{"name": "x"}', "--wait", "--json")
    assert (done.status, done.json["result"]) == (0, "hello x")
    followed = duetime(*shared, "job", "submit", "follow", "--wait", "--json")
    assert followed.status == 0, "a task reaches the store that was given, not the one its app names"
    assert not Path("own.db").exists()
    assert [one["state"] for one in duetime(*shared, "node", "list", "--json").json] == ["alive"]
    status, err = node.end(signal.SIGTERM)
    assert status == 0
    lines = [json.loads(line) for line in err.splitlines()]
    assert "node 1 left" in {line["message"] for line in lines}
    assert {"message": "greeting x", "target": "hello", "job_id": done.json["id"]}.items() <= next(
        line for line in lines if line["message"] == "greeting x"
    ).items()


def test_threads_without_work_are_no_trouble_at_the_end(serve: Callable[..., Node]) -> None:
    """The fires of a schedule are searched for on a thread, which then waits for more."""
    node = serve("--log-format", "json")
    found = re.search(r"API +(\S+)/api/v1", node.until("stop"))
    assert found is not None
    when = b'{"name": "n", "when": {"cron": "0 9 * * *"}, "target": {"type": "task", "name": "hello"}}'
    assert _answer(f"{found[1]}/api/v1/schedules", when)[0] == 201
    status, err = node.end(signal.SIGTERM)
    assert status == 0
    assert "node 1 left" in err
    assert "threads that still run" not in err


def test_files_of_serve_are_ignored_by_git(serve: Callable[..., Node], folder: Path) -> None:
    """`make run` in a clone leaves no untracked file behind."""
    (folder / ".gitignore").write_bytes((Path(__file__).parents[2] / ".gitignore").read_bytes())
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    serve().until("Ctrl-C")
    command = ["git", "status", "--porcelain", "--untracked-files=all"]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert found.stdout == "?? .gitignore\n?? tasks.py\n"
    assert {"duetime.db", "duetime.db-nodes"} <= {path.name for path in folder.iterdir()}


def test_worker_takes_its_app_as_serve_does(serve: Callable[..., Node], duetime: Duetime) -> None:
    node = serve("--app", "tasks:app", command="worker")
    assert "tasks   follow, hang, hang-elsewhere, hello" in node.until("stop")
    assert node.end(signal.SIGTERM)[0] == 0
    both = duetime("worker", "tasks:app", "--app", "other:app")
    assert both.err == "error: app: tasks:app and --app other:app: give one of them [config_invalid]\n"


@pytest.mark.parametrize("task", ["hang", "hang-elsewhere"])
def test_second_signal_does_not_wait_for_running_jobs(
    serve: Callable[..., Node], duetime: Duetime, task: str
) -> None:
    node = serve("--app", "tasks:app", "--grace", "10m")
    assert "store   sqlite:///own.db, that of tasks:app" in node.until("stop")
    own = ("--store", "sqlite:///own.db")
    job_id = duetime(*own, "job", "submit", task).out.strip()
    node.until("hanging")
    node.process.send_signal(signal.SIGINT)
    assert node.process.stderr is not None
    stopping = next(line for line in node.process.stderr if "stopping" in line)
    assert "1 running job has 10m to finish" in stopping
    node.process.send_signal(signal.SIGINT)
    assert node.process.wait(timeout=60) == 0
    assert duetime(*own, "job", "show", job_id, "--json").json["state"] == "pending"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--app", "nowhere:app"], "app: no module 'nowhere'"),
        (["--app", "tasks:other"], "has no 'other'"),
        (["--app", "tasks:hello"], "is a Task: name the variable that holds your App"),
        (["--app", "broken:app"], "app: importing broken failed: ZeroDivisionError"),
        (["--app", "needy:app"], "app: needy needs the module 'no_such_module'"),
        (["--app", ":app"], "app (from --app): ':app' must be written module:app"),
        (["--roles", "cook"], "roles (from --roles): 'cook' is not one of"),
        (["--lease", "1ms"], "lease (from --lease): 1ms is too short"),
        (["--store", "sqlite:///no/such/x.db"], "does not exist"),
    ],
)
def test_serve_with_wrong_settings_is_one_line_of_error(
    duetime: Duetime, options: list[str], message: str
) -> None:
    Path("tasks.py").write_text(TASKS)
    Path("broken.py").write_text("1 / 0")
    Path("needy.py").write_text("import no_such_module")
    done = duetime("serve", "--port", "0", *options)  # 8080 may be taken
    assert (done.status, message in done.err) == (2, True), done.err
    assert done.err.count("\n") == 1


@pytest.mark.server
def test_postgres_without_schema_names_the_migrate_command(duetime: Duetime, postgres_url: str) -> None:
    done = duetime("--store", postgres_url, "job", "list")
    assert (done.status, "duetime migrate" in done.err, "--migrate" in done.err) == (1, True, True), done.err
    assert duetime("--store", postgres_url, "migrate").status == 0
    assert duetime("--store", postgres_url, "job", "list").out == "no jobs\n"


def _answer(address: str, body: bytes | None = None) -> tuple[int, str]:
    """The status and the text of a request."""
    try:
        with urlopen(Request(address, body, {"content-type": "application/json"})) as found:
            return found.status, found.read().decode()
    except HTTPError as problem:
        return problem.code, problem.read().decode()


def test_worker_with_a_port_answers_only_health_checks_and_metrics(serve: Callable[..., Node]) -> None:
    node = serve("tasks:app", "--port", "0", command="worker", DUETIME_PORT="1")
    address = node.until("/healthz").split()[-1].removesuffix("/healthz")
    node.until("stop")
    assert _answer(f"{address}/healthz")[0] == 200
    assert _answer(f"{address}/readyz")[0] == 200
    status, text = _answer(f"{address}/metrics")
    assert (status, 'duetime_nodes{state="alive"} 1' in text) == (200, True)
    job = b'{"task": "hello", "payload": {"name": "x"}}'
    for path, body in (("/api/v1/jobs", None), ("/api/v1/jobs", job), ("/ui/", None), ("/docs", None)):
        assert _answer(f"{address}{path}", body)[0] == 404, path
    assert node.end(signal.SIGTERM)[0] == 0


def test_worker_without_the_flag_opens_no_port(serve: Callable[..., Node]) -> None:
    """A port from the environment or a file may be that of the API next to it."""
    node = serve("tasks:app", command="worker", DUETIME_PORT="0")
    assert "/healthz" not in node.until("stop")
    assert node.end(signal.SIGTERM)[0] == 0


def test_stop_delay_answers_until_proxies_have_noticed(serve: Callable[..., Node]) -> None:
    node = serve("--stop-delay", "10m", "--log-format", "json")
    address = node.until("docs").split()[-1].removesuffix("/docs")
    node.until("stop")
    with closing(HTTPConnection(address.removeprefix("http://"), timeout=60)) as connection:

        def ask(path: str) -> tuple[int, str | None]:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.getheader("connection")

        assert ask("/readyz") == (200, None)
        node.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 60
        while (answered := ask("/readyz")) != (503, "close"):
            assert time.monotonic() < deadline, answered
        # A connection of before, and a new one, still answer; each ends with its answer.
        assert ask("/api/v1/jobs") == (200, "close")
        assert connection.sock is None
    status, err = node.end(signal.SIGTERM)  # the second signal does not wait
    assert status == 0
    assert "not ready, for proxies to see" in err
