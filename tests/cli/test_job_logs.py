"""`duetime job logs`, on the store and over the API of a running service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Duetime
from tests.cli.node import Node, python_path
from tests.servers.service import Service

TASKS = """
import sys, time
from pathlib import Path
import duetime as dt
app = dt.App("sqlite:///d.db")

@app.task("steps", retry=dt.Retry(max_attempts=2, first_delay="1ms"))
def steps(ctx: dt.Context) -> None:
    ctx.log("begins", attempt=ctx.attempt)
    if ctx.attempt == 1:
        raise ValueError("not yet")
    while not Path("go").exists():
        time.sleep(0.01)
    ctx.log.warning("\\x1b[31mends")

@app.task("prints", isolate=True)
def prints() -> None:
    print("to stdout")
    print("to stderr", file=sys.stderr)
"""


@pytest.mark.slow
def test_logs_follow_a_job_through_its_attempts(folder: Path, duetime: Duetime) -> None:
    (folder / "tasks.py").write_text(TASKS)
    store = f"sqlite:///{folder / 'd.db'}"
    environment = {"PYTHONPATH": python_path(folder)}
    with Service(
        store, folder / "log", "--app", "tasks:app", environment=environment, folder=folder
    ) as service:
        places = (["--store", store], ["--server", service.address])
        job_id = duetime("job", "submit", "steps", "--store", store).out.strip()
        followers = [Node(folder, *place, "job", "logs", job_id[-8:], "--follow") for place in places]
        try:
            for follower in followers:
                follower.until("attempt=2")
            (folder / "go").touch()
            endings = [follower.until("ends") for follower in followers]
            statuses = [follower.end()[0] for follower in followers]
        finally:
            for follower in followers:
                follower.kill()
        assert statuses == [0, 0]
        assert all("warning  \\x1b[31mends" in said for said in endings), endings
        for place in places:
            first = duetime(*place, "job", "logs", job_id, "--attempt", "1")
            assert (first.status, first.out.split()[-1]) == (0, "attempt=1")
            lines = duetime(*place, "job", "logs", job_id, "--json").out.splitlines()
            assert [json.loads(line)["text"] for line in lines] == ["begins attempt=2", "\x1b[31mends"]
            missing = duetime(*place, "job", "logs", job_id, "--attempt", "3")
            assert (missing.status, "has had 2 attempts" in missing.err) == (1, True), missing.err
        printed = duetime("job", "submit", "prints", "--wait", "--store", store).out.split()[0]
        shown = duetime("job", "logs", printed, "--store", store).out
        assert {tuple(line.split()[2:]) for line in shown.splitlines()} == {
            ("stdout", "to", "stdout"),
            ("stderr", "to", "stderr"),
        }


def test_job_without_output_says_so(duetime: Duetime) -> None:
    job_id = duetime("job", "submit", "send", "--delay", "1h").out.strip()
    shown = duetime("job", "logs", job_id)
    assert (shown.status, shown.out, shown.err) == (0, "", "no output\n")
