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

from tests.servers.process import ServerFailed

TIMEOUT = 120.0  # seconds
# A node without the API answers health checks.
_ADDRESS = re.compile(r"^\s*(?:API\s+(\S+)/api/v1|health\s+(\S+)/healthz)", re.M)


class Service:
    """Starts the service and waits until it answers; `address` is its base URL. It has its own session, so
    Ctrl-C does not reach it."""

    def __init__(
        self,
        store: str,
        log: Path,
        *options: str,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """`folder` is the one it runs in; this one if it is not given."""
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
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**own, **(environment or {})},
                start_new_session=True,
            )
        try:
            self.address = self._wait_for_address()
        except BaseException:
            self.__exit__()
            raise

    def _wait_for_address(self) -> str:
        deadline = time.monotonic() + TIMEOUT
        while (found := _ADDRESS.search(self.output)) is None:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise ServerFailed(f"duetime serve did not start; its log:\n{self.output}")
            time.sleep(0.01)
        return found[1] or found[2]

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
