"""`--processes N`: this process starts the node N times and does nothing else. A process that was killed is
started again; one that ends with an error ends all, as it would alone."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from duetime.cli.format import say
from duetime.config import Settings
from duetime.model import duration
from duetime.model.instant import SECOND

EXTRA_GRACE = 5 * SECOND
RESTART_DELAY = 1.0  # seconds
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


def run_processes(settings: Settings) -> int:
    """Until SIGINT or SIGTERM. Returns the exit status."""
    command = [sys.executable, *sys.orig_argv[1:], "--processes", "1"]  # the last flag wins
    timeout = (duration.parse(settings.grace, "grace") + EXTRA_GRACE) / SECOND
    return asyncio.run(ProcessGroup(command, settings.processes, timeout).run())


class ProcessGroup:
    def __init__(self, command: Sequence[str], size: int, timeout: float) -> None:
        self._command = command
        self._size = size
        self._timeout = timeout
        self._stopping = asyncio.Event()
        self._children: dict[int, asyncio.subprocess.Process] = {}
        self._status = 0

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._pass_on, number)
        async with asyncio.TaskGroup() as group:
            for place in range(self._size):
                group.create_task(self._keep(place))
        return self._status

    async def _keep(self, place: int) -> None:
        """One process after the other, until this one stops."""
        while not self._stopping.is_set():
            child = await asyncio.create_subprocess_exec(*self._command, preexec_fn=_end_with_parent())
            self._children[place] = child
            say(f"process {place + 1} of {self._size}: pid {child.pid}")
            if self._stopping.is_set():
                send(child, signal.SIGTERM)  # the signal came while it started
            await self._ended(child)
            if self._stopping.is_set():
                await end(child, self._timeout)
            elif child.returncode is not None and child.returncode >= 0:
                say(f"pid {child.pid} ended with status {child.returncode}: all processes stop")
                self._status = child.returncode
                self._pass_on(signal.SIGTERM)
            else:
                say(f"pid {child.pid} was killed: another process starts")
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), RESTART_DELAY)

    async def _ended(self, child: asyncio.subprocess.Process) -> None:
        """Until it has ended, or this process was asked to stop."""
        waits = [asyncio.create_task(child.wait()), asyncio.create_task(self._stopping.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()

    def _pass_on(self, number: signal.Signals) -> None:
        self._stopping.set()
        for child in self._children.values():
            if not typed(number):
                send(child, number)


def send(child: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """The method of asyncio may take the exit status away from the task that waits for it."""
    if child.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(child.pid, number)


async def end(child: asyncio.subprocess.Process, timeout: float) -> None:
    """Wait for a process that was asked to stop; kill it if it takes much longer than its grace time."""
    try:
        await asyncio.wait_for(child.wait(), timeout)
    except TimeoutError:
        say("the node hangs: killed")
        send(child, signal.SIGKILL)
        await child.wait()


def typed(number: signal.Signals) -> bool:
    """Ctrl-C reaches every process in the terminal's foreground, the child too."""
    return number is signal.SIGINT and sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()


def _end_with_parent() -> Callable[[], object] | None:
    """In the child: SIGTERM when this process dies without having stopped it. Only Linux can do that."""
    control = getattr(ctypes.CDLL(None), "prctl", None)
    return None if control is None else lambda: control(END_WITH_PARENT, int(signal.SIGTERM))
