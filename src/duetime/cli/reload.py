"""`--reload`: the worker runs as a child process that is started anew when a source file changes. Nothing of the user's is imported here,
so that code which cannot even be read does no harm: the child ends, and the next change starts another."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from duetime.cli.output import say
from duetime.cli.sources import Snapshot, changes, snapshot, source_folders
from duetime.config import Settings
from duetime.model import duration
from duetime.model.instant import SECOND

FLAG = "--reload"
LOOK_EVERY = 0.5  # seconds
GRACE = "2s"  # whoever changes the code wants to see it run; jobs that need longer are given back and run again
BEYOND_GRACE = 5 * SECOND
MOST_NAMED = 3


def run_reloading(settings: Settings) -> None:
    """Until SIGINT or SIGTERM."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # two changes within one second would leave a stale file behind
    grace = settings.grace
    if not settings.given("grace"):
        environment["DUETIME_GRACE"] = grace = GRACE
    command = [sys.executable, *(word for word in sys.orig_argv[1:] if word != FLAG)]
    patience = (duration.parse(grace, "grace") + BEYOND_GRACE) / SECOND
    asyncio.run(Reloader(command, environment, source_folders(), patience).run())


class Reloader:
    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folders: Sequence[Path], patience: float) -> None:
        self._command = command
        self._environment = environment
        self._folders = folders
        self._patience = patience
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
        told = False
        while not await self._stopped_within(LOOK_EVERY):
            now = await asyncio.to_thread(snapshot, self._folders)
            if changed := changes(seen, now):
                say(f"changed: {_names(changed)}; starting anew")
                return now
            if child.returncode is not None and not told:
                say(f"the worker ended with status {child.returncode}; waiting for a change")
                told = True
        return seen

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True

    async def _end(self, child: asyncio.subprocess.Process) -> None:
        """In good order; one that does not even end after its grace hangs."""
        if child.returncode is None and not self._stopping.is_set():
            child.terminate()
        try:
            async with asyncio.timeout(self._patience):
                await child.wait()
        except TimeoutError:
            say("the worker hangs: ended by force")
            child.kill()
            await child.wait()

    def _pass_on(self, number: signal.Signals) -> None:
        self._stopping.set()
        if self._child is not None and self._child.returncode is None and not _typed(number):
            self._child.send_signal(number)


def _typed(number: signal.Signals) -> bool:
    """Ctrl-C reaches every process in the terminal's foreground, the child too."""
    return number is signal.SIGINT and sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()


def _names(paths: list[str]) -> str:
    shown = [os.path.relpath(path) for path in paths[:MOST_NAMED]]
    return ", ".join(shown) + (f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else "")
