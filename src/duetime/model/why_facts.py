"""The facts from which a sentence of `why` is made: about one job, and about the nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from duetime.model.instant import SECOND, Micros
from duetime.model.job import Attempt, Ending, Job
from duetime.model.lease import Node
from duetime.model.limit import Queue, TaskLimit
from duetime.model.permissions import missing_permission
from duetime.model.permits import MIN_ASK_INTERVAL
from duetime.model.profile import NodeProfile
from duetime.model.schedule import LATE_AFTER
from duetime.model.target import shown_name
from duetime.model.zone import UTC_ZONE, Zone

HOUR, DAY = 3_600 * SECOND, 86_400 * SECOND


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """The nodes, and the profiles that live nodes have published."""

    now: Micros
    nodes: Sequence[Node] = ()
    profiles: Mapping[int, NodeProfile] = field(default_factory=dict)

    def living(self, role: str) -> list[Node]:
        return [
            node
            for node in self.nodes
            if role in node.roles and not node.dead and node.lease_until > self.now
        ]

    def serving_workers(self, queue: str) -> list[Node]:
        return self._workers(lambda profile: profile.serves(queue))

    def able(self, job: Job) -> list[Node]:
        """Live workers that can run it, as far as the job tells."""
        return self._workers(
            lambda profile: (
                profile.serves(job.queue) and job.target in profile.targets and _lacks(profile, job) is None
            )
        )

    def missing_permission(self, job: Job) -> str | None:
        """What a live worker of its queue would need in order to run it."""
        found = (
            _lacks(self.profiles[node.id], job)
            for node in self.serving_workers(job.queue)
            if node.id in self.profiles
        )
        return next((one for one in found if one is not None), None)

    def _workers(self, fits: Callable[[NodeProfile], bool]) -> list[Node]:
        """Live workers whose profile fits. A worker without a profile may fit."""
        return [
            node
            for node in self.living("worker")
            if (profile := self.profiles.get(node.id)) is None or fits(profile)
        ]

    def has_served(self, queue: str, target: str, since: Micros) -> bool:
        """Whether workers that can run it were there all the time since then. A gap that no fire counts as
        missed for is none. What dead nodes could run is no longer known: anything."""
        covered = since + LATE_AFTER
        for node in sorted(self.nodes, key=lambda node: node.started_at):
            if "worker" in node.roles and node.started_at <= covered and self._fits(node, queue, target):
                covered = max(covered, min(node.lease_until, self.now) + LATE_AFTER)
        return covered > self.now

    def _fits(self, node: Node, queue: str, target: str) -> bool:
        profile = self.profiles.get(node.id)
        return profile is None or (profile.serves(queue) and target in profile.targets)

    def busy(self, nodes: Sequence[Node]) -> bool:
        return all(
            node.id in self.profiles and (node.running or 0) >= self.profiles[node.id].concurrency
            for node in nodes
        )

    def bound(self, target: str) -> TaskLimit | None:
        bounds = (
            profile.bound(target)
            for node in self.living("worker")
            if (profile := self.profiles.get(node.id)) is not None
        )
        return next((bound for bound in bounds if bound is not None), None)

    def find(self, number: int | None) -> Node | None:
        return next((node for node in self.nodes if node.id == number), None)

    def call(self, number: int | None) -> str:
        node = self.find(number)
        return (
            "no node"
            if number is None
            else f"node {number}"
            if node is None
            else f"node {node.name} ({number})"
        )


def _lacks(profile: NodeProfile, job: Job) -> str | None:
    """A node that publishes no permissions, such as one of a program of its own, may have all."""
    if profile.permissions is None or shown_name(job.target) not in profile.targets:
        return None
    return missing_permission(profile.permissions, job.target, job.target_spec)


@dataclass(frozen=True, slots=True)
class JobFacts:
    """Everything that decides what happens to one job."""

    job: Job
    fleet: FleetStatus
    attempts: Sequence[Attempt] = ()
    queue: Queue | None = None
    running_in_queue: int = 0
    due_in_queue: int = 0  # of the job's tenant
    blocker: Job | None = None  # the job of its schedule that has started and not finished
    bound: TaskLimit | None = None  # of its limit key
    key_running: int = 0  # how many jobs of its limit key run
    key_jobs: Sequence[Job] = ()  # those of the job's tenant
    queue_free_at: Micros | None = None  # when the rate of the queue allows the next start, if not now
    key_asks_at: Micros | None = None  # when a job that the rate of the limit key holds up asks again
    zone: Zone = UTC_ZONE  # in which times are shown

    @property
    def now(self) -> Micros:
        return self.fleet.now

    @property
    def waits(self) -> bool:
        """It could start by its time, but something else holds it up."""
        held_up = self.bound is not None and held_up_by_rate(self.job, self.bound, self.now)
        return self.job.due_at <= self.now or (held_up and not self.retries)

    @property
    def retries(self) -> bool:
        """Its last attempt decided when it is due."""
        return bool(self.attempts) and self.attempts[-1].ending is not Ending.RELEASED

    def at(self, moment: Micros) -> str:
        return at(moment, self.now, self.zone)


def held_up_by_rate(job: Job, limit: TaskLimit, now: Micros) -> bool:
    """A job that a rate holds up becomes due again when the rate allows the next start; its fire time still
    says that it is late."""
    if limit.rate is None:
        return False
    return job.fire_time <= now < job.due_at <= now + max(limit.rate.interval, MIN_ASK_INTERVAL)


def at(moment: Micros, now: Micros, zone: Zone) -> str:
    """In local time: with seconds if it is near, with its date if it is not today."""
    when = zone.wall_time(moment)
    day = "" if when.date() == zone.wall_time(now).date() else f"{when:%Y-%m-%d} "
    return (
        f"{day}{when:%H:%M:%S} {zone.name}" if abs(moment - now) < HOUR else f"{day}{when:%H:%M} {zone.name}"
    )
