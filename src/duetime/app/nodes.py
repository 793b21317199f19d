"""Nodes: the processes of the fleet, their leases, and the tasks they serve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from duetime.app.context import AppContext
from duetime.engine.node.registry import all_published, profiles
from duetime.model.lease import Lease
from duetime.model.lease import Node as NodeRecord
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
