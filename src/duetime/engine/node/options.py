"""The options of a node, checked before it starts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from duetime.archive import Archive
from duetime.engine.submit.build import Defaults
from duetime.errors import ConfigError
from duetime.invoker import Handler
from duetime.model import duration
from duetime.model.instant import SECOND, Micros
from duetime.model.permissions import Permissions

ROLES = ("planner", "dispatcher", "worker")
DEFAULT_ROLES = ("planner", "worker")  # with a queue, all of them
MAX_QUEUE_DEPTH = 1_000_000
MIN_LEASE = SECOND // 2
MAX_CONCURRENCY = 10_000
MAX_LOAD = 100


class HandlerRegistry(NamedTuple):
    """What a node knows of its tasks, by name."""

    handlers: Mapping[str, Handler]
    retentions: Mapping[str, Micros] = MappingProxyType({})  # of tasks whose jobs are kept for a shorter time
    defaults: Mapping[str, Defaults] = MappingProxyType({})  # for jobs that are submitted by name alone
    threaded: frozenset[str] = frozenset()  # tasks whose attempts take a thread or a process of their own


@dataclass(frozen=True, slots=True)
class NodeOptions:
    name: str
    version: str
    roles: tuple[str, ...] = DEFAULT_ROLES
    queues: tuple[str, ...] = ()  # empty: all of them
    concurrency: int = 100
    threads: int | None = None  # how many plain and isolated tasks run at the same time; None: `concurrency`
    lease: Micros = 15 * SECOND
    lookahead: Micros = 10 * SECOND
    grace: Micros = 25 * SECOND
    retention: Micros = 30 * 86_400 * SECOND
    output_retention: Micros = 7 * 86_400 * SECOND  # of what jobs print; 0: it is not kept
    max_load: float | None = None  # of this machine, per core, above which nothing new is claimed
    broker: str | None = None  # its address, to be shown
    permissions: Permissions | None = None  # what its operator allows, for others to know
    queue_depth: int = 5_000  # jobs of one queue, priority and tenant that the broker may hold
    archive: Archive | None = None  # old jobs go there before they are deleted
    keep_failed: Micros | None = None  # dead letters stay so long, if that is longer
    keep_queues: Mapping[str, Micros] = field(default_factory=dict)  # how long jobs of these queues stay
    ping: Callable[[], Awaitable[None]] | None = None  # an outside monitor is told that the fleet works
    watchdog_interval: Micros = 60 * SECOND
    alert_interval: Micros = 15 * SECOND  # between two looks for what is wrong

    def __post_init__(self) -> None:
        unknown = [role for role in self.roles if role not in ROLES]
        if unknown or not self.roles:
            raise ConfigError(
                f"roles: {', '.join(unknown) or 'none given'}: use one or more of {', '.join(ROLES)}"
            )
        if not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise ConfigError(f"concurrency: {self.concurrency} must be from 1 to {MAX_CONCURRENCY:,}")
        if self.threads is not None and self.threads < 1:
            raise ConfigError(f"threads: {self.threads} must be at least 1")
        if self.lease < MIN_LEASE:
            least = duration.show(MIN_LEASE)
            raise ConfigError(
                f"lease: {duration.show(self.lease)} is too short for heartbeats to be in time: "
                f"use {least} or more"
            )
        if self.max_load is not None and not 0 < self.max_load <= MAX_LOAD:
            raise ConfigError(
                f"max_load: {self.max_load} must be above 0 and at most {MAX_LOAD}: "
                "1 means that every core is busy"
            )
        if not 1 <= self.queue_depth <= MAX_QUEUE_DEPTH:
            raise ConfigError(f"queue_depth: {self.queue_depth} must be from 1 to {MAX_QUEUE_DEPTH:,}")
        if self.lookahead < SECOND:
            raise ConfigError(
                f"lookahead: {duration.show(self.lookahead)} is too short to plan ahead: use 1s or more"
            )
