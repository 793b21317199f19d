"""The one write lock of the file, shared fairly among connections and processes.

SQLite gives its lock to any connection that tries while it is free. A process that writes all the time gets
it back before others notice, because they only look now and then: a submission next to a busy worker took 230
ms (p99; now 20). Therefore a connection first takes the place at the head of a queue, which is a lock on a
byte of the lock file, and keeps it until it has the write lock. The queue is advisory: a holder that stalls
is bypassed after MAX_WAIT_AT_HEAD."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from threading import Event

from duetime.clock import monotonic_micros
from duetime.errors import StoreUnavailable
from duetime.model.instant import SECOND, Micros
from duetime.stores.sqlite.connection import connect
from duetime.stores.sqlite.errors import is_busy
from duetime.stores.sqlite.file_locks import AVAILABLE, close_in_children, lock, open_lock_file, unlock

LOCK_TIMEOUT = 20 * SECOND  # longer than a task may hold the lock, and than many processes on a slow machine
# SQLite's own waiting grows to 100 ms between tries, which a busy neighbour easily outlasts.
RETRY_SECONDS = 0.001
RETRY_SECONDS_AT_HEAD = 0.0002  # the lock is idle until the head of the queue notices
HEAD_BYTE = 0  # node ids begin at one
MAX_WAIT_AT_HEAD = SECOND // 4
BYPASS_INTERVAL = 5 * SECOND  # for so long after a stall the queue is ignored


class WriteQueue:
    """The place of one connection in the queue of all processes."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._opened: int | None = None
        self._waiting_since: Micros | None = None
        self._bypass_until: Micros = 0
        self.at_head = False
        close_in_children(self)

    def may_try(self) -> bool:
        """Whether this connection may try to get the write lock now."""
        now = monotonic_micros()
        if self.at_head or not AVAILABLE or now < self._bypass_until or self._take_head():
            return True
        if self._waiting_since is None:
            self._waiting_since = now
        elif now - self._waiting_since > MAX_WAIT_AT_HEAD:
            self._waiting_since, self._bypass_until = None, now + BYPASS_INTERVAL
            return True
        return False

    def leave(self) -> None:
        self._waiting_since = None
        if self.at_head and self._opened is not None:
            self.at_head = False
            unlock(self._opened, HEAD_BYTE)

    def close(self) -> None:
        self.at_head = False
        if self._opened is not None:
            os.close(self._opened)
            self._opened = None

    def _take_head(self) -> bool:
        try:
            if self._opened is None:
                self._opened = open_lock_file(self._database)
            lock(self._opened, HEAD_BYTE)
        except BlockingIOError:
            return False
        except OSError:
            return True  # no file, or a file that cannot be locked: there is no queue
        self.at_head = True
        return True


class WriteLock:
    """The lock as one connection takes it, and that connection, opened when it is first needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue = WriteQueue(path)
        self._pause = Event()
        self._file: tuple[int, int] | None = None  # the one that was opened first
        self._is_full = False  # the disk, when something was written last
        self.connection: sqlite3.Connection | None = None

    def begin(self) -> sqlite3.Connection:
        """Begin a transaction that holds the write lock."""
        give_up_at = monotonic_micros() + LOCK_TIMEOUT
        try:
            while True:
                if self._queue.may_try():
                    try:
                        return self._begin_immediate()
                    except sqlite3.OperationalError as problem:
                        if not is_busy(problem) or monotonic_micros() > give_up_at:
                            raise
                self._pause.wait(RETRY_SECONDS_AT_HEAD if self._queue.at_head else RETRY_SECONDS)
        finally:
            self._queue.leave()

    def close_connection(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def close(self) -> None:
        self._queue.close()
        self.close_connection()
        self._file = None

    def _begin_immediate(self) -> sqlite3.Connection:
        if self._file is not None:
            self._refuse_another_file()
        connection = self._opened()
        if self._is_full:
            self.make_room()
        connection.execute("BEGIN IMMEDIATE")
        return connection

    def make_room(self) -> bool:
        """Empty the write-ahead log of a full disk; returns whether that made room. SQLite itself empties it
        only when it has grown to a size for which there may be no room: on a small disk it would take all the
        room that comes back, and nothing could be written again."""
        self._is_full = True
        with suppress(sqlite3.Error):  # not even room to move the log into the file
            connection = self._opened()
            _, pages, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            is_read, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._is_full = bool(is_read)
            return not is_read and pages > 0
        return False

    def _opened(self) -> sqlite3.Connection:
        if self.connection is None:
            self.connection = connect(self._path, busy_milliseconds=0)
            self._file = self._file or self._file_there()
        return self.connection

    def _refuse_another_file(self) -> None:
        """SQLite continues to write into a file that was deleted: what is accepted ends with the process."""
        if self._file_there() != self._file:
            raise StoreUnavailable(
                f"{self._path} was deleted or replaced while it was open: end every process that uses it, "
                "put the right file there, then start them again"
            )

    def _file_there(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError as problem:
            return None if problem.errno in (errno.ENOENT, errno.ENOTDIR) else self._file
        return found.st_dev, found.st_ino
