"""Claims for remote workers. Workers of the same tenant, queues and tasks form a group: they share one
subscription to hints, and one of them at a time asks the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from duetime.clock import Clock
from duetime.model.hint import Hint, JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY, Claimed
from duetime.model.lease import NodeId
from duetime.store import ClaimRequest, Lane, Store, Unsubscribe

LOOK_INTERVAL = SECOND  # between looks at everything, for lost hints and free permits
MAX_GROUPS = 1_000


class GroupName(NamedTuple):
    tenant: str
    queues: tuple[str, ...]
    tasks: tuple[str, ...]


class ClaimGroup:
    def __init__(self, store: Store, clock: Clock, name: GroupName) -> None:
        self.name = name
        self.waiting = 0
        self._store = store
        self._clock = clock
        # From the first due job on. A worker keeps cursors; requests may come to any process.
        self._lanes = tuple(
            Lane(queue, priority, 0, name.tenant)
            for priority in range(HIGHEST_PRIORITY, LOWEST_PRIORITY - 1, -1)
            for queue in name.queues
        )
        self._claiming = asyncio.Lock()
        self._woken = asyncio.Event()
        self._look_at: Micros = 0  # until then there is nothing to claim, unless a hint comes
        self._swept_at: Micros = 0

    async def claim(self, node: NodeId, room: int) -> list[Claimed]:
        """Due jobs, most urgent first. After a claim that found too little, the others in the group do not
        ask the store again until something changes."""
        async with self._claiming:
            now = self._clock.now()
            if now < self._look_at:
                return []
            sweep = now - self._swept_at >= LOOK_INTERVAL
            self._swept_at = now if sweep else self._swept_at
            self._look_at = now + LOOK_INTERVAL  # hints that come during the claim bring it forward
            request = ClaimRequest(node, self._lanes, self.name.tasks, room, prefetch=0, sweep=sweep)
            try:
                claims = await self._store.claim(request)
                if len(claims.jobs) >= room or claims.more:
                    self.hinted(0)
                elif (next_at := (await self._store.due_jobs(request)).next_at) is not None:
                    self._look_at = min(self._look_at, next_at)
            except BaseException:
                self._look_at = 0
                raise
            return claims.jobs

    async def wait(self, limit: Micros) -> None:
        """Until there may be something to claim, or for so long."""
        self.waiting += 1
        try:
            left = min(limit, self._look_at - self._clock.now())
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0, left) / SECOND):
                    await self._woken.wait()
        finally:
            self.waiting -= 1

    def hinted(self, due_at: Micros) -> None:
        if due_at < self._look_at:
            self._look_at = due_at
            self._woken.set()
            self._woken = asyncio.Event()


class ClaimGroups:
    """The groups of this process. Subscribes to the store with the first, until it is closed."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._groups: dict[GroupName, ClaimGroup] = {}
        self._unsubscribe: Unsubscribe | None = None

    def get(self, name: GroupName) -> ClaimGroup:
        self._subscribe()
        group = self._groups.get(name)
        if group is None:
            if len(self._groups) >= MAX_GROUPS:
                self._groups = {key: one for key, one in self._groups.items() if one.waiting}
            group = self._groups[name] = ClaimGroup(self._store, self._clock, name)
        return group

    def close(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _subscribe(self) -> None:
        if self._unsubscribe is None:
            loop = asyncio.get_running_loop()
            self._unsubscribe = self._store.subscribe(lambda hint: _on_loop(loop, self._hinted, hint))

    def _hinted(self, hint: JobHint) -> None:
        for name, group in self._groups.items():
            if hint.queue == "*" or (hint.tenant == name.tenant and hint.queue in name.queues):
                group.hinted(hint.due_at)


def _on_loop(loop: asyncio.AbstractEventLoop, listener: Callable[[JobHint], None], hint: Hint) -> None:
    """Hints come on any thread: all threads share a store in memory. Those of this loop count immediately."""
    if not isinstance(hint, JobHint):
        return
    if loop is _running_loop():
        listener(hint)
    else:
        with suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(listener, hint)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
