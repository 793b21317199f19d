"""Whether this process can do its work, in one sentence if it cannot."""

from __future__ import annotations

import asyncio

from duetime.app.app import App
from duetime.app.fresh import Fresh
from duetime.errors import DuetimeError, SchemaMissing, SchemaTooNew
from duetime.model.instant import SECOND

WITHIN = 1.0  # seconds for the store to answer
SCHEMA_EVERY = 15 * SECOND


class Health:
    def __init__(self, app: App) -> None:
        self._app = app
        self._schema = Fresh(app.clock, SCHEMA_EVERY)

    async def trouble(self) -> str | None:
        """What keeps it from working; None when nothing does."""
        return self._node_trouble() or await self._store_trouble()

    def _node_trouble(self) -> str | None:
        node = self._app.node
        if node is None:
            return None  # it only answers requests, and needs no lease for that
        if node.stopping:
            return "the node is stopping"
        if node.heart is None:
            return "the node has not joined the fleet: it does by itself when the store lets it"
        return None if node.heart.trusted() else "the node could not renew its lease in time: it joins again by itself"

    async def _store_trouble(self) -> str | None:
        try:
            async with asyncio.timeout(WITHIN):
                await self._app.store.time()
                if not self._app.store.capabilities.embedded:
                    await self._schema.get("schema", self._check_schema)
        except (SchemaMissing, SchemaTooNew) as problem:
            return problem.message
        except (DuetimeError, TimeoutError):
            return "the store does not answer: it comes back by itself when the store does"
        return None

    async def _check_schema(self) -> None:
        """Somebody may have migrated the database meanwhile, or dropped it."""
        other = self._app.store.twin()
        try:
            await other.open()
        finally:
            await other.close()
