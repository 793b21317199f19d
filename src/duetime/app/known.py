"""The tasks a job can be submitted under: those this process has, and those that living nodes say they run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from duetime.app.client import Client
from duetime.engine.herald import profiles
from duetime.engine.terms import all_published
from duetime.model.instant import Micros
from duetime.model.lease import Node
from duetime.store import Store
from duetime.task import Task


class KnownTask(NamedTuple):
    name: str
    queue: str | None  # None: its nodes have not said so yet
    doc: str | None  # the first line of what its author wrote, where the task itself is known


class KnownTasks(Client):
    async def known_tasks(self) -> list[KnownTask]:
        """By name."""
        self._require_open()
        own = {name: _shown(task) for name, task in self.tasks.items()}
        said = await all_published(self._store)
        names = await _of_nodes(self._store, await self.nodes(), await self._commands.now())
        elsewhere = {name: KnownTask(name, said[name].queue if name in said else None, None) for name in names}
        return sorted((elsewhere | own).values())


async def _of_nodes(store: Store, nodes: Sequence[Node], now: Micros) -> set[str]:
    alive = {node.id for node in nodes if not node.dead and node.lease_until >= now}
    said = await profiles(store)
    return {name for node, profile in said.items() if node in alive for name in profile.targets if not name.startswith("@")}


def _shown(task: Task[..., Any]) -> KnownTask:
    written = (task.__doc__ or "").strip().partition("\n")[0]
    return KnownTask(task.name, task.options.queue, written or None)
