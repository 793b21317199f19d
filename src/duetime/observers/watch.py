"""The watch of one process: what happens in it is counted, kept by the minute, and told to those who listen."""

from __future__ import annotations

from duetime.clock import Clock
from duetime.model.events import Event, LoopBlocked, TurnFailed
from duetime.observers.journal import Journal
from duetime.observers.minutes import Minutes
from duetime.observers.tally import Tally
from duetime.store import Store


class Watch:
    """An observer. Nothing of it runs while nothing happens."""

    def __init__(self, store: Store, clock: Clock, instance: str) -> None:
        self._clock = clock
        self.instance = instance
        self.tally = Tally()
        self.journal = Journal(store, clock)
        self.minutes = Minutes(store, clock, self.tally, instance)
        self._closed = True

    def __call__(self, event: Event) -> None:
        now = self._clock.now()
        self.tally(event, now)
        if self._closed or isinstance(event, TurnFailed | LoopBlocked):
            return  # maybe told by the heart's thread; and after the end there is nobody to write
        self.minutes.nudge()
        self.journal(event, now)

    def open(self) -> None:
        """On the event loop of the process."""
        self._closed = False
        self.journal.open()

    async def close(self) -> None:
        """Write what is not written yet; what the store did not take is not tried again by closing twice. May be opened again."""
        if self._closed:
            return
        self._closed = True
        await self.journal.close()
        await self.minutes.close()
