"""What a process knows of the signs of life of other nodes, which end with a connection to the server.

Each server of a cluster knows only its own connections, and a proxy may ask any of them. Therefore a missing
sign proves something only to a process that finds its own sign in the same answer, and that found the other
one there before. Without proof the lease decides."""

from __future__ import annotations

from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import NodeId

CHECK_INTERVAL = 0.5  # seconds: a connection that was lost is noticed and replaced within this time
# Longer than a living process needs to notice that its connection is gone, and to open another one.
GONE_AFTER = 2 * SECOND
# For the others, after this process lost a connection: theirs may have been lost at the same time.
TIME_TO_RECONNECT = 5 * SECOND


class Witness:
    def __init__(self) -> None:
        self._own = ""
        self._seen: set[NodeId] = set()
        self._missing_since: dict[NodeId, Micros] = {}

    def is_gone(self, node: NodeId, own: str, is_there: bool) -> bool:
        """`own` is the sign of the process that asks, empty if the server does not know it."""
        if own != self._own:
            self.forget()
            self._own = own
        if not own:
            return False
        if is_there:
            self._seen.add(node)
            self._missing_since.pop(node, None)
            return False
        now = monotonic_micros()
        return node in self._seen and now - self._missing_since.setdefault(node, now) >= GONE_AFTER

    def forget(self) -> None:
        self._seen.clear()
        self._missing_since.clear()
