"""The dead-man's switch: the leader pings an outside monitor while the store answers and planning works.

When the fleet or the store is gone, the pings stop, and the monitor tells it: nothing here could."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from duetime.clock import Clock
from duetime.model.ids import EVERY_SEGMENT
from duetime.model.instant import MINUTE, SECOND, Micros
from duetime.store import DueSchedules, Store

CHECK_INTERVAL = 5 * SECOND
UNPLANNED_FOR = MINUTE  # a fire without a job: planning does not work


class OutsideMonitor:
    name = "watchdog"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        leads: Callable[[], bool],
        ping: Callable[[], Awaitable[None]],
        interval: Micros,
    ) -> None:
        self._store = store
        self._clock = clock
        self._leads = leads
        self._ping = ping
        self._interval = interval

    async def run_once(self) -> Micros:
        """A ping that fails is repeated after the interval: the monitor has its own tolerance."""
        if not self._leads():
            return min(CHECK_INTERVAL, self._interval)
        overdue = await self._store.list_schedules(
            DueSchedules(EVERY_SEGMENT, self._clock.now() - UNPLANNED_FOR), 1
        )
        if overdue:
            return min(CHECK_INTERVAL, self._interval)
        await self._ping()
        return self._interval
