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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("errors.py", "import duetime.model.duration", "Imports point down only"),
        ("model/planted.py", "import duetime.stores", "Imports point down only"),
        ("stores/planted.py", "import duetime.engine", "Imports point down only"),
        ("planted.py", "", "Imports point down only"),
        ("model/planted.py", "import asyncpg", "asyncpg stays inside"),
        ("engine/planted.py", "import msgspec", "msgspec stays inside"),
        ("model/planted.py", "from dateutil import rrule", "python-dateutil is only for tests"),
        ("engine/planted.py", "import rich.table", "typer and rich stay inside"),
        ("stores/planted.py", "import uvloop", "uvloop stays at the entry points"),
        ("cli/planted.py", "import duetime.frameworks.flask", "Imports point down only"),
        ("frameworks/flask.py", "from fastapi import FastAPI", "A web framework stays inside"),
        ("engine/planted.py", "import django.db", "A web framework stays inside"),
        ("engine/planted.py", "import psycopg", "Database drivers of callers"),
        ("invokers/planted.py", "import aiohttp", "The HTTP client and cryptography"),
        ("engine/planted.py", "import momentum.model", "Duetime does not know Momentum"),
        ("../momentum/model.py", "import momentum.database", "Momentum: imports point down only"),
        ("../momentum/planted.py", "", "Momentum: imports point down only"),
        (
            "model/planted.py",
            "from cryptography.hazmat import primitives",
            "The HTTP client and cryptography",
        ),
    ],
)
def test_forbidden_import_is_reported(tmp_path: Path, file: str, line: str, broken: str) -> None:
    """The import is added to a copy of the package."""
    copy = tmp_path / "duetime"
    for package in ("duetime", "momentum"):
        ignored = shutil.ignore_patterns("__pycache__", "_ui")
        shutil.copytree(PACKAGE.parent / package, tmp_path / package, ignore=ignored)
    for shelf in ("engine", "stores"):
        (copy / shelf).mkdir(exist_ok=True)
        (copy / shelf / "__init__.py").touch()
    with (copy / file).open("a") as planted:
        planted.write(f"\n{line}\n")
    done = lint(tmp_path)
    assert done.returncode == 1, done.stdout
    assert f"{broken}" in done.stdout.split("Broken contracts")[1], done.stdout
