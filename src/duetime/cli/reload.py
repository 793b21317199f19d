"""`--reload`: the node runs as a child process that is restarted when a source file changes. This process
imports none of the user's code: if a file cannot be imported, the child ends, and the next change starts
another.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from duetime.cli.files import Snapshot, changed_files, snapshot, source_folders
from duetime.cli.format import say
from duetime.cli.processes import EXTRA_GRACE, end, send, typed
from duetime.config import Settings
from duetime.model import duration
from duetime.model.instant import SECOND

FLAG = "--reload"
CHECK_INTERVAL = 0.5  # seconds
GRACE = "2s"  # a restart should not wait long; jobs that need longer are given back and run again
MAX_NAMED = 3


def run_reloading(settings: Settings) -> None:
    """Until SIGINT or SIGTERM."""
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # two changes within one second would leave a stale file
    grace = settings.grace
    if not settings.given("grace"):
        environment["DUETIME_GRACE"] = grace = GRACE
    command = [sys.executable, *(word for word in sys.orig_argv[1:] if word != FLAG)]
    wait = duration.parse(grace, "grace") + duration.parse(settings.stop_delay, "stop_delay")
    timeout = (wait + EXTRA_GRACE) / SECOND
    asyncio.run(Reloader(command, environment, source_folders(), timeout).run())


class Reloader:
    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folders: Sequence[Path], timeout: float
    ) -> None:
        self._command = command
        self._environment = environment
        self._folders = folders
        self._timeout = timeout
        self._stopping = asyncio.Event()
        self._child: asyncio.subprocess.Process | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._pass_on, number)
        seen = snapshot(self._folders)
        say(f"watching {len(seen)} source files in {', '.join(map(str, self._folders))}")
        while not self._stopping.is_set():
            self._child = await asyncio.create_subprocess_exec(*self._command, env=self._environment)
            seen = await self._until_change(seen, self._child)
            await self._end(self._child)

    async def _until_change(self, seen: Snapshot, child: asyncio.subprocess.Process) -> Snapshot:
        reported = False
        while not await self._stopped_within(CHECK_INTERVAL):
            now = await asyncio.to_thread(snapshot, self._folders)
            if changed := changed_files(seen, now):
                say(f"changed: {_names(changed)}; restarting")
                return now
            if child.returncode is not None and not reported:
                say(f"the node ended with status {child.returncode}; waiting for a change")
                reported = True
        return seen

    async def _stopped_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
        return self._stopping.is_set()

    async def _end(self, child: asyncio.subprocess.Process) -> None:
        if not self._stopping.is_set():
            send(child, signal.SIGTERM)
        await end(child, self._timeout)

    def _pass_on(self, number: signal.Signals) -> None:
        self._stopping.set()
        if self._child is not None and not typed(number):
            send(self._child, number)


def _names(paths: list[str]) -> str:
    names = [os.path.relpath(path) for path in paths[:MAX_NAMED]]
    return ", ".join(names) + (f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else "")
