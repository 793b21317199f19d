"""Lists and statistics from a read replica of the store, while it is close behind. What decides anything, and
what a caller may just have written, is read from the store itself."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from duetime.app.stats import TtlCache
from duetime.clock import Clock
from duetime.errors import ConfigError, DuetimeError, StoreError
from duetime.model import duration
from duetime.model.events import ReadStoreChanged
from duetime.model.identity import StoreIdentity
from duetime.model.instant import SECOND, Micros
from duetime.model.views import ReadStoreView
from duetime.observer import Observers
from duetime.store import Store

READING = frozenset(
    {
        "list_jobs",
        "count_jobs",
        "queues",
        "list_schedules",
        "list_records",
        "nodes",
    }
)
MAX_LAG = 10 * SECOND
CHECK_INTERVAL = SECOND
ANSWER_TIMEOUT = 1.0  # seconds: the reader of a page must not wait for a replica that is away
INSTEAD = "lists and statistics come from the store itself"


class ReadStore:
    """The reading verbs go to the replica or, if it does not answer or is too far behind, to the store. All
    other verbs go to the store."""

    def __init__(self, store: Store, replica: Store, clock: Clock, observers: Observers) -> None:
        self._store = store
        self._replica = replica
        self._clock = clock
        self._observers = observers
        self._cache = TtlCache(clock, CHECK_INTERVAL)
        self._is_open = False
        self._equal_at: Micros = 0  # when the replica last had everything, by the store's clock
        self._remark: str | None = None

    def __getattr__(self, name: str) -> Any:
        return partial(self._read, name) if name in READING else getattr(self._store, name)

    async def open(self) -> None:
        """After the store. A replica that is away is used when it answers; a wrong one is an error now."""
        with suppress(StoreError, TimeoutError):
            await self._lag()

    async def close(self) -> None:
        self._is_open = False
        self._cache = TtlCache(self._clock, CHECK_INTERVAL)
        await self._replica.close()

    async def state(self) -> ReadStoreView:
        view: ReadStoreView = await self._cache.get("state", self._check)
        return view

    async def _read(self, verb: str, *arguments: Any, **options: Any) -> Any:
        if (await self.state()).remark is None:
            try:
                return await getattr(self._replica, verb)(*arguments, **options)
            except DuetimeError:
                pass  # the next check says what is wrong
        return await getattr(self._store, verb)(*arguments, **options)

    async def _check(self) -> ReadStoreView:
        try:
            lag = await self._lag()
        except (DuetimeError, TimeoutError) as problem:
            text = problem.message if isinstance(problem, DuetimeError) else "no answer in time"
            return self._noted(ReadStoreView(remark=f"the read replica is not used ({text}): {INSTEAD}"))
        behind = f"the read replica is {duration.show(lag // SECOND * SECOND)} behind: {INSTEAD}"
        return self._noted(ReadStoreView(lag_ms=lag / 1_000, remark=behind if lag > MAX_LAG else None))

    async def _lag(self) -> Micros:
        async with asyncio.timeout(ANSWER_TIMEOUT):
            if not self._is_open:
                await self._replica.open()
                self._is_open = True
            newest, replayed = await self._store.identity(), await self._replica.identity()
        if newest.data != replayed.data:
            raise ConfigError("read_store: it is not a copy of the store's database: give a replica of it")
        return self._behind(newest, replayed)

    def _behind(self, newest: StoreIdentity, replayed: StoreIdentity) -> Micros:
        """Not longer than since the replica was last equal: after an idle hour its last commit is an hour
        old."""
        if replayed.log >= newest.log:
            self._equal_at = newest.log_at
            return 0
        return max(0, newest.log_at - max(replayed.log_at, self._equal_at))

    def _noted(self, view: ReadStoreView) -> ReadStoreView:
        if (view.remark is None) != (self._remark is None):
            self._observers(ReadStoreChanged(view.remark))
        self._remark = view.remark
        return view
