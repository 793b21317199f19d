"""The event feed: subscriptions of this process to what happens in the fleet. One reader follows the store's
event log for all of them.

While there is a subscription anywhere, a record in the store says so, and every process writes its events to
the log. Without it, no process writes any. The first subscriber therefore adds a gap marker: earlier events
were not recorded."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from duetime.clock import Clock
from duetime.errors import InvalidInput, StoreError
from duetime.model.hint import EventHint, Hint
from duetime.model.instant import SECOND, Micros, to_datetime
from duetime.observers.event_log import GAP, KINDS, MANY, SUBSCRIBERS, LogEntry, gap
from duetime.store import Store, Unsubscribe

RESET = "reset"
PAGE = 500
MAX_WAITING = 1_000  # events of one subscription; a slower reader gets a reset
MAX_REPLAYED = 10_000
RECORD_TTL = 60 * SECOND
RENEW_INTERVAL = 20 * SECOND
POLL_INTERVAL = 2 * SECOND  # notifications may be lost
POLL_INTERVAL_WITHOUT_HINTS = SECOND // 2
AFTER_FAILURE = SECOND


class FeedEvent(NamedTuple):
    """Something that happened. `kind` is job, schedule, node or queue; "many": events that were only counted;
    "reset": what you know may be out of date."""

    id: int
    kind: str
    data: dict[str, Any]
    tenant: str | None = None  # None: visible to all tenants


class Subscription:
    """A bounded queue of events for one reader."""

    def __init__(self, tenant: str, kinds: frozenset[str], on_leave: Callable[[Subscription], None]) -> None:
        self._tenant = tenant
        self._kinds = kinds | {MANY, RESET}
        self._on_leave = on_leave
        self._waiting: deque[FeedEvent] = deque()
        self._changed = asyncio.Event()
        self.over = False  # no more events will come

    def offer(self, event: FeedEvent) -> None:
        if self.over or not self.wants(event):
            return
        if len(self._waiting) >= MAX_WAITING:
            self._waiting.clear()
            event, self.over = _reset(event.id), True
        self._waiting.append(event)
        self._changed.set()

    def wants(self, event: FeedEvent) -> bool:
        return event.kind in self._kinds and event.tenant in (None, self._tenant)

    def take(self) -> FeedEvent | None:
        return self._waiting.popleft() if self._waiting else None

    async def wait(self) -> None:
        """Until there is an event to take, or no more will come."""
        if not self._waiting and not self.over:
            self._changed.clear()
            await self._changed.wait()

    def end(self) -> None:
        self.over = True
        self._changed.set()

    def leave(self) -> None:
        self.end()
        self._on_leave(self)


class EventFeed:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._subscriptions: dict[Subscription, None] = {}
        self._position = 0  # of the reader
        self._reading: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._renewed_at: Micros = 0
        self._lock = asyncio.Lock()
        self.on_renewed: Callable[[Micros], None] = lambda expires_at: (
            None
        )  # this process need not wait for the notification

    @property
    def size(self) -> int:
        return len(self._subscriptions)

    async def subscribe(
        self, tenant: str, kinds: frozenset[str] = frozenset(KINDS)
    ) -> tuple[Subscription, int]:
        """A subscription, and the id of the last event before it."""
        async with self._lock:
            if self._reading is None:
                await self._renew()
                self._position = (await self._store.list_events(0, 0)).last_id
                self._wake = asyncio.Event()
                self._reading = asyncio.create_task(self._read(self._notify()), name="duetime-event-feed")
            made = Subscription(tenant, kinds, self._left)
            self._subscriptions[made] = None
            return made, self._position

    async def events(
        self, subscription: Subscription, position: int, after: int | None
    ) -> AsyncGenerator[FeedEvent, None]:
        """First what it missed since `after`, then new events, until it is over."""
        if after is not None and after != position:
            async for event in self._replay(subscription, after, position):
                yield event
        while True:
            while (taken := subscription.take()) is not None:
                yield taken
            if subscription.over:
                return
            await subscription.wait()

    def close_all(self) -> None:
        for subscription in list(self._subscriptions):
            subscription.leave()

    async def close(self) -> None:
        self.close_all()
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.wait([reading])
        self._lock = asyncio.Lock()  # the next event loop needs its own

    def _left(self, subscription: Subscription) -> None:
        self._subscriptions.pop(subscription, None)
        if not self._subscriptions:
            self._wake.set()  # the reader ends, too

    async def _replay(self, subscription: Subscription, after: int, until: int) -> AsyncIterator[FeedEvent]:
        """The events between two ids as far as the log reaches; a reset if it does not."""
        oldest = (await self._store.list_events(0, 1)).events
        if (
            after > until
            or until - after > MAX_REPLAYED
            or (after < until and (not oldest or oldest[0][0] > after + 1))
        ):
            yield _reset(until)
            return
        while after < until and (page := (await self._store.list_events(after, PAGE)).events):
            for number, line in page:
                event = read(number, line)
                if number <= until and subscription.wants(event):
                    yield event
            after = page[-1][0]

    # -- reading
    def _notify(self) -> Unsubscribe:
        loop, wake = asyncio.get_running_loop(), self._wake

        def on_hint(hint: Hint) -> None:
            """Called on any thread: all threads share a store in memory."""
            if isinstance(hint, EventHint):
                with suppress(RuntimeError):  # the loop has been closed
                    loop.call_soon_threadsafe(wake.set)

        return self._store.subscribe(on_hint)

    async def _read(self, unsubscribe: Unsubscribe) -> None:
        interval = POLL_INTERVAL if self._store.capabilities.hints else POLL_INTERVAL_WITHOUT_HINTS
        try:
            while self._subscriptions or self._lock.locked():  # locked: a subscriber is about to register
                self._wake.clear()
                if await self._read_page():
                    with suppress(TimeoutError):
                        async with asyncio.timeout(interval / SECOND):
                            await self._wake.wait()
        finally:
            self._reading = None
            self.close_all()  # if the reader failed, subscribers have to subscribe again
            unsubscribe()

    async def _read_page(self) -> bool:
        """Distribute one page; True if it was the last."""
        try:
            if self._clock.monotonic() - self._renewed_at > RENEW_INTERVAL:
                await self._renew()
            page = (await self._store.list_events(self._position, PAGE)).events
        except StoreError:
            await self._clock.sleep(AFTER_FAILURE)
            return False
        for number, line in page:
            event = read(number, line)
            for subscription in self._subscriptions:
                subscription.offer(event)
            self._position = number
        return len(page) < PAGE

    async def _renew(self) -> None:
        """Keep the record that there are subscribers. If there was none, the log has a gap here."""
        expires_at = self._clock.now() + RECORD_TTL
        if await self._store.put_record(*SUBSCRIBERS, b"{}", 0, expires_at):
            await self._store.add_events([gap(self._clock.now()).to_bytes()])
        else:
            await self._store.put_record(*SUBSCRIBERS, b"{}", None, expires_at)
        self._renewed_at = self._clock.monotonic()
        self.on_renewed(expires_at)


def read(number: int, line: bytes) -> FeedEvent:
    """An event of the log. Unknown kinds from later versions are passed on."""
    kind, tenant, data = LogEntry.from_bytes(line)
    if "at" in data:
        data["at"] = f"{to_datetime(data['at']).replace(tzinfo=None).isoformat()}Z"
    return _reset(number, data) if kind == GAP else FeedEvent(number, kind, data, tenant)


def check_types(types: Iterable[str]) -> frozenset[str]:
    wanted = frozenset(types)
    if unknown := sorted(wanted - set(KINDS)):
        raise InvalidInput("types", f"{unknown[0]!r} is not one of {', '.join(KINDS)}")
    if not wanted:
        raise InvalidInput("types", f"must name one or more of {', '.join(KINDS)}")
    return wanted


def _reset(number: int, data: dict[str, Any] | None = None) -> FeedEvent:
    return FeedEvent(number, RESET, {"action": RESET, **(data or {})})
