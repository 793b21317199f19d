"""What a child process does to itself before anything else: it cannot outlive its worker, and takes no more memory than it was given."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sys
from contextlib import suppress

LAST_RESORT = 32 * 1024**2  # bytes beyond the limit, for telling that it was reached
FIRST_VICTIM = "500"  # rather than the worker, should the machine run out of memory


def tie_to_parent(lifeline: int, parent: int) -> None:
    """Where the kernel can do it, the end of the lifeline kills the whole group, however busy it is; elsewhere the broken line does."""
    os.set_inheritable(lifeline, False)
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
        # No PR_SET_PDEATHSIG beside it: that may come first, and with this process the lifeline would go before it has killed the rest.
        with suppress(OSError), open("/proc/self/oom_score_adj", "w") as victim:
            victim.write(FIRST_VICTIM)
    if os.getppid() != parent:
        os._exit(1)  # it was gone before the knot was tied


def limit_memory(most: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (most, most + LAST_RESORT))


def ease_memory() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
