"""A server process for tests: runs without privileges, is ready when its log says so, and is ended by its
pid."""

from __future__ import annotations

import atexit
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict

# Below the kernel's range for outgoing connections, so that a stopped server can use its port again.
PORTS = range(20_000, 32_000)
TIMEOUT = 120.0  # seconds
SIGNAL_INTERVAL = 2.0
_given: set[int] = set()


class ServerFailed(RuntimeError):
    """A test server could not be found, started or stopped; the message says what to do."""


class Account(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def account() -> Account:
    """The account for servers: an unprivileged one if the tests run as root, because servers refuse root."""
    if os.geteuid() != 0:
        return {}
    unprivileged = pwd.getpwnam("nobody")
    return {"user": unprivileged.pw_uid, "group": unprivileged.pw_gid, "extra_groups": []}


def give(path: Path) -> None:
    """Make the account that servers run as the owner of `path`."""
    owner = account()
    if owner:
        os.chown(path, owner["user"], owner["group"])


def _own_ports() -> range:
    """The ports of this test process. Another process must not get the same port before the server listens on
    it."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return PORTS[worker :: max(worker + 1, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))]


def free_port() -> int:
    """A port of this machine that is not in use, different each time."""
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
    raise ServerFailed(
        f"no free port between {PORTS.start} and {PORTS.stop}: stop the programs that use them"
    )


class ServerProcess:
    """A running server. It is ready when `ready_text` is in its log. It has its own session, so Ctrl-C does
    not reach it. Its owner is an unprivileged account, or with `{}` the account of the tests."""

    def __init__(
        self,
        command: Sequence[str | Path],
        ready_text: str,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        owner: Account | None = None,
    ) -> None:
        self._name = Path(command[0]).name
        self._ready_text = ready_text
        self._log: deque[str] = deque(maxlen=200)
        self._ready_or_ended = threading.Event()
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
            **(account() if owner is None else owner),
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
        """The last lines of the server's log."""
        return "".join(self._log)

    def wait_ready(self) -> None:
        self._ready_or_ended.wait(TIMEOUT)
        if not self._is_ready:
            self.end(signal.SIGKILL)
            raise ServerFailed(f"{self._name} did not start; its last log lines:\n{self.log}")

    def end(self, number: signal.Signals) -> None:
        """Send the signal and wait until the server and all its children have ended. The signal is repeated:
        Redis ignores it while it begins an append-only file."""
        give_up_at = time.monotonic() + TIMEOUT
        while self.is_running and number is not signal.SIGKILL and time.monotonic() < give_up_at:
            self._process.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(SIGNAL_INTERVAL)
        if self.is_running:
            os.killpg(self.pid, signal.SIGKILL)  # its children, too: they could not clean up after it
            self._process.wait(TIMEOUT)
        # The pipe closes when the last child has ended, not only the parent.
        self._reader.join(TIMEOUT)

    def _read_log(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._log.append(line)
                if self._ready_text in line:
                    self._is_ready = True
                    self._ready_or_ended.set()
        self._ready_or_ended.set()


class Server:
    """`with` starts it, and finally stops it and removes its folder."""

    kind: str  # in the name of its folder

    def __init__(self) -> None:
        self.port = free_port()
        self._folder: Path | None = None
        self._process: ServerProcess | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running

    @property
    def log(self) -> str:
        return self._process.log if self._process else ""

    def start(self) -> None:
        """Start and wait until connections are accepted."""
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop and remove the data. May be called again."""
        atexit.unregister(self.close)
        self.stop()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _new_folder(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix=f"duetime-{self.kind}-"))
        atexit.register(self.close)
        give(folder)
        return folder
