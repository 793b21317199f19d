"""The event log."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.hint import EventHint
from duetime.store import EVENTS_KEPT, EventPage
from duetime.stores.redis.connection import RedisConnection
from duetime.stores.redis.notifier import RedisNotifier

_TIME = 8  # bytes before an event: when it was written


class RedisEventLog:
    def __init__(self, connection: RedisConnection, notifier: RedisNotifier) -> None:
        self._connection = connection
        self._notifier = notifier

    async def add(self, events: Sequence[bytes]) -> None:
        if events:
            last = await self._connection.run("add_events", EVENTS_KEPT, *events)
            self._notifier.notify([EventHint(last)])

    async def page(self, after: int, limit: int) -> EventPage:
        last, first, found = await self._connection.run("list_events", after, limit)
        return EventPage([(first + at, event[_TIME:]) for at, event in enumerate(found)], last)
