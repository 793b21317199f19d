"""`duetime serve` in its own process on a free port."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

TIMEOUT = 60.0  # seconds
_ADDRESS = re.compile(r"^\s*API\s+(\S+)/api/v1", re.M)


class Service:
    """Starts the service and waits until it answers; `address` is its base URL."""

    def __init__(
        self, store: str, log: Path, *options: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self._log = log
        command = [
            str(Path(sys.executable).with_name("duetime")),
            "serve",
            "--store",
            store,
            "--port",
            "0",
            *options,
        ]
        own = {name: value for name, value in os.environ.items() if not name.startswith("DUETIME_")}
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=output, env={**own, **(environment or {})}
            )
        self.address = self._wait_for_address()

    def _wait_for_address(self) -> str:
        deadline = time.monotonic() + TIMEOUT
        while (found := _ADDRESS.search(self.output)) is None:
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.01)
        return found[1]

    @property
    def output(self) -> str:
        return self._log.read_text()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(TIMEOUT)
            finally:
                self.process.kill()
        self.process.wait()
