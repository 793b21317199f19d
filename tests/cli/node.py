"""A node in its own process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("duetime"))


def python_path(folder: Path) -> str:
    """This folder, and those that the tests themselves run with."""
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))


class Node:
    """A running `duetime serve` or `duetime worker`; stopped by pid when the test ends."""

    def __init__(self, folder: Path, *words: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [COMMAND, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "DUETIME_PORT": "0", **environment}, start_new_session=True,
        )  # fmt: skip

    def until(self, words: str) -> str:
        """Its output on stdout up to the line with these words."""
        assert self.process.stdout is not None
        said = ""
        for line in self.process.stdout:
            said += line
            if words in line:
                return said
        raise AssertionError(
            f"ended without saying {words!r}: "
            f"{said}{self.process.stderr.read() if self.process.stderr else ''}"
        )

    def end(self, *signals: signal.Signals) -> tuple[int, str]:
        for number in signals:
            self.process.send_signal(number)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err

    def kill(self) -> None:
        """With its children: one that goes on running would keep the pipes open."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
