"""The user's app, put on another store and clock for a while and given back exactly as it was. Its tasks stay its tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.engine.clock import NodeClock
from duetime.model.ids import Ids
from duetime.store import Store
from duetime.testing.kit.threads import HereAndNow

if TYPE_CHECKING:
    from duetime.app import App


class Swap:
    """Touches nothing of the store that was there: it may be a server that does not exist where the tests run."""

    def __init__(self, app: App, store: Store, clock: NodeClock, ids: Ids) -> None:
        self._app = app
        self._parts = {"_clock": clock, "_ids": ids}
        self._store = store
        self._before: dict[str, Any] | None = None

    def begin(self, **faces: Any) -> None:
        if self._before is not None:
            return
        inside = vars(self._app)
        self._before = dict(inside)
        inside.update({**self._parts, **faces}, _opened=0)
        self._app.use_store(self._store)
        inside.update(_opened=1, _threads=HereAndNow())

    def end(self) -> None:
        if self._before is not None:
            inside = vars(self._app)
            inside.clear()
            inside.update(self._before)
            self._before = None
