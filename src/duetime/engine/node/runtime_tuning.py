"""Tuning of the interpreter, so that the event loop runs without long pauses: fewer garbage collections, and
shorter waits for threads that compute."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS_BETWEEN_COLLECTIONS = 10_000
DEFAULT_SWITCH_INTERVAL = 0.005  # seconds
SWITCH_INTERVAL = 0.0005


def share_the_interpreter() -> None:
    """Jobs start in time while plain functions compute in threads of this process.

    By default a computing thread keeps the interpreter for 5 ms each time the event loop needs it, several
    times for each job. With one such thread jobs started 60 ms late on PostgreSQL and 0.8 s late on SQLite;
    with the shorter interval 2 or 3 ms (bench: beside). The computing thread loses a few percent at most. An
    interval that the program has set itself stays."""
    if sys.getswitchinterval() == DEFAULT_SWITCH_INTERVAL:
        sys.setswitchinterval(SWITCH_INTERVAL)


def spare_the_collector() -> None:
    """Only for processes that run a node and nothing else.

    A full collection reads every object: 50 ms for the modules of the service, during which no job starts.
    Frozen objects are not read again. By default a collection runs after every 700 new objects; jobs that run
    together were read again and again, for a tenth of a worker's time, and none of them was garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


@contextmanager
def without_collecting() -> Iterator[None]:
    """For code that creates thousands of objects that all stay: looking for garbage among them costs a sixth
    of the time and finds none. Not for code that awaits: the rest of the process needs the collector."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
