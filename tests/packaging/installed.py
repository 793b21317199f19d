"""The built package in a separate virtual environment that cannot see this checkout."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
TIMEOUT = 120.0  # seconds


class Installed:
    """An empty virtual environment with `requirements` installed, in locked versions with locked hashes."""

    def __init__(self, folder: Path, *requirements: str, python: str = sys.executable) -> None:
        self._folder = folder
        self._programs = folder / "venv" / "bin"
        self._uv("venv", "--python", python, str(folder / "venv"))
        locked = [f"--constraint={ROOT / 'requirements' / name}" for name in ("run.txt", "dev.txt")]
        self._uv("pip", "install", "--python", str(self._programs / "python"), *locked, *requirements)

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._programs / program), *arguments]
        return subprocess.run(
            command,
            cwd=self._folder,
            env=_clean_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT,
            stdin=subprocess.DEVNULL,
        )

    def python(self, script: str) -> str:
        """The output of the script, which must succeed."""
        done = self.run("python", "-c", script)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def serving(self, ready: str, *options: str) -> Iterator[re.Match[str]]:
        """Run `duetime serve`; wait until its output matches `ready`, and stop it in the end."""
        command = [
            str(self._programs / "duetime"),
            "serve",
            "--store",
            "sqlite:///served.db",
            "--port",
            "0",
            *options,
        ]
        with TemporaryFile("w+") as log:
            process = subprocess.Popen(
                command, cwd=self._folder, env=_clean_environment(), stdout=log, stderr=log
            )
            try:
                yield _wait_for(re.compile(ready, re.M), log.fileno(), process)
                process.send_signal(signal.SIGTERM)
                assert process.wait(TIMEOUT) == 0
            finally:
                process.kill()
                process.wait()

    def _uv(self, *arguments: str) -> None:
        done = subprocess.run(
            [str(UV), "--quiet", *arguments], cwd=self._folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            why = " ".join(line.strip() for line in done.stderr.splitlines()[:3])
            pytest.fail(
                f"`uv {arguments[0]}` failed; is the package index or uv's cache available? {why}",
                pytrace=False,
            )


def interpreter(version: str) -> str | None:
    """A Python of this version on this machine: of the system, of uv or of pyenv."""
    found = subprocess.run(
        [str(UV), "python", "find", "--no-python-downloads", version],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    folders = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    others = [str(path) for path in sorted(folders.glob(f"{version}.*/bin/python"))]
    return found.stdout.strip() if found.returncode == 0 else others[-1] if others else None


def until_ready(address: str) -> None:
    """A slow machine can make a service unready for some seconds."""
    deadline = time.monotonic() + TIMEOUT
    while (answer := _not_ready_reason(address)) is not None:
        assert time.monotonic() < deadline, answer
        time.sleep(0.1)


def _not_ready_reason(address: str) -> str | None:
    """The reason if it is not ready."""
    try:
        urlopen(f"{address}/readyz").close()
    except HTTPError as refused:
        with refused:
            return refused.read().decode()
    return None


def _clean_environment() -> dict[str, str]:
    """The environment without variables of this checkout."""
    ours = ("PYTHON", "DUETIME_", "PYTEST_", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def _wait_for(ready: re.Pattern[str], log: int, process: subprocess.Popen[bytes]) -> re.Match[str]:
    deadline = time.monotonic() + TIMEOUT
    while (found := ready.search(text := os.pread(log, 100_000, 0).decode())) is None:
        assert process.poll() is None, f"the service ended: {text}"
        assert time.monotonic() < deadline, f"no match for {ready.pattern!r}: {text}"
        time.sleep(0.01)
    return found
