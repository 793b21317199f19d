"""Whether this process can work; if not, why, in one sentence."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from duetime.app.adoption import refuse_unadopted
from duetime.app.app import App
from duetime.app.broker import NO_BROKER
from duetime.app.leases import NO_LEASES
from duetime.app.stats import TtlCache
from duetime.engine.node.registry import ALL_TENANTS
from duetime.errors import (
    DuetimeError,
    SchemaMissing,
    SchemaTooNew,
    StoreFull,
    StoreNotAdopted,
    StoreUnavailable,
)
from duetime.model.instant import SECOND

STORE_TIMEOUT = 1.0  # seconds
PROBE_TIMEOUT = STORE_TIMEOUT / 2
SCHEMA_CHECK_INTERVAL = 15 * SECOND
PROBE = "probe"  # kind of the record that is written to see whether there is room
PROBE_TTL = 60 * SECOND
FULL = "the store has no room left, so nothing can be stored: make room, then this process recovers"
NO_RESPONSE = "the store does not respond: this process recovers when the store does"


class Health:
    def __init__(self, app: App) -> None:
        self._app = app
        self._schema = TtlCache(app.clock, SCHEMA_CHECK_INTERVAL)

    async def remark(self) -> str | None:
        """What it works without; None if nothing is missing."""
        node, replica = self._app.node, await self._app.context.shared.read_state()
        missing = [
            NO_BROKER if node is not None and node.broker_up is False else None,
            NO_LEASES if node is not None and not node.leases_up else None,
            None if replica is None else replica.remark,
        ]
        return "; ".join(filter(None, missing)) or None

    async def trouble(self) -> str | None:
        """What keeps it from working; None if nothing does. A store in trouble is also why a node is."""
        return await self._store_trouble() or self._node_trouble()

    def _node_trouble(self) -> str | None:
        node = self._app.node
        if node is None:
            return None  # it only answers requests, which needs no lease
        if node.stopping:
            return "the node is stopping"
        if node.heartbeat is None:
            return "the node has not joined the fleet: it joins when the store is available"
        return (
            None
            if node.heartbeat.trusted()
            else "the node could not renew its lease in time: it will join again"
        )

    async def _store_trouble(self) -> str | None:
        try:
            async with asyncio.timeout(STORE_TIMEOUT):
                await self._app.store.time()
                await self._schema.get("schema", self._check_store)
        except (SchemaMissing, SchemaTooNew, StoreNotAdopted) as problem:
            return problem.message
        except StoreFull:
            return FULL
        except (DuetimeError, TimeoutError):
            return NO_RESPONSE
        return None

    async def _check_store(self) -> None:
        """The database may have been migrated, dropped or restored in between."""
        await refuse_unadopted(self._app.store)
        await self._probe()
        if self._app.store.capabilities.embedded:
            return
        other = self._app.store.clone()
        try:
            await other.open()
        finally:
            await other.close()

    async def _probe(self) -> None:
        """A full disk can still be read. Others may write so long that this has to wait: nothing is wrong
        then."""
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(PROBE_TIMEOUT):
                now = await self._app.store.time()
                await self._app.store.put_record(PROBE, ALL_TENANTS, "", b"", expires_at=now + PROBE_TTL)
