"""The command line in a temporary folder, with no settings in the environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer import testing
from typer.main import get_command
from typer.testing import CliRunner

from duetime.cli.logs import NodeIdFilter
from duetime.cli.program import program
from tests.cli.fleet import Past, make_past


@dataclass(frozen=True, slots=True)
class Ran:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Duetime = Callable[..., Ran]


@pytest.fixture(scope="session", autouse=True)
def commands_made_once() -> Iterator[None]:
    """Typer's runner builds all commands for every command line, which takes longer than most of them run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "_get_command", cache(get_command))
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("DUETIME_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def duetime(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Duetime]:
    """Run a command in this process, by default on duetime.db in the folder."""
    # A node's log handler would outlive the command and write to its closed output.
    monkeypatch.setattr("duetime.cli.logs.configure", lambda level, form: NodeIdFilter())
    monkeypatch.setattr(sys, "path", list(sys.path))  # `--app` adds the folder
    runner = CliRunner()

    def run(*arguments: str, stdin: str | None = None) -> Ran:
        done = runner.invoke(program, list(arguments), input=stdin, prog_name="duetime")
        return Ran(done.exit_code, done.stdout, done.stderr)

    yield run
    for name, module in list(sys.modules.items()):  # which `--app` imported from the folder
        if (getattr(module, "__file__", None) or "").startswith(f"{folder}{os.sep}"):
            del sys.modules[name]


@pytest.fixture
def past(duetime: Duetime, folder: Path) -> Past:
    """A store in which one job has succeeded and three are dead letters."""
    return make_past(f"sqlite:///{folder / 'duetime.db'}")
