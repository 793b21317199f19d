"""The plugin with which `make test` repeats tests that failed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pathlib, pytest

@pytest.mark.parametrize("number", range({flaky}))
def test_flaky(number):
    path = pathlib.Path(f"ran-{{number}}")
    ran = path.exists()
    path.touch()
    assert ran

def test_broken():
    assert not {broken}

def test_sound():
    pass
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", f"-opythonpath={ROOT}", *options]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("flaky", "broken", "fails", "last_line"),
    [(2, False, False, "2 passed"), (3, False, True, "3 failed"), (1, True, True, "1 failed, 1 passed")],
)  # fmt: skip
def test_flaky_tests_are_listed_and_three_of_them_fail_the_run(
    tmp_path: Path, flaky: int, broken: bool, fails: bool, last_line: str
) -> None:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "test_them.py").write_text(TESTS.format(flaky=flaky, broken=broken))
    assert run(tmp_path).returncode == 1
    repeated = run(tmp_path, "--last-failed", "-p", "tools.flaky_tests")
    lines = repeated.stdout.splitlines()
    listed = [line for line in lines if line.startswith("FLAKY")]
    assert listed == [f"FLAKY test_them.py::test_flaky[{number}]" for number in range(flaky)]
    assert repeated.returncode == fails, repeated.stdout
    assert f" {last_line}" in lines[-1], repeated.stdout
