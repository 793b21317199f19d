"""Nodes: the processes of the fleet, their leases, and the tasks they serve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from duetime.app.context import AppContext
from duetime.engine.node.registry import all_published, profiles
from duetime.engine.submit.validate import check_name, check_note
from duetime.model.lease import Lease
from duetime.model.lease import Node as NodeRecord
from duetime.model.limit import Limit, Queue
from duetime.task import Task


class KnownTask(NamedTuple):
    name: str
    queue: str | None  # None: its nodes have not said so yet
    doc: str | None  # the first line of what its author wrote, where the task itself is known


@dataclass(frozen=True, slots=True)
class AppNodes:
    """Calling it lists the nodes."""

    context: AppContext

    async def __call__(self) -> list[NodeRecord]:
        """The processes of the fleet, living and recently dead."""
        return await self.context.store.nodes()

    async def leases(self) -> list[Lease]:
        return await self.context.store.leases()

    async def tasks(self) -> list[KnownTask]:
        """The tasks of this process and of the living nodes, by name."""
        store, now = self.context.store, await self.context.now()
        alive = {node.id for node in await store.nodes() if not node.dead and node.lease_until >= now}
        served = {
            name
            for node, profile in (await profiles(store)).items()
            if node in alive
            for name in profile.targets
        }
        published = await all_published(store)
        found = {
            name: KnownTask(name, published[name].queue if name in published else None, None)
            for name in served
            if not name.startswith("@")
        }
        return sorted(
            (found | {name: _known(task) for name, task in self.context.shared.tasks.items()}).values()
        )


def _known(task: Task[..., Any]) -> KnownTask:
    written = (task.__doc__ or "").strip().partition("\n")[0]
    return KnownTask(task.name, task.options.queue, written or None)


# Queues: pausing, resuming and limiting them, for all nodes.


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
