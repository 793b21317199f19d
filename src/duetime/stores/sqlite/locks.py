"""Signs of life. Each node locks the byte of its own number in a file beside the database, and the kernel lets go when the process dies.

Such a lock belongs to the open file, not to the process: another handle in the same process sees it like everybody else.
"""

from __future__ import annotations

import os
import struct
import sys
import weakref
from pathlib import Path

from duetime.model.lease import NodeId

if sys.platform == "linux":
    import fcntl

AVAILABLE = sys.platform == "linux"
# struct flock: type, whence, start, length, pid (zero for these locks).
_FLOCK = struct.Struct("hhqqi4x")


class NodeLocks:
    """The locks of the nodes that joined through one store, and a second open file to look at those of others."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(f"{database.name}-nodes")
        self._held: dict[NodeId, int] = {}
        self._probe: int | None = None
        _all.add(self)

    def take(self, node: NodeId) -> int | None:
        """Lock the node's byte; answers the file's inode, or None where there are no such locks."""
        if not AVAILABLE:
            return None
        self.release(node)  # of a transaction that was rolled back, which gave its number back, too
        try:
            opened = self._open()
        except OSError:
            return None  # without the file the lease alone tells
        try:
            _lock(opened, node)
        except OSError:
            os.close(opened)
            return None
        self._held[node] = opened
        return os.fstat(opened).st_ino

    def release(self, node: NodeId) -> None:
        opened = self._held.pop(node, None)
        if opened is not None:
            os.close(opened)

    def is_free(self, node: NodeId, inode: int | None) -> bool:
        """Whether the process that locked this byte of that very file has gone. A file that was replaced proves nothing."""
        if not AVAILABLE or inode is None:
            return False
        try:
            if self._probe is None:
                self._probe = self._open()
            if os.fstat(self._probe).st_ino != inode:
                self._forget_probe()
                return False
            return _could_lock(self._probe, node)
        except OSError:
            return False

    def close(self) -> None:
        for node in list(self._held):
            self.release(node)
        self._forget_probe()

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _forget_probe(self) -> None:
        if self._probe is not None:
            os.close(self._probe)
            self._probe = None


def _lock(opened: int, node: NodeId) -> None:
    if sys.platform == "linux":
        fcntl.fcntl(opened, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, node, 1, 0))


def _could_lock(opened: int, node: NodeId) -> bool:
    if sys.platform == "linux":
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, node, 1, 0)
        return bool(_FLOCK.unpack(fcntl.fcntl(opened, fcntl.F_OFD_GETLK, asked))[0] == fcntl.F_UNLCK)
    return False


def _let_go() -> None:
    """A forked child shares the open files: it must not keep its parent's locks alive."""
    for locks in list(_all):
        locks.close()


_all: weakref.WeakSet[NodeLocks] = weakref.WeakSet()
if AVAILABLE:
    os.register_at_fork(after_in_child=_let_go)
