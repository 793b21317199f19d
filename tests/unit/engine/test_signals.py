"""A signal may come before there is a node to tell (G11)."""

from __future__ import annotations

import os
import signal
from asyncio import Event

from duetime.engine.node.loop import Signals


async def test_a_second_signal_that_came_too_early_is_not_forgotten() -> None:
    interrupted: list[str] = []
    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        await signals.wait(Event())
        signals.on_second(lambda: interrupted.append("patient"))
        assert interrupted == []
        second = Event()
        signals.on_second(second.set)
        os.kill(os.getpid(), signal.SIGINT)
        await second.wait()
        signals.on_second(lambda: interrupted.append("at once"))
    assert interrupted == ["at once"]
