"""So that the loop is not kept from its work. Less to collect: what a node has loaded when it starts stays until it ends, what it makes for
a call goes with the call, and drafts of thousands of jobs stay until they are stored. And less to wait for: threads that compute."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS_BETWEEN_COLLECTIONS = 10_000
USUAL_SHARE = 0.005  # seconds; Python's own
SHARE = 0.0005


def share_the_interpreter() -> None:
    """So that jobs start in time while plain functions compute in threads of this process.

    A thread that computes keeps the interpreter for 5 ms whenever the loop wants it back, and the loop gives it away several times for each
    job. Beside one such thread jobs started 60 ms late on PostgreSQL, and on SQLite, whose writer stands in the same line, 0.8 s; now 2 or
    3 ms (bench: beside). What computes loses a few percent at most. Where somebody chose another share, it is theirs to decide."""
    if sys.getswitchinterval() == USUAL_SHARE:
        sys.setswitchinterval(SHARE)


def spare_the_collector() -> None:
    """For processes that are a node and nothing else: in others it is not ours to decide.

    A full collection looks at everything there is: 50 ms for the modules of the service, in which no job starts. What is frozen is not
    looked at again. And by default a collection comes with every 700 objects that stay for a moment, as those of each job do: what was due
    together was looked at again and again while it ran, for a tenth of a worker's time, and none of it was garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)


@contextmanager
def without_collecting() -> Iterator[None]:
    """For thousands of objects that are made in one go and all stay: to look for garbage among them costs a sixth of the time, and there is
    none. Not for anything that waits: the process may have other things to collect."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
