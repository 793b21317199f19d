"""Less to collect: what a node has loaded when it starts stays until it ends, what it makes for a call goes with the call, and drafts of
thousands of jobs stay until they are stored."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS_BETWEEN_COLLECTIONS = 10_000


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
