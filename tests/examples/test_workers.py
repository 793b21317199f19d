"""The example workers in other languages, as their own processes against a running service."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import duetime as dt
from tests.servers.debian import program
from tests.servers.service import Service
from tools.build_ui import npm_command

WORKERS = Path(__file__).parents[2] / "examples" / "workers"
SHELL_TOOLS = ("curl", "jq")  # programs, and the Debian packages they are in
EXAMPLES = [
    ("worker.mjs", "text.reverse", {"text": "drawer"}, "reward"),
    ("worker.sh", "text.upper", {"text": "a \"b\" 'c'"}, "A \"B\" 'C'"),
    *([("worker.rs", "number.square", {"n": 12}, 144)] if shutil.which("rustc") else []),
]
LEASE = "4s"
PATIENCE = 60.0
pytestmark = [pytest.mark.slow, pytest.mark.server]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[str]]:
    """The command line of a worker."""

    def build(name: str) -> list[str]:
        match Path(name).suffix:
            case ".mjs":
                return [npm_command()[0], str(WORKERS / name)]
            case ".sh":
                tools = [program(tool, tool) for tool in SHELL_TOOLS]
                libraries = [tool.environment.get("LD_LIBRARY_PATH", "") for tool in tools]
                folders = [*(str(tool.path.parent) for tool in tools), os.environ["PATH"]]
                found = [f"PATH={os.pathsep.join(folders)}", f"LD_LIBRARY_PATH={os.pathsep.join(libraries)}"]
                return ["env", *found, "sh", str(WORKERS / name)]
            case _:
                built = tmp_path_factory.mktemp("rust") / "worker"
                subprocess.run(["rustc", "-O", "-o", built, WORKERS / name], check=True)
                return [str(built)]

    return build


@pytest.fixture(params=["sqlite", "postgres"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[dt.Client, dict[str, str]]]:
    """A client of a running service that needs keys, and the environment of workers."""
    sqlite = f"sqlite:///{tmp_path}/jobs.db"
    url: str = sqlite if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    app = dt.App(url)
    app.sync.migrate()
    admin = app.sync.keys.create("admin", ["admin"]).text
    work = app.sync.keys.create("work", ["work"], queues=["default"]).text
    app.sync.close()
    with Service(url, tmp_path / "service.log", "--auth", "keys") as service:
        host = service.address.partition("://")[2]
        environment = {"DUETIME_URL": service.address, "DUETIME_HOST": host, "DUETIME_KEY": work}
        with dt.Client(service.address, key=admin) as client:
            yield client, {**os.environ, **environment, "DUETIME_LEASE": LEASE}


@contextmanager
def running(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        assert "waits for jobs" in process.stdout.readline()
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


@pytest.mark.parametrize(("name", "task", "payload", "result"), EXAMPLES)
def test_example_worker_runs_jobs(
    name: str,
    task: str,
    payload: dict[str, Any],
    result: Any,
    served: tuple[dt.Client, dict[str, str]],
    built: Callable[[str], list[str]],
) -> None:
    client, environment = served
    with running(built(name), environment):
        ids = [client.submit(task, payload).id for _ in range(3)]
        assert [client.wait_for(job, "60s").result for job in ids] == [result] * 3
        bad = client.submit("wait.for", {"seconds": "x"}, retry=dt.Retry(max_attempts=1)).id
        assert client.wait_for(bad, "60s").state == ("succeeded" if name == "worker.mjs" else "dead")
        long = client.submit("wait.for", {"seconds": 600}, retry=dt.Retry(max_attempts=1)).id
        until(lambda: client.get_job(long).state == "running")
        client.cancel_job(long)
        assert client.wait_for(long, "60s").state == "cancelled"


def test_worker_that_is_told_to_end_leaves_in_good_order(
    served: tuple[dt.Client, dict[str, str]], built: Callable[[str], list[str]]
) -> None:
    client, environment = served
    for name in ("worker.mjs", "worker.sh"):
        with running(built(name), environment) as process:
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
    states = [node.state for node in client.nodes() if node.version == "http"]
    assert states == ["left", "left"]


def test_jobs_of_a_killed_worker_restart_after_its_lease_and_complete_once(
    served: tuple[dt.Client, dict[str, str]], built: Callable[[str], list[str]]
) -> None:
    client, environment = served
    command = built("worker.mjs")
    quick = [dt.NewJob("text.reverse", {"text": str(number)}) for number in range(200)]
    with running(command, environment) as killed:
        slow = client.submit_many([dt.NewJob("wait.for", {"seconds": 6})] * 20).ids
        until(lambda: len(client.jobs(state="running", limit=100)) == 20)
        ids = slow + client.submit_many(quick).ids
        killed_at = datetime.now(UTC)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    with running(command, environment):
        found = {job: client.wait_for(job, "60s") for job in ids}
    assert {job.state for job in found.values()} == {dt.State.SUCCEEDED}
    lost = {job.id: job.attempts for job in found.values() if job.attempts}
    assert lost.keys() >= set(slow)
    assert all([one.ending for one in attempts] == ["lost"] for attempts in lost.values())
    assert all(one.finished_at > killed_at for [one] in lost.values())
    assert {job.attempt - len(job.attempts) for job in found.values()} == {1}
