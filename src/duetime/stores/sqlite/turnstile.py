"""Who in this process waits for the file's one write lock: a row of task transactions must let the others through in between."""

from __future__ import annotations

import weakref
from pathlib import Path
from threading import Condition, Lock


class Turnstile:
    """One for each file, shared by all stores of the process."""

    def __init__(self) -> None:
        self._waiting = 0
        self._changed = Condition()

    def enter(self) -> None:
        with self._changed:
            self._waiting += 1

    def leave(self) -> None:
        with self._changed:
            self._waiting -= 1
            self._changed.notify_all()

    def let_others_pass(self, most_seconds: float) -> None:
        """Until nobody waits any more, or this time has passed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting == 0, most_seconds)


def turnstile_of(path: Path) -> Turnstile:
    with _lock:
        found = _by_path.get(path)
        if found is None:
            found = _by_path[path] = Turnstile()
        return found


_lock = Lock()
_by_path: weakref.WeakValueDictionary[Path, Turnstile] = weakref.WeakValueDictionary()
