"""`--reload`: what counts as a change, and a worker that survives errors in its code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from duetime.cli import files
from duetime.cli.files import changed_files, snapshot, source_folders
from duetime.errors import ConfigError
from tests.cli.conftest import Duetime
from tests.cli.node import Node

pytestmark = pytest.mark.slow

TASKS = """
import duetime as dt

app = dt.App("sqlite:///own.db")


@app.task("tell")
async def tell() -> str:
    return "{}"
"""


@pytest.fixture(params=[("worker", "tasks:app"), ("serve", "--app", "tasks:app")], ids=["worker", "serve"])
def node(folder: Path, request: pytest.FixtureRequest) -> Iterator[Node]:
    (folder / "tasks.py").write_text(TASKS.format("one"))
    node = Node(folder, *request.param, "--reload")
    yield node
    node.kill()


def tell(duetime: Duetime) -> str:
    done = duetime("--store", "sqlite:///own.db", "job", "submit", "tell", "--wait", "--json")
    assert done.status == 0, done.err
    return str(done.json["result"])


def test_reload_restarts_on_a_change_and_survives_a_syntax_error(node: Node, duetime: Duetime) -> None:
    said = node.until("stop")
    assert "watching " in said
    assert "worker\n" in said
    assert tell(duetime) == "one"
    Path("tasks.py").write_text("def broken(:\n")
    assert "changed: tasks.py; restarting" in node.until("waiting for a change")
    Path("tasks.py").write_text(TASKS.format("two"))
    node.until("stop")
    assert tell(duetime) == "two", "not what a file of bytecode remembered"
    status, err = node.end(signal.SIGTERM)
    assert status == 0
    assert "error: app: importing tasks failed: SyntaxError" in err
    nodes = duetime("--store", "sqlite:///own.db", "node", "list", "--all", "--json").json
    assert {one["state"] for one in nodes} == {"left"}, "all have left in good order"


def test_worker_needs_an_app(duetime: Duetime) -> None:
    done = duetime("worker")
    assert (done.status, "a worker needs the tasks of your program" in done.err) == (2, True)


def test_changed_files_are_those_written_added_or_deleted() -> None:
    assert changed_files({"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 2, "d": 1}) == ["b", "c", "d"]
    assert changed_files({"a": 1}, {"a": 1}) == []


def test_reload_watches_only_the_users_sources(folder: Path) -> None:
    for name in ("a.py", "shop/tasks.py", "duetime.toml"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    for name in (
        "shop/notes.txt",
        ".git/hook.py",
        "shop/__pycache__/a.py",
        "env/pyvenv.cfg",
        "env/lib/b.py",
        "node_modules/c.py",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    found = {str(Path(path).relative_to(folder)) for path in snapshot([folder])}
    assert found == {"a.py", "shop/tasks.py", "duetime.toml"}


def test_reload_watches_nested_folders_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("library")
    (folder / "inner").mkdir()
    monkeypatch.setattr(
        sys, "path", [*sys.path, str(folder / "inner"), str(other), str(other), "no/such/folder"]
    )
    found = source_folders()
    assert folder in found
    assert found.count(other) == 1
    assert folder / "inner" not in found, "it is looked through with the folder it is in"
    assert not any("site-packages" in one.parts or one.name == "bin" for one in found)


def test_reload_refuses_too_many_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILES", 2)
    for number in range(3):
        (folder / f"m{number}.py").touch()
    with pytest.raises(ConfigError, match="more than 2 source files"):
        snapshot([folder])
