"""The log of a real `duetime serve`: JSON with ids and without secrets; coloured text on a terminal."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duetime.cli.logs import JsonLines, NodeIdFilter, TextLines, configure
from duetime.model.events import NodeJoined
from duetime.model.lease import NodeId
from duetime.model.masking import without_secrets
from tests.cli.node import COMMAND, Node, python_path
from tests.servers.service import Service

KEY = "dt_0123456789_" + "C4n4ry" * 8
CANARY = "C4n4ry"
TASKS = """
import duetime as dt
app = dt.App("sqlite:///d.db")

@app.task("fails", retry=dt.Retry(max_attempts=2, first_delay="1ms"))
async def fails(ctx: dt.Context, secret: str) -> None:
    ctx.log.warning("about to fail")
    raise ValueError("cannot reach postgresql://user:C4n4ryPassword@db.example.org/x\\x1b[31m")
"""


def wait_for(found: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 60
    while not (answer := found()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return answer


def ask(address: str, path: str, body: Any = None, **headers: str) -> int:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{address}{path}", data, {"content-type": "application/json", **headers}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code


def records(service: Service) -> list[dict[str, Any]]:
    return [json.loads(line) for line in service.output.splitlines() if line.startswith('{"at"')]


def test_service_logs_json_with_ids_and_without_secrets(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(TASKS)
    store = f"sqlite:///{tmp_path / 'd.db'}"
    with Service(
        store,
        tmp_path / "log",
        "--app",
        "tasks:app",
        "--log-level",
        "debug",
        environment={"PYTHONPATH": python_path(tmp_path)},
    ) as service:
        job = {
            "target": {"type": "task", "name": "fails"},
            "payload": {"secret": CANARY},
            "labels": {"l": CANARY},
        }
        asked = {"Authorization": f"Bearer {KEY}", "X-Request-Id": "mine-1", "Idempotency-Key": CANARY}
        assert ask(service.address, "/api/v1/jobs", job, **asked) == 201
        when = {
            "name": "nightly",
            "when": {"every": "1h"},
            "target": {"type": "task", "name": "fails"},
            "payload": {"secret": CANARY},
        }
        assert ask(service.address, "/api/v1/schedules", when) == 201
        assert ask(service.address, "/api/v1/schedules/nightly/trigger", {}) == 201
        assert ask(service.address, f"/api/v1/jobs?cursor={CANARY}") == 400
        dead = wait_for(
            lambda: [
                one
                for one in records(service)
                if "dead letter" in one["message"] and one.get("schedule") == "nightly"
            ]
        )
        wait_for(lambda: len([one for one in records(service) if "dead letter" in one["message"]]) == 2)
    found = records(service)
    assert {"at", "level", "logger", "message", "node", "job_id", "target", "attempt", "schedule"} == set(
        dead[0]
    )
    assert (dead[0]["level"], dead[0]["target"], dead[0]["attempt"], dead[0]["node"]) == (
        "error",
        "fails",
        2,
        1,
    )
    [request] = [one for one in found if one.get("request_id") == "mine-1"]
    assert (request["status"], request["level"]) == (201, "debug")
    own = [one for one in found if one["message"] == "about to fail" and one.get("schedule") == "nightly"]
    assert {(one["job_id"], one["attempt"]) for one in own} == {
        (dead[0]["job_id"], 1),
        (dead[0]["job_id"], 2),
    }
    assert [one["status"] for one in found if one.get("request_id") and one["level"] == "info"] == [400]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", one["at"]) for one in found)
    assert CANARY not in service.output
    assert "\x1b" not in service.output


def test_log_on_a_terminal_is_coloured_text(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    command = [COMMAND, "serve", "--port", "0", "--store", f"sqlite:///{tmp_path / 'd.db'}"]
    node = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        said = ""
        while "joined" not in said:
            said += os.read(ours, 4_096).decode()
        assert re.search(r"\x1b\[32mINFO   \x1b\[0m duetime: node 1 joined as planner, worker", said)
    finally:
        node.terminate()
        node.wait(60)
        os.close(ours)


def test_log_into_a_pipe_is_json_unless_text_is_chosen(tmp_path: Path) -> None:
    node = Node(tmp_path, "serve", "--log-format", "text")
    try:
        node.until("stop")
        node.process.terminate()
        _, said = node.process.communicate(timeout=60)
        assert re.search(r"^\d{4}-\d\d-\d\d \S+ INFO    duetime: node 1 joined", said, re.M)
    finally:
        node.kill()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"key {KEY} used", "key dt_0123456789_*** used"),
        ("Authorization: Bearer abcdefgh.ijkl-mnop", "Authorization: Bearer ***"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic ***"),
        ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw bad", "whsec_*** bad"),
        ("postgresql://me:pass@db/x and https://a:b@c/d", "postgresql://me:***@db/x and https://a:***@c/d"),
        (
            "https://example.org:8080/a@b and 12:30 me@x.org",
            "https://example.org:8080/a@b and 12:30 me@x.org",
        ),
        ("the bearer of bad news", "the bearer of bad news"),
    ],
)
def test_secrets_are_masked_in_logs(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    record = logging.LogRecord("duetime", logging.INFO, "x", 1, "%s", (text,), None)
    assert shown in TextLines().format(record)
    assert json.loads(JsonLines().format(record))["message"] == shown


def test_log_records_have_the_node_id_once_it_has_joined() -> None:
    origin = NodeIdFilter()
    record = logging.LogRecord("other", logging.INFO, "x", 1, "hello", (), None)
    assert origin.filter(record)
    assert "node" not in json.loads(JsonLines().format(record))
    origin(NodeJoined(NodeId(7), ("worker",)))
    assert origin.filter(record)
    assert json.loads(JsonLines().format(record))["node"] == 7


def test_no_color_turns_log_colours_off(monkeypatch: pytest.MonkeyPatch) -> None:
    record = logging.LogRecord("duetime", logging.ERROR, "x", 1, "hello", (), None)
    assert "\x1b[31m" in TextLines(coloured=True).format(record)
    assert "\x1b" not in TextLines().format(record)
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    try:
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
        monkeypatch.setenv("NO_COLOR", "1")
        configure("info", "auto")
        assert "\x1b" not in root.handlers[0].format(record)
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])  # not the attribute: loggers remember what is enabled


@pytest.mark.parametrize("form", [JsonLines(), TextLines()], ids=["json", "text"])
def test_fields_of_a_record_are_masked(form: logging.Formatter) -> None:
    record = logging.makeLogRecord({"msg": "failed", "target": f"http {KEY}", "schedule": f"x {KEY[:30]}"})
    line = form.format(record)
    assert CANARY not in line
    assert line.count("dt_0123456789_***") == 2


@pytest.mark.parametrize("length", range(1, 43))
def test_part_of_a_key_is_masked(length: int) -> None:
    assert without_secrets(f"at {KEY[: 14 + length]}") == "at dt_0123456789_***"
