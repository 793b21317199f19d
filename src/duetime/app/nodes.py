"""Nodes: the processes of the fleet, their leases, and the tasks they serve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from duetime.app.context import AppContext
from duetime.app.stats import check_times
from duetime.engine.alert.fleet import skews
from duetime.engine.node.registry import all_published, profiles, visible_nodes
from duetime.engine.submit.build import Defaults
from duetime.engine.submit.validate import check_name, check_note
from duetime.model.duration import Duration
from duetime.model.lease import Lease
from duetime.model.lease import Node as NodeRecord
from duetime.model.limit import ALL_QUEUES, Queue, QueueFilter, check_max_running, parse_rate
from duetime.model.permissions import differences
from duetime.model.views import ArgumentView, NodeView, QueueDepths, TaskView
from duetime.model.why_facts import FleetStatus


@dataclass(frozen=True, slots=True)
class AppNodes:
    """Calling it lists the nodes."""

    context: AppContext

    async def __call__(self) -> list[NodeRecord]:
        """The processes of the fleet, living and recently dead."""
        return await self.context.store.nodes(counted=True)

    async def views(self) -> list[NodeView]:
        """The same, with what each publishes about itself, its clock included."""
        store, now = self.context.store, await self.context.now()
        known, clocks = await profiles(store), await skews(store)
        nodes = await store.nodes(counted=True)
        fleet = FleetStatus(now, nodes, known)
        lacks = differences(
            {
                node.id: own
                for node in fleet.living("worker")
                if node.id in known and (own := known[node.id].permissions) is not None
            }
        )
        return [
            NodeView.of(
                node,
                now,
                known.get(node.id),
                lacks.get(node.id, ()),
                clocks[node.id][1] if node.id in clocks else 0,
            )
            for node in nodes
        ]

    async def of_tenant(self) -> list[NodeView]:
        """Without brokers, permissions and clocks, and without the remote workers of other tenants."""
        now = await self.context.now()
        return [
            NodeView.of(node, now)
            for node in await visible_nodes(self.context.store, self.context.tenant, counted=True)
        ]

    async def leases(self) -> list[Lease]:
        self.context.require_open()
        return await self.context.shared.leases.read()

    async def tasks(self) -> list[TaskView]:
        """The tasks of this process and of the living nodes, by name."""
        store, now = self.context.store, await self.context.now()
        nodes = await visible_nodes(store, self.context.tenant)
        alive = {node.id for node in nodes if not node.dead and node.lease_until >= now}
        served = {
            name
            for node, profile in (await profiles(store)).items()
            if node in alive
            for name in profile.targets
            if not name.startswith("@")
        }
        known = await all_published(store)
        known |= {name: task.defaults for name, task in self.context.shared.tasks.items()}
        names = sorted(served | self.context.shared.tasks.keys())
        return [_task_view(name, known[name]) if name in known else TaskView(name=name) for name in names]


def _task_view(name: str, declared: Defaults) -> TaskView:
    limit, told = declared.limit, dict(declared.about)
    limits = (None, None, None) if limit is None else (limit.max_running, limit.rate, limit.per)
    arguments = [
        ArgumentView(**argument, default=declared.left_out.get(argument["name"]))
        for argument in told.pop("arguments", [])
    ]
    return TaskView(
        name=name, queue=declared.queue, priority=declared.priority, arguments=arguments, **told,
        max_running=limits[0], rate=limits[1], limited_per=limits[2],
    )  # fmt: skip


# Queues: pausing, resuming and limiting them, for all nodes.


@dataclass(frozen=True, slots=True)
class AppQueues:
    """Calling it lists the queues."""

    context: AppContext

    async def __call__(self, *, limit: int | None = None, after: str = "") -> list[Queue]:
        """The queues that had a job or a setting, by name; `after` is the last name already seen."""
        return await self.context.store.queues(wanted=QueueFilter(after=after, limit=limit))

    async def counted(self, wanted: QueueFilter = ALL_QUEUES) -> list[Queue]:
        """The same with the counts of their live jobs. One queue by name is read from the store itself: its
        caller may just have changed it."""
        store = self.context.reads if wanted.name is None else self.context.store
        return await store.queues(counted=True, wanted=wanted)

    async def depth(self, since: Duration = "1h", step: Duration = "1m") -> QueueDepths:
        """How many jobs the queues of all tenants had during `since`, in steps of this length. The leader
        counts them once a minute, less often if counting is slow."""
        span = check_times(since, step)
        return await self.context.shared.stats.depths(*span, await self.context.now())

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
        change = partial(
            replace,
            max_running=check_max_running(max_running, "max_running"),
            rate=None if rate is None else parse_rate(rate, "rate"),
        )
        return await self.context.commands.change_queue(check_name(name, "queue"), change)
