"""Less to collect: what a node has loaded when it starts stays until it ends, and what it makes for a call goes with the call."""

from __future__ import annotations

import gc

OBJECTS_BETWEEN_COLLECTIONS = 10_000


def spare_the_collector() -> None:
    """A full collection looks at everything there is: 50 ms for the modules of the service, in which no job starts. What is frozen is not
    looked at again. For processes that are a node and nothing else: in others it is not ours to decide."""
    gc.collect()
    gc.freeze()


def collect_rarely() -> None:
    """By default a collection comes with every 700 objects that stay for a moment, and calling an HTTP target makes a hundred: what is due
    together was looked at again and again while it started, for a sixth of the time an HTTP client took, and none of it was garbage."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
