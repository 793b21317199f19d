"""Tests are collected without the drivers of stores that they do not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMPORTED = """
import sys, tests.conftest, tests.app.conftest, tests.stores.conftest
print(*sys.modules)
"""
DRIVERS = {"asyncmy", "asyncpg", "hiredis", "psutil", "psycopg", "pymysql", "redis"}


def test_conftests_import_no_driver() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "duetime.stores.sqlite" in done.stdout.split()
    assert DRIVERS.intersection(done.stdout.split()) == set()
