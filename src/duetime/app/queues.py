"""Queues: pausing, resuming and limiting them, for all nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from duetime.app.context import AppContext
from duetime.engine.submit.validate import check_name, check_note
from duetime.model.limit import Limit, Queue


@dataclass(frozen=True, slots=True)
class AppQueues:
    """Calling it lists the queues."""

    context: AppContext

    async def __call__(self) -> list[Queue]:
        """Every queue that ever had a job or a setting, by name."""
        return await self.context.store.queues()

    async def counted(self) -> list[Queue]:
        """Every queue, with the counts of its live jobs."""
        return await self.context.store.queues(counted=True)

    async def pause(self, name: str, note: str | None = None) -> Queue:
        """Start no more jobs of this queue on any node; running jobs continue."""
        note, now = check_note(note), await self.context.now()

        def change(queue: Queue) -> Queue:
            return replace(
                queue, paused=True, pause_note=note, paused_at=queue.paused_at if queue.paused else now
            )

        return await self.context.commands.change_queue(check_name(name, "queue"), change)

    async def resume(self, name: str) -> Queue:
        change = partial(replace, paused=False, pause_note=None, paused_at=None)
        return await self.context.commands.change_queue(check_name(name, "queue"), change)

    async def limit(self, name: str, max_running: int | None = None, rate: str | None = None) -> Queue:
        """At most `max_running` jobs at the same time and `rate` starts in a period ("100/1m"), over all
        nodes. None: no limit."""
        limit = None if max_running is None and rate is None else Limit(max_running, rate=rate)
        change = partial(replace, max_running=max_running, rate=None if limit is None else limit.parsed_rate)
        return await self.context.commands.change_queue(check_name(name, "queue"), change)
