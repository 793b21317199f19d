"""Imports follow the layers, and the linter reports those that do not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import duetime

PACKAGE = Path(duetime.__file__).parent
ROOT = Path(__file__).parents[2]


def lint(source: Path) -> subprocess.CompletedProcess[str]:
    command = [
        str(Path(sys.executable).with_name("lint-imports")),
        "--no-cache",
        "--config",
        str(ROOT / "pyproject.toml"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)


def test_imports_point_down_only() -> None:
    done = lint(PACKAGE.parent)
    assert done.returncode == 0, done.stdout


# By file: what is added to it, the contract that this breaks, and what the linter says about it.
DOWN, MOMENTUM = "Imports point down only; packages", "Momentum: imports point down only"
FRAMEWORK, CLIENT = "A web framework stays inside", "The HTTP client and cryptography"
PLANTED = (
    ("errors.py", "import duetime.model.duration", DOWN, "duetime.errors -> duetime.model.duration"),
    ("model/planted.py", "import duetime.stores", DOWN, "duetime.model.planted -> duetime.stores"),
    ("stores/planted.py", "import duetime.engine", DOWN, "duetime.stores.planted -> duetime.engine"),
    ("cli/planted.py", "import duetime.frameworks.flask", DOWN, "cli.planted -> duetime.frameworks.flask"),
    ("planted.py", "", DOWN, "- duetime.planted\n"),
    ("model/planted.py", "import asyncpg", "asyncpg stays inside", "duetime.model.planted -> asyncpg"),
    ("engine/planted.py", "import msgspec", "msgspec stays inside", "duetime.engine.planted -> msgspec"),
    ("model/planted.py", "from dateutil import rrule", "python-dateutil is only", "planted -> dateutil"),
    ("engine/planted.py", "import rich.table", "typer and rich stay inside", "engine.planted -> rich"),
    ("stores/planted.py", "import uvloop", "uvloop stays at the entry", "stores.planted -> uvloop"),
    ("frameworks/flask.py", "from fastapi import FastAPI", FRAMEWORK, "frameworks.flask -> fastapi"),
    ("engine/planted.py", "import django.db", FRAMEWORK, "duetime.engine.planted -> django"),
    ("engine/planted.py", "import psycopg", "Database drivers of callers", "engine.planted -> psycopg"),
    ("invokers/planted.py", "import aiohttp", CLIENT, "duetime.invokers.planted -> aiohttp"),
    ("model/planted.py", "from cryptography.hazmat import primitives", CLIENT, "planted -> cryptography"),
    ("engine/planted.py", "import momentum.model", "Duetime does not know", "planted -> momentum.model"),
    ("../momentum/model.py", "import momentum.database", MOMENTUM, "momentum.model -> momentum.database"),
    ("../momentum/planted.py", "", MOMENTUM, "- momentum.planted\n"),
)  # fmt: skip


@pytest.mark.slow
def test_forbidden_imports_are_reported(tmp_path: Path) -> None:
    """They are added to a copy of the package, and each is reported under its contract."""
    for package in ("duetime", "momentum"):
        ignored = shutil.ignore_patterns("__pycache__", "_ui")
        shutil.copytree(PACKAGE.parent / package, tmp_path / package, ignore=ignored)
    for file, line, _, _ in PLANTED:
        with (tmp_path / "duetime" / file).open("a") as planted:
            planted.write(f"\n{line}\n")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stdout
    report = done.stdout.split("Broken contracts")[1]
    begins = {contract: report.find(f"\n{contract}") for _, _, contract, _ in PLANTED}
    for file, line, contract, reported in PLANTED:
        assert begins[contract] > 0, report
        end = min((begin for begin in begins.values() if begin > begins[contract]), default=len(report))
        assert reported in report[begins[contract] : end], (file, line, report)
