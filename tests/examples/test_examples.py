"""Each example runs as a separate program on a real store, as a reader would run it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import duetime as dt

EXAMPLES = Path(__file__).parents[2] / "examples"


@contextmanager
def program(name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    # A background process of a shell script ignores SIGINT, and so do its children.
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509  starts no thread
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    text = process.stdout.readline()
    assert text, process.stderr.read() if process.stderr else ""
    return text.strip()


def stop(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=60)
    assert errors == ""
    return process.returncode, rest


def fetch(url: str, method: str = "GET") -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code, json.load(problem)


def test_every_example_is_tested() -> None:
    tested = {"cron_in_a_script.py", "delayed_jobs_in_a_web_app.py", "survives_a_kill.py", "two_workers.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == tested


@pytest.mark.slow
def test_cron_in_a_script_fires_and_stops(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cron.db"
    for _ in range(2):  # the second time its schedules already exist
        with program("cron_in_a_script.py", url) as process:
            assert read_line(process).startswith("next report: 20")
            assert read_line(process).startswith("tick of ")
            assert stop(process)[0] == 0
    app = dt.App(url)
    assert [(view.name, view.version) for view in app.sync.schedules()] == [
        ("morning-report", 1),
        ("tick", 1),
    ]
    assert app.sync.jobs(schedule="tick", state="succeeded")
    app.sync.close()


@pytest.mark.slow
def test_web_app_runs_delayed_jobs(tmp_path: Path) -> None:
    with program("delayed_jobs_in_a_web_app.py", f"sqlite:///{tmp_path}/web.db", "0") as process:
        address = read_line(process).removeprefix("listening on ")
        status, first = fetch(f"{address}/welcome/ann", "POST")
        _, again = fetch(f"{address}/welcome/ann", "POST")
        assert (status, first["new"], again["new"], again["job"]) == (202, True, False, first["job"])
        assert fetch(f"{address}/jobs/{first['job']}")[1]["state"] in ("pending", "running")
        end = time.monotonic() + 60
        while (answer := fetch(f"{address}/jobs/{first['job']}"))[1]["state"] != "succeeded":
            assert time.monotonic() < end, answer
            time.sleep(0.02)
        assert answer == (200, {"state": "succeeded", "result": "welcomed ann"})
        assert fetch(f"{address}/jobs/nonsense") == (404, {"error": "job_not_found"})
        assert fetch(f"{address}/elsewhere")[0] == 404
        assert stop(process) == (0, "stopped\n")


@pytest.mark.slow
def test_killed_worker_is_replaced(tmp_path: Path) -> None:
    with program("survives_a_kill.py", f"sqlite:///{tmp_path}/kill.db") as process:
        lines = process.communicate(timeout=90)[0].splitlines()
    assert process.returncode == 0
    assert lines[-1] == "done by attempt 2, failures 0"
    killed = lines.index("killed")
    first, second = lines[:killed], lines[killed + 1 : -1]
    assert first[0] == "attempt 1: page 0"
    assert "attempt 2: page 0" not in second
    assert second[-1] == "attempt 2: page 4"


def test_two_workers_share_the_jobs(postgres_url: str) -> None:
    with program("two_workers.py", postgres_url) as process:
        text, errors = process.communicate(timeout=60)
    lines = text.splitlines()
    assert (process.returncode, errors) == (0, "")
    assert lines[-1] == "workers ended with [0, 0]"
    assert sum(int(entry.split()[3]) for entry in lines[:-1]) == 100


def test_two_workers_needs_a_database() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DUETIME_")}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "two_workers.py")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 1
    assert "no database" in done.stderr
