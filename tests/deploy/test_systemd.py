"""The units of deploy/systemd: accepted by systemd, hardened, and consistent with the program."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from duetime.config import TABLE
from tests.deploy.stack import BIN, DEPLOY, seconds
from tests.servers.debian import Program, unpacked

UNITS = sorted((DEPLOY / "systemd").iterdir())
MAX_EXPOSURE = 20  # tenths, of 100: lower is safer
Sections = dict[str, list[str]]


def options(unit: Path) -> Sections:
    """The values of each option, in order."""
    found: Sections = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", unit.read_text("utf-8"), re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


@pytest.fixture(scope="module")
def analyze() -> Program:
    return unpacked("systemd-analyze", "systemd")


@pytest.fixture
def copies(tmp_path: Path) -> list[Path]:
    """As they are installed: the template with an instance, the program at a place that exists and has no
    space in its path."""
    place = tmp_path / "bin"
    place.symlink_to(BIN)
    made = []
    for unit in UNITS:
        copy = tmp_path / unit.name.replace("@.", "@mail.")
        copy.write_text(unit.read_text("utf-8").replace("/opt/duetime/bin/", f"{place}/"))
        made.append(copy)
    return made


def test_units_are_accepted(analyze: Program, copies: list[Path]) -> None:
    done = subprocess.run(
        [str(analyze.path), "verify", *map(str, copies)],
        capture_output=True,
        text=True,
        check=False,
        env=dict(analyze.environment) or None,
    )
    ours = [line for line in done.stderr.splitlines() if "duetime" in line]
    assert (done.returncode, ours) == (0, []), done.stderr


def test_misspelt_option_is_found(analyze: Program, copies: list[Path]) -> None:
    """Otherwise the test above could not fail."""
    copies[0].write_text(copies[0].read_text().replace("NoNewPrivileges", "NoNewPrivilege"))
    done = subprocess.run(
        [str(analyze.path), "verify", str(copies[0])],
        capture_output=True,
        text=True,
        check=False,
        env=dict(analyze.environment) or None,
    )
    assert "NoNewPrivilege" in done.stderr


def test_units_are_hardened(analyze: Program, copies: list[Path]) -> None:
    for copy in copies:
        command = [str(analyze.path), "security", "--offline=true", f"--threshold={MAX_EXPOSURE}", str(copy)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=dict(analyze.environment) or None
        )
        assert done.returncode == 0, done.stdout[-300:] + done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_settings_exist_and_the_grace_time_fits(unit: Path) -> None:
    found = options(unit)
    settings = dict(value.split("=", 1) for value in found["Environment"])
    assert {name.removeprefix("DUETIME_").lower() for name in settings} <= {*TABLE, "config"}
    assert float(found["TimeoutStopSec"][0]) >= seconds(settings["DUETIME_GRACE"]) + 10
    assert found["KillMode"] == ["mixed"]  # tasks in their own processes must not get the signal
    assert "DUETIME_STORE" not in settings


def test_commands_are_those_of_the_program() -> None:
    done = subprocess.run(
        [str(BIN / "duetime"), "serve", "--help"], capture_output=True, text=True, check=False
    )
    for unit in UNITS:
        (command,) = options(unit)["ExecStart"]
        program, verb, *words = shlex.split(command)
        assert (program, verb) == ("/opt/duetime/bin/duetime", "serve")
        assert all(word in done.stdout for word in words if word.startswith("--"))
