"""The event log: small JSON entries about jobs, schedules, queues and nodes, for subscribers of the API.

Entries are collected in memory and written in batches, so work never waits for the log. When there are too
many in one interval, the rest are only counted. Nothing is collected or written while the log has no
subscriber. The first subscriber writes a record with an expiry and an event; the hint of that event makes
every process read the record.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from duetime.clock import Clock
from duetime.errors import StoreError
from duetime.model.codec import decode, encode
from duetime.model.events import (
    AttemptsSettled,
    Event,
    FiresPlanned,
    JobChanged,
    JobsClaimed,
    JobsRecovered,
    JobsSubmitted,
    NodeFenced,
    NodeJoined,
    NodeLeft,
    NodesExpired,
    QueueChanged,
    ScheduleChanged,
)
from duetime.model.hint import EventHint, Hint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Ending, State
from duetime.model.settle import Settlement
from duetime.model.target import shown_name
from duetime.store import Store, Unsubscribe

# A debouncer: runs some work once, a little later, however often it is asked for in the meantime.


class Debouncer:
    """`work` returns the delay until its next run, or None to run again only when asked. No task exists while
    nothing is asked for."""

    def __init__(self, work: Callable[[], Awaitable[Micros | None]]) -> None:
        self._work = work
        self._timer: asyncio.Handle | None = None
        self._due = 0.0  # when the timer fires: not every event loop's handles say so
        self._running: asyncio.Task[None] | None = None
        self._asked: Micros | None = None  # the shortest delay asked for during a run

    def ask(self, within: Micros) -> None:
        """Run the work within this time. Call it on the event loop."""
        if self._running is not None:
            self._asked = within if self._asked is None else min(self._asked, within)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + within / SECOND
        if self._timer is None or self._due > due:
            self._cancel_timer()
            self._timer, self._due = loop.call_later(within / SECOND, self._start), due

    async def close(self) -> None:
        """Finish a run that has started. A run that was only asked for does not start."""
        self._cancel_timer()
        if self._running is not None:
            await asyncio.wait([self._running])
        self._cancel_timer()

    def _start(self) -> None:
        self._timer = self._asked = None
        self._running = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        delay: Micros | None = None
        try:
            delay = await self._work()
        finally:
            self._running = None
            delays = [one for one in (delay, self._asked) if one is not None]
            if delays:
                self.ask(min(delays))

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


SUBSCRIBERS = (
    "audience",
    "",
    "events",
)  # kind, tenant and key of the record that says until when the log has subscribers
WRITE_INTERVAL = SECOND // 5
MAX_JOB_EVENTS = 40  # written one by one in an interval
MAX_EVENTS = 140  # including rare events, which a flood of job events must not crowd out
MAX_TENANTS = 100  # that get a count of their own; with more of them, one gap entry tells all
CHECK_INTERVAL = 10 * SECOND  # for the subscribers' record, in case a hint was lost
RENEWAL_MARGIN = 2 * CHECK_INTERVAL  # check the record again this long before it expires
RETRY_INTERVAL = SECOND
GAP_WINDOW = (
    2 * CHECK_INTERVAL
)  # an event dropped within this time before a subscription is reported as a gap

KINDS = ("job", "schedule", "node", "queue")
MANY = "many"  # events that were only counted
GAP = "gap"  # events before this entry were not written
RETRIES = frozenset({Ending.FAILED, Ending.TIMED_OUT, Ending.LOST})
RARE = frozenset({ScheduleChanged, QueueChanged, NodeJoined, NodeLeft, NodeFenced, NodesExpired})
LOGGED = RARE | {AttemptsSettled, JobsClaimed, JobsSubmitted, FiresPlanned, JobChanged, JobsRecovered}
_NODE_ACTIONS = {NodeJoined: "joined", NodeLeft: "left", NodeFenced: "fenced"}


class LogEntry(NamedTuple):
    kind: str
    tenant: str | None  # None: visible to every tenant
    data: dict[str, Any]  # `at` in microseconds

    def to_bytes(self) -> bytes:
        return encode([self.kind, self.tenant, self.data])

    @staticmethod
    def from_bytes(line: bytes) -> LogEntry:
        return LogEntry(*decode(line))


class EventLogWriter:
    """An observer for one event loop."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._writing = Debouncer(self._write)
        self._checking = Debouncer(self._check_subscribers)
        self._unsubscribe: Unsubscribe | None = None
        self._listened_until: Micros = 0  # by the store's clock
        self._checked_at: Micros | None = None
        self._waiting: list[LogEntry] = []
        self._counted: Counter[str | None] = Counter()  # by tenant: events beyond those that wait
        self._dropped_at: Micros | None = (
            None  # when an event was last dropped because the log had no subscriber
        )
        self.written = self.merged = 0

    @property
    def listened(self) -> bool:
        """Whether the log has subscribers, as far as this process knows."""
        return self._clock.now() < self._listened_until

    def __call__(self, event: Event, now: Micros) -> None:
        # Claims and settlements of no jobs are frequent and say nothing.
        if type(event) not in LOGGED or (isinstance(event, JobsClaimed | AttemptsSettled) and not event.jobs):
            return
        if now < self._listened_until:
            self._collect(event, now)
            return
        self._dropped_at = monotonic = self._clock.monotonic()
        if self._checked_at is None or monotonic - self._checked_at >= CHECK_INTERVAL:
            self._checked_at = monotonic
            self._checking.ask(0)

    def open(self) -> None:
        """Start to receive hints. Call it on the event loop."""
        if self._unsubscribe is None:
            loop = asyncio.get_running_loop()
            self._unsubscribe = self._store.subscribe(lambda hint: self._on_hint(hint, loop))
            self._checking.ask(0)

    def listen_until(self, expires_at: Micros) -> None:
        """The log has subscribers until then, in this process or in another."""
        if not self.listened and self._dropped_at is not None:
            if self._clock.monotonic() - self._dropped_at < GAP_WINDOW:
                self._counted[None] += 1
                self._writing.ask(0)
            self._dropped_at = None
        self._listened_until = expires_at
        if self._unsubscribe is not None:
            # Check in time even if nothing happens, so that the next event is written and not dropped.
            self._checking.ask(max(CHECK_INTERVAL, expires_at - self._clock.now() - RENEWAL_MARGIN))

    async def close(self) -> None:
        """Write what waits, if the store accepts it."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        await self._checking.close()
        await self._writing.close()
        await self._write()
        await self._writing.close()
        self._listened_until, self._checked_at = 0, None

    def _collect(self, event: Event, now: Micros) -> None:
        room = (MAX_EVENTS if type(event) in RARE else MAX_JOB_EVENTS) - len(self._waiting)
        tenants = _tenants_of(event)
        if len(tenants) <= room:
            self._waiting.extend(_entries_of(event, now))
        else:
            self._waiting.extend(
                entry for _, entry in zip(range(room), _entries_of(event, now), strict=False)
            )
            self._counted.update(tenants[max(0, room) :])
        if self._waiting or self._counted:
            self._writing.ask(WRITE_INTERVAL)

    async def _write(self) -> Micros | None:
        waiting, self._waiting = self._waiting, []
        counted, self._counted = self._counted, Counter()
        entries = [*waiting, *_summary(counted, self._clock.now())]
        if not entries:
            return None
        try:
            await self._store.add_events([entry.to_bytes() for entry in entries])
        except StoreError:
            self._counted.update(entry.tenant for entry in waiting)
            self._counted.update(counted)
            return RETRY_INTERVAL
        self.written += len(waiting)
        self.merged += counted.total()
        return None

    def _on_hint(self, hint: Hint, loop: asyncio.AbstractEventLoop) -> None:
        """Runs on any thread: threads may share a store in memory."""
        if isinstance(hint, EventHint) and not self.listened:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._checking.ask, 0)

    async def _check_subscribers(self) -> Micros | None:
        try:
            record = await self._store.get_record(*SUBSCRIBERS)
        except StoreError:
            return (
                RETRY_INTERVAL if self.listened else None
            )  # without subscribers the next event checks again
        self._checked_at = self._clock.monotonic()
        if record is not None and record.expires_at is not None:
            self.listen_until(record.expires_at)
        return None


def gap(now: Micros) -> LogEntry:
    return LogEntry(GAP, None, {"at": now})


def _summary(counted: Counter[str | None], now: Micros) -> list[LogEntry]:
    """A tenant sees the number of its own events only."""
    if None in counted or len(counted) > MAX_TENANTS:
        return [gap(now)]
    return [
        LogEntry(MANY, tenant, {"action": MANY, "count": count, "at": now})
        for tenant, count in counted.items()
    ]


def _tenants_of(event: Event) -> list[str | None]:
    """The tenant of each entry the event makes. Cheaper than the entries, for events that are only
    counted."""
    match event:
        case JobsClaimed(jobs) | AttemptsSettled(_, jobs) | JobsRecovered(_, _, jobs):
            return [job.tenant for job in jobs]
        case JobsSubmitted(drafts):
            return [draft.tenant for draft in drafts]
        case _:
            return [entry.tenant for entry in _entries_of(event, 0)]


def _entries_of(event: Event, now: Micros) -> Iterator[LogEntry]:
    match event:
        case JobsSubmitted(drafts, stored):
            for draft, own in zip(drafts, stored, strict=True):
                if draft.id == own:
                    yield _job("submitted", draft, State.PENDING, now)
        case JobsClaimed(jobs):
            for job in jobs:
                yield _job("started", job, State.RUNNING, now)
        case AttemptsSettled(settlements, jobs) | JobsRecovered(_, settlements, jobs):
            for settlement, job in zip(settlements, jobs, strict=True):
                yield _job(_ending(settlement), job, settlement.state, settlement.finished_at)
        case JobChanged(tenant, job_id, action):
            state = {"state": State.CANCELLED.value} if action == "cancelled" else {}
            yield LogEntry("job", tenant, {"action": action, "id": str(job_id), **state, "at": now})
        case FiresPlanned():
            yield from _planned(event, now)
        case _:
            yield from _rare(event, now)


def _rare(event: Event, now: Micros) -> Iterator[LogEntry]:
    match event:
        case ScheduleChanged(schedule, change):
            own = {"name": schedule.draft.name, "queue": schedule.draft.queue}
            yield LogEntry(
                "schedule",
                schedule.draft.tenant,
                {"action": change.value, "id": str(schedule.id), **own, "at": now},
            )
        case QueueChanged(queue):
            action = "paused" if queue.paused else "resumed"
            yield LogEntry(
                "queue",
                None,
                {"action": action, "id": queue.name, "name": queue.name, "queue": queue.name, "at": now},
            )
        case NodeJoined() | NodeLeft() | NodeFenced():
            yield _node(_NODE_ACTIONS[type(event)], event.node, now)
        case NodesExpired(nodes):
            for node in nodes:
                yield _node("died", node, now)
        case _:
            pass


def _planned(event: FiresPlanned, now: Micros) -> Iterator[LogEntry]:
    for schedule, firing in event.planned:
        draft = schedule.draft
        for fire in firing.fires:
            state, action = (
                (State.PENDING, "planned") if fire.skip_reason is None else (State.SKIPPED, "skipped")
            )
            data = {
                "action": action,
                "id": str(fire.id),
                "name": shown_name(draft.target),
                "state": state.value,
                "queue": draft.queue,
            }
            yield LogEntry("job", draft.tenant, {**data, "schedule": draft.name, "at": now})


def _job(action: str, job: Any, state: State, at: Micros) -> LogEntry:
    """The entry of a draft or of a claimed job."""
    data = {
        "action": action,
        "id": str(job.id),
        "name": shown_name(job.target),
        "state": state.value,
        "queue": job.queue,
    }
    if job.schedule is not None:
        data["schedule"] = job.schedule
    return LogEntry("job", job.tenant, {**data, "at": at})


def _ending(settlement: Settlement) -> str:
    if settlement.state is State.PENDING and settlement.ending in RETRIES:
        return "retrying"
    return (
        settlement.ending.value
        if settlement.state in (State.PENDING, State.RUNNING)
        else settlement.state.value
    )


def _node(action: str, node: int, now: Micros) -> LogEntry:
    return LogEntry("node", None, {"action": action, "id": str(node), "at": now})
