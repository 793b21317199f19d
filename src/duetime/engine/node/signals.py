"""SIGINT and SIGTERM: the first asks for an orderly end, the second for an immediate one."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from types import TracebackType


class Signals:
    """While entered, the first signal sets `received`; each further signal interrupts. If there is nothing to
    interrupt yet, `on_second` does it later."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.received = asyncio.Event()
        self._interrupted = False
        self._interrupt: Callable[[], None] = lambda: None

    def __enter__(self) -> Signals:
        for number in self.NUMBERS:
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in self.NUMBERS:
            asyncio.get_running_loop().remove_signal_handler(number)

    def on_second(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        if self._interrupted:
            interrupt()

    async def wait(self, ended: asyncio.Event) -> None:
        """Until a signal comes or the node has ended."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self.received, ended)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    def _on_signal(self) -> None:
        if self.received.is_set():
            self._interrupted = True
            self._interrupt()
        self.received.set()
