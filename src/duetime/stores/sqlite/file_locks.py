"""Locks on single bytes of a file next to the database, where the system has them. The kernel releases them
when the process dies.

Such a lock belongs to the open file, not to the process: other open files of the same process see it, too.
Each node locks the byte of its own id, so that other nodes can tell when its process is gone."""

from __future__ import annotations

import os
import struct
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from duetime.model.instant import Micros
from duetime.model.lease import NodeId

if sys.platform == "linux":
    import fcntl

AVAILABLE = sys.platform == "linux"
# struct flock: type, whence, start, length, pid (zero for these locks).
_FLOCK = struct.Struct("hhqqi4x")


class HoldsFiles(Protocol):
    def close(self) -> None: ...


def lock_file(database: Path) -> Path:
    return database.with_name(f"{database.name}-nodes")


def open_lock_file(database: Path) -> int:
    return os.open(lock_file(database), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def lock(opened: int, byte: int) -> None:
    """Immediately, or OSError."""
    if sys.platform == "linux":
        fcntl.fcntl(opened, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0))


def unlock(opened: int, byte: int) -> None:
    if sys.platform == "linux":
        fcntl.fcntl(opened, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, byte, 1, 0))


def could_lock(opened: int, byte: int) -> bool:
    if sys.platform == "linux":
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        return bool(_FLOCK.unpack(fcntl.fcntl(opened, fcntl.F_OFD_GETLK, asked))[0] == fcntl.F_UNLCK)
    return False


def close_in_children(holder: HoldsFiles) -> None:
    """A forked child shares the open files: it must not keep the locks of its parent."""
    _holders.add(holder)


def _close_all() -> None:
    for holder in list(_holders):
        holder.close()


_holders: weakref.WeakSet[HoldsFiles] = weakref.WeakSet()
if AVAILABLE:
    os.register_at_fork(after_in_child=_close_all)


class NodeLocks:
    """The locks of the nodes that joined through one store, and a second open file to test those of
    others."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._held: dict[NodeId, int] = {}
        self._probe: int | None = None
        close_in_children(self)

    def take(self, node: NodeId) -> int | None:
        """Lock the node's byte. Returns the inode of the file, or None where there are no such locks."""
        if not AVAILABLE:
            return None
        self.release(node)  # if a transaction was rolled back, its node id is used again
        try:
            opened = open_lock_file(self._database)
        except OSError:
            return None  # without the file only the lease tells
        try:
            lock(opened, node)
        except OSError:
            os.close(opened)
            return None
        self._held[node] = opened
        return os.fstat(opened).st_ino

    def mark_use(self, node: NodeId) -> None:
        """The time of the file is that of the last heartbeat."""
        if node in self._held:
            with suppress(OSError):
                os.utime(self._held[node])

    def used_at(self) -> Micros | None:
        """The last heartbeat of a node on this machine; None if there was none."""
        try:
            return lock_file(self._database).stat().st_mtime_ns // 1_000
        except OSError:
            return None

    def release(self, node: NodeId) -> None:
        opened = self._held.pop(node, None)
        if opened is not None:
            os.close(opened)

    def is_free(self, node: NodeId, inode: int | None) -> bool:
        """Whether the process that locked this byte of that very file is gone. A file that was replaced
        proves nothing."""
        if not AVAILABLE or inode is None:
            return False
        try:
            if self._probe is None:
                self._probe = open_lock_file(self._database)
            if os.fstat(self._probe).st_ino != inode:
                self._close_probe()
                return False
            return could_lock(self._probe, node)
        except OSError:
            return False

    def close(self) -> None:
        for node in list(self._held):
            self.release(node)
        self._close_probe()

    def _close_probe(self) -> None:
        if self._probe is not None:
            os.close(self._probe)
            self._probe = None
