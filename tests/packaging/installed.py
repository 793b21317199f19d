"""What was built, in a virtual environment of its own: nothing of this checkout is to be seen from there."""

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
PATIENCE = 60.0


class Installed:
    """An empty virtual environment, and then `what` in it: locked versions only, and what is fetched has the locked hashes."""

    def __init__(self, folder: Path, *what: str) -> None:
        self._folder = folder
        self._programs = folder / "venv" / "bin"
        self._uv("venv", "--python", sys.executable, str(folder / "venv"))
        locked = [f"--constraint={ROOT / 'requirements' / name}" for name in ("run.txt", "dev.txt")]
        self._uv("pip", "install", "--python", str(self._programs / "python"), *locked, *what)

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._programs / program), *arguments]
        return subprocess.run(
            command,
            cwd=self._folder,
            env=_stranger(),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )

    def python(self, script: str) -> str:
        """What the script printed; one that fails fails the test."""
        done = self.run("python", "-c", script)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def serving(self, ready: str, *options: str) -> Iterator[re.Match[str]]:
        """`duetime serve`, once what it prints matches `ready`. It ends in good order."""
        command = [str(self._programs / "duetime"), "serve", "--store", "sqlite:///served.db", "--port", "0", *options]
        with TemporaryFile("w+") as log:
            process = subprocess.Popen(command, cwd=self._folder, env=_stranger(), stdout=log, stderr=log)
            try:
                yield _wait_for(re.compile(ready, re.M), log.fileno(), process)
                process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE) == 0
            finally:
                process.kill()
                process.wait()

    def _uv(self, *arguments: str) -> None:
        done = subprocess.run([str(UV), "--quiet", *arguments], cwd=self._folder, capture_output=True, text=True, check=False)
        if done.returncode:
            why = " ".join(line.strip() for line in done.stderr.splitlines()[:3])
            pytest.fail(
                f"`uv {arguments[0]}` failed; packages come from the index or from uv's cache, is it reachable? {why}", pytrace=False
            )


def until_ready(address: str) -> None:
    """A machine that stood still for a moment makes a service unready for some seconds."""
    deadline = time.monotonic() + PATIENCE
    while (answer := _ready(address)) is not None:
        assert time.monotonic() < deadline, answer
        time.sleep(0.1)


def _ready(address: str) -> str | None:
    """Why it is not."""
    try:
        urlopen(f"{address}/readyz").close()
    except HTTPError as refused:
        with refused:
            return refused.read().decode()
    return None


def _stranger() -> dict[str, str]:
    """The environment of somebody who has never heard of this checkout."""
    ours = ("PYTHON", "DUETIME_", "PYTEST_", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def _wait_for(ready: re.Pattern[str], log: int, process: subprocess.Popen[bytes]) -> re.Match[str]:
    deadline = time.monotonic() + PATIENCE
    while (found := ready.search(text := os.pread(log, 100_000, 0).decode())) is None:
        assert process.poll() is None, f"it ended by itself: {text}"
        assert time.monotonic() < deadline, f"it never printed {ready.pattern!r}: {text}"
        time.sleep(0.01)
    return found
