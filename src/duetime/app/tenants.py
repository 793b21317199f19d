"""A tenant's view of an app: the same store, commands and tasks, and every call under the tenant's own name."""

from __future__ import annotations

from duetime.app.operations import Operations
from duetime.engine.checks import check_name
from duetime.engine.commands import Repeat
from duetime.observers.watch import Watch
from duetime.task import Tasks

MOST_VIEWS = 10_000


class TenantView(Operations):
    """Open while its app is: nothing here connects or closes anything."""

    def __init__(self, app: Operations, tenant: str) -> None:
        Tasks.__init__(self)
        self.tasks = app.tasks
        self._app = app
        self._tenant = check_name(tenant, "tenant")
        self._store, self._clock, self._ids = app._store, app._clock, app._ids
        self._commands, self._waiting = app._commands, app._waiting
        self._observers, self._audience, self._statistics = app._observers, app._audience, app._statistics
        self._hearsay = app._hearsay

    def _own_watch(self) -> Watch | None:
        return self._app._own_watch()

    @property
    def is_open(self) -> bool:
        return self._app.is_open

    async def open(self) -> None:
        await self._app.open()

    async def close(self) -> None:
        await self._app.close()

    def _require_open(self) -> None:
        self._app._require_open()


def repeating(view: Operations, repeat: Repeat) -> Operations:
    """The view for one request that may come again."""
    own = TenantView(view, view.tenant)
    own._ids, own._commands = repeat.ids, view._commands.repeating(repeat)
    return own


class Tenants:
    """The views of one app, each made once."""

    def __init__(self, app: Operations) -> None:
        self._app = app
        self._views: dict[str, Operations] = {app.tenant: app}

    def __call__(self, name: str) -> Operations:
        view = self._views.get(name)
        if view is None:
            if len(self._views) >= MOST_VIEWS:
                self._views = {self._app.tenant: self._app}
            view = self._views[name] = TenantView(self._app, name)
        return view
