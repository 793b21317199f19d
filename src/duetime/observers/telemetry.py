"""The telemetry of one process: counters, per-minute roll-ups and the event log."""

from __future__ import annotations

from duetime.clock import Clock
from duetime.model.events import Event, LoopBlocked, TurnFailed
from duetime.observers.counters import ProcessCounters
from duetime.observers.event_log import EventLogWriter
from duetime.observers.rollups import MinuteRollups
from duetime.store import Store


class ProcessTelemetry:
    """An observer. It runs only when there are events."""

    def __init__(self, store: Store, clock: Clock, instance: str) -> None:
        self._clock = clock
        self.instance = instance
        self.counters = ProcessCounters()
        self.event_log = EventLogWriter(store, clock)
        self.rollups = MinuteRollups(store, clock, self.counters, instance)
        self._closed = True

    def __call__(self, event: Event) -> None:
        now = self._clock.now()
        self.counters(event, now)
        if self._closed or isinstance(event, TurnFailed | LoopBlocked):
            # nothing is written after close(), and these two events may come from the heartbeat's thread
            return
        self.rollups.nudge()
        self.event_log(event, now)

    def open(self) -> None:
        """Call it on the event loop of the process."""
        self._closed = False
        self.event_log.open()

    async def close(self) -> None:
        """Write what is not written yet. A second call does not retry what the store refused. May be opened
        again."""
        if self._closed:
            return
        self._closed = True
        await self.event_log.close()
        await self.rollups.close()
