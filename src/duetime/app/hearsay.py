"""Hearsay: the terms of tasks that this process does not know itself, as the nodes that run them say, remembered for a short while."""

from __future__ import annotations

from duetime.clock import Clock
from duetime.engine.drafts import Defaults
from duetime.engine.terms import published
from duetime.model.instant import SECOND, Micros
from duetime.store import Store

BELIEVED_FOR = 10 * SECOND
MOST = 1_000  # tasks: callers may think of any name


class Hearsay:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._heard: dict[str, tuple[Defaults, Micros]] = {}

    async def terms_of(self, task: str) -> Defaults:
        now = self._clock.monotonic()
        heard = self._heard.get(task)
        if heard is not None and now - heard[1] < BELIEVED_FOR:
            return heard[0]
        terms = await published(self._store, task)
        if len(self._heard) >= MOST:
            self._heard.clear()
        self._heard[task] = terms, now
        return terms
