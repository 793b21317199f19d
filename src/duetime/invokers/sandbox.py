"""Limits a child process sets for itself before anything else: it cannot outlive its worker, nor exceed its
memory limit."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sys
from contextlib import suppress

MEMORY_RESERVE = 32 * 1024**2  # bytes beyond the limit, to report that it was reached
OOM_SCORE = "500"  # the kernel kills the child before the worker when the machine runs out of memory


def tie_to_parent(lifeline: int, parent: int) -> None:
    """On Linux the kernel kills the whole process group when the lifeline closes, however busy it is.
    Elsewhere the broken pipe does."""
    os.set_inheritable(lifeline, False)
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
        # No PR_SET_PDEATHSIG as well: it could kill this process first, and its lifeline would be gone before
        # it has killed the rest.
        with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
            score.write(OOM_SCORE)
    if os.getppid() != parent:
        os._exit(1)  # the worker died before the lifeline was set up


def limit_memory(limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit + MEMORY_RESERVE))


def lift_memory_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
