"""The registry of the fleet: nodes publish what they serve and the defaults of their tasks, as records that
belong to no tenant.

Others read from it why a job waits, and how to build a job of a task that they know only by name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from duetime.clock import Clock
from duetime.engine.submit.build import NO_DEFAULTS, Defaults
from duetime.errors import InvalidInput, UnknownTask
from duetime.model import duration
from duetime.model.codec import decode, encode
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import Node, NodeId
from duetime.model.limit import Limit
from duetime.model.profile import NodeProfile
from duetime.model.unique import Unique
from duetime.store import Record, Store

_logger = logging.getLogger("duetime")
NODE, TASK = "node", "task"  # kinds of records
ALL_TENANTS = ""
PAGE = 1_000
PUBLISH_INTERVAL = 600 * SECOND
PROFILE_TTL = 3 * PUBLISH_INTERVAL  # outlives the node a little; the node's own row says whether it lives
CACHE_TTL = 10 * SECOND
MAX_CACHED_TASKS = 1_000  # callers may send any name
DEFAULTS_TTL = (
    30 * 86_400 * SECOND
)  # jobs may be submitted that long after the last worker of their task has stopped


class TaskDefaultsPublisher:
    """Publishes this process's task defaults. On conflict the most recently started process wins: each
    overwrites others' defaults once, also if its node joins again, and from then on only renews its own."""

    def __init__(self, defaults: Mapping[str, Defaults]) -> None:
        self._defaults = {task: to_bytes(own) for task, own in defaults.items()}
        self._published = False

    async def publish(self, store: Store, now: Micros) -> None:
        if not self._defaults:
            return
        known = await _read_all(store, TASK)
        for task, own in self._defaults.items():
            if self._is_missing(known.get(task), own, now):
                await store.put_record(TASK, ALL_TENANTS, task, own, expires_at=now + DEFAULTS_TTL)
        self._published = True

    def _is_missing(self, known: Record | None, own: bytes, now: Micros) -> bool:
        if known is None:
            return True
        return (
            not self._published if known.value != own else (known.expires_at or 0) < now + DEFAULTS_TTL // 2
        )


class TaskRegistryPublisher:
    """The loop of a node that keeps its profile and its tasks' defaults in the store."""

    name = "registry"

    def __init__(
        self, store: Store, clock: Clock, node: NodeId, profile: NodeProfile, defaults: TaskDefaultsPublisher
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._profile = profile.to_bytes()
        self._defaults = defaults

    async def run_once(self) -> Micros:
        now = self._clock.now()
        await self._store.put_record(
            NODE, ALL_TENANTS, str(self._node), self._profile, expires_at=now + PROFILE_TTL
        )
        await self._defaults.publish(self._store, now)
        return PUBLISH_INTERVAL


async def profiles(store: Store) -> dict[int, NodeProfile]:
    """By node. Nodes that have published nothing yet are missing."""
    return {
        int(node): NodeProfile.from_bytes(record.value)
        for node, record in (await _read_all(store, NODE)).items()
    }


async def visible_nodes(store: Store, tenant: str, counted: bool = False) -> list[Node]:
    """All but the remote workers of other tenants."""
    known = await profiles(store)
    return [
        node
        for node in await store.nodes(counted=counted)
        if node.id not in known or known[node.id].visible_to(tenant)
    ]


class PublishedTask(NamedTuple):
    """What nodes have published about a task."""

    defaults: Defaults = NO_DEFAULTS  # also if only a later version can read them
    warning: str | None = None  # no node has had the task: its name may be mistyped


class PublishedTasks:
    """What this process has read recently about tasks that are not registered in it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.strict = False  # new work for a task that no node has had is refused
        self.warn: Callable[[str], None] = _logger.warning
        self._store = store
        self._clock = clock
        self._read: dict[str, tuple[PublishedTask, Micros]] = {}
        self._warned: set[str] = set()

    @property
    def size(self) -> int:
        return len(self._read)

    async def read(self, task: str) -> PublishedTask:
        now = self._clock.monotonic()
        known = self._read.get(task)
        if known is not None and now - known[1] < CACHE_TTL:
            return known[0]
        found = await published(self._store, task)
        if len(self._read) >= MAX_CACHED_TASKS:
            self._read.clear()
        self._read[task] = found, now
        return found

    async def for_new_work(self, task: str) -> Defaults:
        """The defaults for a new job or schedule."""
        found = await self.read(task)
        if found.warning is not None:
            if self.strict:
                raise UnknownTask("task", found.warning)
            self._warn(task, found.warning)
        return found.defaults

    def _warn(self, task: str, warning: str) -> None:
        """Once for each task."""
        if task in self._warned:
            return
        if len(self._warned) >= MAX_CACHED_TASKS:
            self._warned.clear()
        self._warned.add(task)
        self.warn(warning)


async def published(store: Store, task: str) -> PublishedTask:
    record = await store.get_record(TASK, ALL_TENANTS, task)
    if record is not None:
        return PublishedTask(_defaults(record))
    nodes = (await profiles(store)).values()
    if any(task in profile.targets for profile in nodes):
        return PublishedTask()  # remote workers have it, which publish no defaults
    served = {name for profile in nodes if profile.tenant is None for name in profile.targets}
    close = get_close_matches(task, {*served, *await _read_all(store, TASK)})
    near = f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""
    return PublishedTask(
        warning=f"no node has had the task {task!r} so far{near}: its jobs wait until one has"
    )


async def all_published(store: Store) -> dict[str, Defaults]:
    """By task."""
    return {task: _defaults(record) for task, record in (await _read_all(store, TASK)).items()}


async def _read_all(store: Store, kind: str) -> dict[str, Record]:
    found: dict[str, Record] = {}
    after: tuple[str, str] | None = None
    while page := await store.list_records(kind, ALL_TENANTS, PAGE, after):
        found |= {record.key: record for record in page}
        after = page[-1].tenant, page[-1].key
    return found


def _defaults(record: Record) -> Defaults:
    try:
        return from_bytes(record.value)
    except (InvalidInput, LookupError, TypeError, ValueError):
        return NO_DEFAULTS


def to_bytes(defaults: Defaults) -> bytes:
    limit, unique, names = defaults.limit, defaults.unique, defaults.names
    return encode(
        {
            "queue": defaults.queue,
            "priority": defaults.priority,
            "delivery": defaults.delivery,
            "version": defaults.version,
            "limit": None
            if limit is None
            else {"max_running": limit.max_running, "per": limit.per, "rate": limit.rate},
            "unique": None if unique is None else _unique_json(unique),
            "names": None if names is None else sorted(names),
            "left_out": defaults.left_out,
            "about": defaults.about,
        }
    )


def from_bytes(data: bytes) -> Defaults:
    value = decode(data)
    limit, unique, names = value["limit"], value["unique"], value["names"]
    return Defaults(
        queue=value["queue"],
        priority=value["priority"],
        delivery=value["delivery"],
        version=value["version"],
        limit=None if limit is None else Limit(**limit),
        unique=None if unique is None else Unique(**unique),
        names=None if names is None else frozenset(names),
        left_out=value["left_out"],
        about=value["about"],
    )


def _unique_json(unique: Unique) -> dict[str, Any]:
    states, within, on_conflict = unique.rule
    shown = None if within is None else duration.show(within)
    return {"by": unique.by, "states": sorted(states), "within": shown, "on_conflict": on_conflict}
