"""The way of one connection to the file's one write lock."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Event

from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND
from duetime.stores.sqlite import faults
from duetime.stores.sqlite.line import Line
from duetime.stores.sqlite.turnstile import turnstile_of

BUSY_LIMIT = 8 * SECOND  # longer than a task may hold the lock
# SQLite's own waiting grows to 100 ms between looks, which a busy neighbour easily outlasts.
PAUSE_SECONDS = 0.001
PAUSE_OF_THE_FIRST_SECONDS = 0.0002  # whoever is next: the lock lies idle meanwhile


class Entrance:
    def __init__(self, path: Path, opened: Callable[[], sqlite3.Connection]) -> None:
        self._opened = opened
        self._line = Line(path)
        self._turnstile = turnstile_of(path)
        self._pause = Event()

    def begin(self) -> sqlite3.Connection:
        """Wait for the write lock, in line with other processes and in sight of those of this one who could let us through."""
        give_up_at, waiting = monotonic_micros() + BUSY_LIMIT, False
        try:
            while True:
                if self._line.may_try():
                    try:
                        connection = self._opened()
                        connection.execute("BEGIN IMMEDIATE")
                    except sqlite3.OperationalError as problem:
                        if not faults.is_busy(problem) or monotonic_micros() > give_up_at:
                            raise
                    else:
                        return connection
                if not waiting:
                    self._turnstile.enter()
                    waiting = True
                self._pause.wait(PAUSE_OF_THE_FIRST_SECONDS if self._line.heading else PAUSE_SECONDS)
        finally:
            self._line.leave()
            if waiting:
                self._turnstile.leave()

    def let_others_pass(self, most_seconds: float) -> None:
        """Those of this process."""
        self._turnstile.let_others_pass(most_seconds)

    def close(self) -> None:
        self._line.close()
