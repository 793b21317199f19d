"""The audience: those in this process who listen to what happens in the fleet. One reader follows the store's log for all of them.

While there is anybody, a record in the store says so, and every process writes down what it does; without it they save themselves the
trouble. Whoever takes the first seat therefore marks the log: what happened before nobody wrote.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from duetime.clock import Clock
from duetime.errors import StoreError
from duetime.model.hint import EventHint, Hint
from duetime.model.instant import SECOND, Micros, to_datetime
from duetime.observers.entries import GAP, KINDS, MANY, Entry, gap
from duetime.observers.journal import AUDIENCE
from duetime.store import Store, Unsubscribe

RESET = "reset"
PAGE = 500
MOST_WAITING = 1_000  # events for one listener: who is further behind is told to begin anew
MOST_REPLAYED = 10_000
LISTENING_FOR = 60 * SECOND
RENEW = 20 * SECOND
LOOK = 2 * SECOND  # hints may be lost
LOOK_WITHOUT_HINTS = SECOND // 2
AFTER_FAILURE = SECOND


class Notice(NamedTuple):
    """Something that happened. `kind` is job, schedule, node or queue; "many": only counted; "reset": what you know may be out of date."""

    id: int
    kind: str
    data: dict[str, Any]
    tenant: str | None = None  # None: everybody may know


class Seat:
    """One listener's place. It never holds more than so many notices."""

    def __init__(self, tenant: str, kinds: frozenset[str], leave: Callable[[Seat], None]) -> None:
        self._tenant = tenant
        self._kinds = kinds | {MANY, RESET}
        self._leave = leave
        self._waiting: deque[Notice] = deque()
        self._told = asyncio.Event()
        self.over = False  # no more will come

    def offer(self, notice: Notice) -> None:
        if self.over or not self.wants(notice):
            return
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.clear()
            notice, self.over = Notice(notice.id, RESET, {"action": RESET}), True
        self._waiting.append(notice)
        self._told.set()

    def wants(self, notice: Notice) -> bool:
        return notice.kind in self._kinds and notice.tenant in (None, self._tenant)

    def take(self) -> Notice | None:
        return self._waiting.popleft() if self._waiting else None

    async def wait(self) -> None:
        """Until there is something to take, or no more will come."""
        if not self._waiting and not self.over:
            self._told.clear()
            await self._told.wait()

    def end(self) -> None:
        self.over = True
        self._told.set()

    def leave(self) -> None:
        self.end()
        self._leave(self)


class Audience:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._seats: dict[Seat, None] = {}
        self._position = 0  # of the reader
        self._reading: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._unsubscribe: Unsubscribe | None = None
        self._renewed_at: Micros = 0
        self._door = asyncio.Lock()
        self.on_renewed: Callable[[Micros], None] = lambda expires_at: None  # this process need not wait for the hint

    @property
    def size(self) -> int:
        return len(self._seats)

    async def attend(self, tenant: str, kinds: frozenset[str] = frozenset(KINDS)) -> tuple[Seat, int]:
        """A seat, and the id of the last event before those it will be told of."""
        async with self._door:
            if self._reading is None:
                await self._begin()
            seat = Seat(tenant, kinds, self._left)
            self._seats[seat] = None
            return seat, self._position

    async def replay(self, seat: Seat, after: int, until: int) -> AsyncIterator[Notice]:
        """What happened between two ids, as far as the log reaches; a reset where it does not."""
        oldest = await self._store.list_events(0, 1)
        if after > until or until - after > MOST_REPLAYED or (after < until and (not oldest or oldest[0][0] > after + 1)):
            yield Notice(until, RESET, {"action": RESET})
            return
        while after < until:
            page = await self._store.list_events(after, PAGE)
            if not page:
                return
            for number, line in page:
                notice = read(number, line)
                if number <= until and seat.wants(notice):
                    yield notice
            after = page[-1][0]

    async def notices(self, seat: Seat, position: int, after: int | None) -> AsyncGenerator[Notice, None]:
        """What a seat is told: first what it missed since `after`, then what comes, until it is over."""
        if after is not None and after != position:
            async for notice in self.replay(seat, after, position):
                yield notice
        while True:
            while (told := seat.take()) is not None:
                yield told
            if seat.over:
                return
            await seat.wait()

    def dismiss(self) -> None:
        """Every seat is told that no more will come."""
        for seat in list(self._seats):
            seat.leave()

    async def close(self) -> None:
        self.dismiss()
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.wait([reading])
        self._door = asyncio.Lock()  # the next event loop needs one of its own

    def _left(self, seat: Seat) -> None:
        self._seats.pop(seat, None)
        if not self._seats:
            self._woken.set()  # the reader may go, too

    # -- reading ------------------------------------------------------------------------------------------------------
    async def _begin(self) -> None:
        await self._renew()
        self._position = await self._store.last_event()
        self._woken = asyncio.Event()
        self._unsubscribe = self._listen()
        self._reading = asyncio.create_task(self._read(), name="duetime-audience")

    def _listen(self) -> Unsubscribe:
        loop, woken = asyncio.get_running_loop(), self._woken

        def heard(hint: Hint) -> None:
            """On whichever thread: a store in memory is shared by all of them."""
            if isinstance(hint, EventHint):
                with suppress(RuntimeError):  # that loop has been closed
                    loop.call_soon_threadsafe(woken.set)

        return self._store.subscribe(heard)

    async def _read(self) -> None:
        try:
            while self._seats or self._door.locked():  # who is at the door will sit down in a moment
                self._woken.clear()
                if await self._turn():
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._look() / SECOND):
                            await self._woken.wait()
        finally:
            self._reading = None
            self.dismiss()  # whatever ended the reader: those who still listen had better come again
            if self._unsubscribe is not None:
                self._unsubscribe()
                self._unsubscribe = None

    def _look(self) -> Micros:
        return LOOK if self._store.capabilities.hints else LOOK_WITHOUT_HINTS

    async def _turn(self) -> bool:
        """Hand out one page; True when that was all."""
        try:
            if self._clock.monotonic() - self._renewed_at > RENEW:
                await self._renew()
            page = await self._store.list_events(self._position, PAGE)
        except StoreError:
            await self._clock.sleep(AFTER_FAILURE)
            return False
        for number, line in page:
            notice = read(number, line)
            for seat in self._seats:
                seat.offer(notice)
        if page:
            self._position = page[-1][0]
        return len(page) < PAGE

    async def _renew(self) -> None:
        """Say that somebody listens. When nobody did so far, the log has a gap here."""
        expires_at = self._clock.now() + LISTENING_FOR
        if await self._store.put_record(*AUDIENCE, b"{}", 0, expires_at):
            await self._store.add_events([gap(self._clock.now()).to_bytes()])
        else:
            await self._store.put_record(*AUDIENCE, b"{}", None, expires_at)
        self._renewed_at = self._clock.monotonic()
        self.on_renewed(expires_at)


def read(number: int, line: bytes) -> Notice:
    """An event as it stands in the log. What a later version wrote and this one does not know is passed on as it is."""
    kind, tenant, data = Entry.from_bytes(line)
    if "at" in data:
        data["at"] = f"{to_datetime(data['at']).replace(tzinfo=None).isoformat()}Z"
    if kind == GAP:
        return Notice(number, RESET, {"action": RESET, **data})
    return Notice(number, kind, data, tenant)
