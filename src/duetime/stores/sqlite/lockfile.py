"""Locks on single bytes of a file beside the database, where the system has them; the kernel lets go when the process dies.

Such a lock belongs to the open file, not to the process: another handle in the same process sees it like everybody else.
"""

from __future__ import annotations

import os
import struct
import sys
import weakref
from pathlib import Path
from typing import Protocol

if sys.platform == "linux":
    import fcntl

AVAILABLE = sys.platform == "linux"
# struct flock: type, whence, start, length, pid (zero for these locks).
_FLOCK = struct.Struct("hhqqi4x")


class Closing(Protocol):
    def close(self) -> None: ...


def open_beside(database: Path) -> int:
    return os.open(database.with_name(f"{database.name}-nodes"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def lock(opened: int, byte: int) -> None:
    """At once, or OSError."""
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


def close_in_children(holder: Closing) -> None:
    """A forked child shares the open files: it must not keep its parent's locks alive."""
    _holders.add(holder)


def _let_go() -> None:
    for holder in list(_holders):
        holder.close()


_holders: weakref.WeakSet[Closing] = weakref.WeakSet()
if AVAILABLE:
    os.register_at_fork(after_in_child=_let_go)
