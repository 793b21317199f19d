"""The line before the write lock.

SQLite gives its lock to whoever comes by while it is free. A process that writes all the time has it back before others notice, who can
only look now and then: a submission beside a busy worker took 230 ms (p99; now 20). So whoever wants to write first takes the place at the
head of the line, and keeps it until it has the lock. A courtesy, no lock: who keeps the place for long, being stopped perhaps, is passed.
"""

from __future__ import annotations

import os
from pathlib import Path

from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND, Micros
from duetime.stores.sqlite.lockfile import AVAILABLE, close_in_children, lock, open_beside, unlock

HEAD = 0  # the byte; nodes count from one
PATIENCE = SECOND // 4
PASSING = 5 * SECOND  # so long nobody waits for somebody who did not move


class Line:
    """As one connection stands in it."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._opened: int | None = None
        self._heading = False
        self._since: Micros | None = None  # waiting for the place
        self._passing_until: Micros = 0
        close_in_children(self)

    @property
    def heading(self) -> bool:
        return self._heading

    def may_try(self) -> bool:
        """Whether it is this one's turn to look for the lock."""
        if self._heading or not AVAILABLE:
            return True
        now = monotonic_micros()
        if now < self._passing_until:
            return True
        if self._take_place():
            return True
        if self._since is None:
            self._since = now
        elif now - self._since > PATIENCE:
            self._since, self._passing_until = None, now + PASSING
            return True
        return False

    def leave(self) -> None:
        self._since = None
        if self._heading and self._opened is not None:
            self._heading = False
            unlock(self._opened, HEAD)

    def close(self) -> None:
        self._heading = False
        if self._opened is not None:
            os.close(self._opened)
            self._opened = None

    def _take_place(self) -> bool:
        try:
            if self._opened is None:
                self._opened = open_beside(self._database)
            lock(self._opened, HEAD)
        except BlockingIOError:
            return False
        except OSError:
            return True  # no file, or none that can be locked: no line
        self._heading = True
        return True
