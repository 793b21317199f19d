"""Retention: the leader deletes what is older than the operator keeps, and prepares storage for the days
ahead."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from duetime.clock import Clock
from duetime.model.instant import SECOND, Micros
from duetime.store import Store

PRUNE_INTERVAL = 600 * SECOND
LEADER_CHECK_INTERVAL = 5 * SECOND


class Retention:
    name = "retention"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        leads: Callable[[], bool],
        keep: Micros,
        targets: Mapping[str, Micros],
    ) -> None:
        self._store = store
        self._clock = clock
        self._leads = leads
        self._keep = keep
        self._targets = targets  # those whose jobs are kept for a shorter time

    async def run_once(self) -> Micros:
        if not self._leads():
            return LEADER_CHECK_INTERVAL
        now = self._clock.now()
        await self._store.prune(
            now - self._keep, {target: now - keep for target, keep in self._targets.items()} or None
        )
        return PRUNE_INTERVAL
