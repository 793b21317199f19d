"""Signs of life: each node locks the byte of its own number, so that others can tell when its process is gone."""

from __future__ import annotations

import os
from pathlib import Path

from duetime.model.lease import NodeId
from duetime.stores.sqlite.lockfile import AVAILABLE, close_in_children, could_lock, lock, open_beside


class NodeLocks:
    """The locks of the nodes that joined through one store, and a second open file to look at those of others."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._held: dict[NodeId, int] = {}
        self._probe: int | None = None
        close_in_children(self)

    def take(self, node: NodeId) -> int | None:
        """Lock the node's byte; answers the file's inode, or None where there are no such locks."""
        if not AVAILABLE:
            return None
        self.release(node)  # of a transaction that was rolled back, which gave its number back, too
        try:
            opened = open_beside(self._database)
        except OSError:
            return None  # without the file the lease alone tells
        try:
            lock(opened, node)
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
                self._probe = open_beside(self._database)
            if os.fstat(self._probe).st_ino != inode:
                self._forget_probe()
                return False
            return could_lock(self._probe, node)
        except OSError:
            return False

    def close(self) -> None:
        for node in list(self._held):
            self.release(node)
        self._forget_probe()

    def _forget_probe(self) -> None:
        if self._probe is not None:
            os.close(self._probe)
            self._probe = None
