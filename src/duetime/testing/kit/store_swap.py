"""Gives the user's app another store and clock for a while, then restores it exactly. The tasks stay the
same."""

from __future__ import annotations

from typing import Any

from duetime.app import App
from duetime.engine.node.timer import NodeClock
from duetime.model.ids import Ids
from duetime.store import Store
from duetime.testing.kit.threads import InlineThreads


class StoreSwap:
    """Never touches the app's own store: it may be a server that does not exist where the tests run."""

    def __init__(self, app: App, store: Store, clock: NodeClock, ids: Ids) -> None:
        self._app = app
        self._parts = {"_clock": clock, "_ids": ids}
        self._store = store
        self._before: dict[str, Any] | None = None

    def begin(self, **overrides: Any) -> None:
        """`overrides` are attributes of the app that have other values meanwhile."""
        if self._before is not None:
            return
        attributes = vars(self._app)
        self._before = dict(attributes)
        attributes.update({**self._parts, **overrides}, _opened=0, _loop=None)
        self._app.use_store(self._store)
        attributes.update(_opened=1, _threads=InlineThreads())

    def end(self) -> None:
        if self._before is not None:
            attributes = vars(self._app)
            attributes.clear()
            attributes.update(self._before)
            self._before = None
