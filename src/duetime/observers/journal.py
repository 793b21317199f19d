"""The journal: appends what happens in this process to the store's log of events, in batches, while somebody listens to it.

Work is never held up: what happens is gathered in memory, bounded, and written a moment later. Beyond some number in a moment events are
only counted. Where nobody listens nothing is gathered or written: whoever begins to listen leaves a record that says until when, and an
event whose hint has every journal look for that record.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

from duetime.clock import Clock
from duetime.errors import StoreError
from duetime.model.events import Event
from duetime.model.hint import EventHint, Hint
from duetime.model.instant import SECOND, Micros
from duetime.observers.entries import FEW, TOLD, Entry, entries_of, gap, is_empty, many, tenants_of
from duetime.observers.errand import Errand
from duetime.store import Store, Unsubscribe

AUDIENCE = ("audience", "", "events")  # kind, tenant and key of the record
MOMENT = SECOND // 5
MOST_A_MOMENT = 40  # events written one by one
MOST_AT_ALL = 140  # with those that are not of jobs: a flood of jobs does not drown them
MOST_TENANTS = 100  # told of what was only counted; more of them are told that there was something
LOOK_AGAIN = 10 * SECOND  # whether somebody listens: the hint may be lost
BEFORE_THE_END = 2 * LOOK_AGAIN  # of what is known: look whether they go on listening
AFTER_FAILURE = SECOND
MISSED_WITHIN = 2 * LOOK_AGAIN  # what went untold so shortly before somebody listened is made known


class Journal:
    """An observer for one event loop."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._writing = Errand(self._write)
        self._looking = Errand(self._look)
        self._unsubscribe: Unsubscribe | None = None
        self._listened_until: Micros = 0  # by the store's clock
        self._looked_at: Micros | None = None
        self._waiting: list[Entry] = []
        self._counted: Counter[str | None] = Counter()  # by tenant, beyond those that wait
        self._untold_at: Micros | None = None  # when something happened that nobody seemed to listen to
        self.written = self.merged = 0

    @property
    def listened(self) -> bool:
        return self._clock.now() < self._listened_until

    def __call__(self, event: Event, now: Micros) -> None:
        if type(event) not in TOLD or is_empty(event):
            return
        if now < self._listened_until:
            self._gather(event, now)
        else:
            self._untold_at = self._clock.monotonic()
            self._look_sometimes()

    def open(self) -> None:
        """On the event loop: from now on hints are heard."""
        if self._unsubscribe is None:
            loop = asyncio.get_running_loop()
            self._unsubscribe = self._store.subscribe(lambda hint: self._heard(hint, loop))
            self._looking.ask(0)

    def listen_until(self, expires_at: Micros) -> None:
        """Somebody listens, in this process or elsewhere."""
        if not self.listened and self._untold_at is not None:
            if self._clock.monotonic() - self._untold_at < MISSED_WITHIN:
                self._counted[None] += 1
                self._writing.ask(0)
            self._untold_at = None
        self._listened_until = expires_at
        if self._unsubscribe is not None:
            # However quiet it is: what happens next is to be told, and not that something was missed.
            self._looking.ask(max(LOOK_AGAIN, expires_at - self._clock.now() - BEFORE_THE_END))

    async def close(self) -> None:
        """Write what waits, if the store takes it."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        await self._looking.close()
        await self._writing.close()
        if self._waiting or self._counted:
            await self._write()
        await self._writing.close()
        self._listened_until, self._looked_at = 0, None

    # -- gathering ----------------------------------------------------------------------------------------------------
    def _gather(self, event: Event, now: Micros) -> None:
        room = (MOST_AT_ALL if type(event) in FEW else MOST_A_MOMENT) - len(self._waiting)
        tenants = tenants_of(event)
        if len(tenants) <= room:
            self._waiting.extend(entries_of(event, now))
        else:
            self._waiting.extend(entry for _, entry in zip(range(room), entries_of(event, now), strict=False))
            self._counted.update(tenants[max(0, room) :])
        if self._waiting or self._counted:
            self._writing.ask(MOMENT)

    async def _write(self) -> Micros | None:
        now = self._clock.now()
        waiting, self._waiting = self._waiting, []
        counted, self._counted = self._counted, Counter()
        entries = [*waiting, *_summary(counted, now)]
        if not entries:
            return None
        try:
            await self._store.add_events([entry.to_bytes() for entry in entries])
        except StoreError:
            self._counted.update(entry.tenant for entry in waiting)
            self._counted.update(counted)
            return AFTER_FAILURE
        self.written += len(waiting)
        self.merged += counted.total()
        return None

    # -- whether somebody listens -------------------------------------------------------------------------------------
    def _look_sometimes(self) -> None:
        monotonic = self._clock.monotonic()
        if self._looked_at is None or monotonic - self._looked_at >= LOOK_AGAIN:
            self._looked_at = monotonic
            self._looking.ask(0)

    def _heard(self, hint: Hint, loop: asyncio.AbstractEventLoop) -> None:
        """On whichever thread: a store in memory is shared by all of them."""
        if isinstance(hint, EventHint) and not self.listened:
            with suppress(RuntimeError):  # that loop has been closed
                loop.call_soon_threadsafe(self._looking.ask, 0)

    async def _look(self) -> Micros | None:
        try:
            record = await self._store.get_record(*AUDIENCE)
        except StoreError:
            return AFTER_FAILURE if self.listened else None  # then the next event looks again
        self._looked_at = self._clock.monotonic()
        if record is not None and record.expires_at is not None:
            self.listen_until(record.expires_at)
        return None


def _summary(counted: Counter[str | None], now: Micros) -> list[Entry]:
    """A tenant is told how many of its own there were, and of nobody else's."""
    if None in counted or len(counted) > MOST_TENANTS:
        return [gap(now)]
    return [many(tenant, count, now) for tenant, count in counted.items()]
