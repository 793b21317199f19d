"""Less to collect: what a node has loaded when it starts stays until it ends."""

from __future__ import annotations

import gc


def spare_the_collector() -> None:
    """A full collection looks at everything there is: 50 ms for the modules of the service, in which no job starts. What is frozen is not
    looked at again. For processes that are a node and nothing else: in others it is not ours to decide."""
    gc.collect()
    gc.freeze()
