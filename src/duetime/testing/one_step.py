"""Runs coroutines that never wait, such as the verbs of the memory store, without an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

Answer = TypeVar("Answer")


class WouldWait(RuntimeError):
    """A coroutine that must finish in one step waits for something."""


def run_in_one_step(coroutine: Coroutine[Any, Any, Answer]) -> Answer:
    """Run a coroutine that awaits nothing, such as a verb of the memory store."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]  # what the coroutine returns
    coroutine.close()
    raise WouldWait(
        f"{getattr(coroutine, '__qualname__', coroutine)} has to wait, but sync code cannot: await it"
    )
