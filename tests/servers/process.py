"""One server process of our own: started without privileges, watched through its log, ended by its own pid."""

from __future__ import annotations

import os
import pwd
import random
import signal
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

# Below the range from which the kernel takes ports for outgoing connections, so that a stopped server finds its port again.
PORTS = range(20_000, 32_000)
PATIENCE = 60.0
_given: set[int] = set()


class ServerFailed(RuntimeError):
    """A server of the tests could not be found, started or stopped; the message says what to do."""


class Account(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def account() -> Account:
    """Whom servers run as: `nobody` when we are root (they refuse root), else ourselves."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def give(path: Path) -> None:
    """Hand `path` to the account that servers run as."""
    owner = account()
    if owner:
        os.chown(path, owner["user"], owner["group"])


def _own_ports() -> range:
    """Those of this process of the test run: until its server listens on it, a port is not to be given to anybody else."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return PORTS[worker :: max(worker + 1, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))]


def free_port() -> int:
    """A port of this machine on which nobody listens, and a different one each time."""
    for port in random.SystemRandom().sample(_own_ports(), 200):
        if port in _given:
            continue
        with socket.socket() as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind(("127.0.0.1", port))
            except OSError:
                continue
            _given.add(port)
            return port
    raise ServerFailed(f"no free port between {PORTS.start} and {PORTS.stop}: stop what listens there")


class ServerProcess:
    """A running server. It is ready once `ready_text` stands in its log; its session is its own, so Ctrl-C does not reach it."""

    def __init__(self, command: Sequence[str | Path], ready_text: str, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._name = Path(command[0]).name
        self._ready_text = ready_text
        self._log: deque[str] = deque(maxlen=200)
        self._ready_or_gone = threading.Event()
        self._is_ready = False
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            **account(),
        )
        self._reader = threading.Thread(target=self._read_log, name=f"{self._name} log", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def log(self) -> str:
        """The last lines the server wrote."""
        return "".join(self._log)

    def wait_ready(self) -> None:
        self._ready_or_gone.wait(PATIENCE)
        if not self._is_ready:
            self.end(signal.SIGKILL)
            raise ServerFailed(f"{self._name} did not start; the end of its log:\n{self.log}")

    def end(self, number: signal.Signals) -> None:
        """Send the signal and wait until the server and all its children have gone."""
        if self.is_running:
            self._process.send_signal(number)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(PATIENCE)
        # The pipe ends when the last child that holds it has gone, not only the parent.
        self._reader.join(PATIENCE)

    def _read_log(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._log.append(line)
                if self._ready_text in line:
                    self._is_ready = True
                    self._ready_or_gone.set()
        self._ready_or_gone.set()
