"""SIGINT and SIGTERM: the first asks for an orderly end, the second for an immediate one."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import TracebackType


class Signals:
    """While entered, `received` is set by the first signal; each further one interrupts, even one that found nothing to interrupt yet."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.received = asyncio.Event()
        self._impatient = False
        self._interrupt: Callable[[], None] = lambda: None

    def __enter__(self) -> Signals:
        for number in self.NUMBERS:
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal)
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        for number in self.NUMBERS:
            asyncio.get_running_loop().remove_signal_handler(number)

    def on_second(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        if self._impatient:
            interrupt()

    async def wait(self, ended: asyncio.Event) -> None:
        """Until a signal, or until there is nothing left to be stopped by one."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self.received, ended)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    def _on_signal(self) -> None:
        if self.received.is_set():
            self._impatient = True
            self._interrupt()
        self.received.set()
