"""What `duetime doctor` looks at: first everything is read, then pure functions judge it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from duetime.app import App
from duetime.cli.reading import all_schedules, open_dead_letters
from duetime.clock import wall_micros
from duetime.config import Settings, hide_password
from duetime.config_seeds import HOST, KNOWN
from duetime.model import duration
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Job, JobFilter, State
from duetime.model.lease import Lease, Node
from duetime.store import QueueCount

OVERDUE = 60 * SECOND
MOST_SKEW = 2 * SECOND
MOST_LISTED = 1_000
SERVE = "start one with `duetime serve --app module:app`"

Level = Literal["ok", "warn"]


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    level: Level
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of the store at one moment."""

    now: Micros
    skew: Micros  # this machine's wall clock less the store's
    nodes: list[Node]
    leases: list[Lease]
    queues: list[QueueCount]
    paused_queues: list[str]
    schedules: int
    overdue_schedules: list[str]
    overdue_jobs: list[Job]
    dead_letters: int


async def observe(app: App) -> Observation:
    try:
        await app.open()
        now = await app.store.time()
        skew = wall_micros() - now
        cursors = [(one.draft.name, one.next_fire_time) async for one in all_schedules(app) if not one.paused]
        waiting = JobFilter(app.tenant, states=frozenset({State.PENDING, State.QUEUED}), due_before=now - OVERDUE)
        return Observation(
            now=now,
            skew=skew,
            nodes=await app.store.nodes(),
            leases=await app.store.leases(),
            queues=await app.store.count_jobs(),
            paused_queues=[queue.name for queue in await app.store.queues() if queue.paused],
            schedules=len(cursors),
            overdue_schedules=[name for name, cursor in cursors if cursor is not None and cursor < now - OVERDUE],
            overdue_jobs=await app.store.list_jobs(waiting, MOST_LISTED),
            dead_letters=len(await open_dead_letters(app, MOST_LISTED)),
        )
    finally:
        await app.close()


def reachable(settings: Settings) -> Check:
    """Said when opening succeeded: a store with a missing or newer schema refuses to be opened."""
    named = settings.app if settings.app is not None and not settings.given("store") else hide_password(settings.store)
    return Check("store", "ok", f"{named} answers, and its schema is the one this version knows")


def foreign_names(settings: Settings) -> Iterator[Check]:
    """Settings that came under the names of another scheduler; said only where there are any."""
    taken = [f"{name} from {source}" for name, source in settings.sources.items() if source in (*KNOWN, HOST)]
    if taken or settings.remarks:
        yield Check("environment", "ok", "; ".join([", ".join(taken) or "nothing taken from it", *settings.remarks]))


def examine(seen: Observation) -> Iterator[Check]:
    yield _clock(seen)
    yield _nodes(seen)
    yield _expired(seen)
    yield _leases(seen)
    yield _schedules(seen)
    yield _queues(seen)
    yield _jobs(seen)
    yield _dead_letters(seen)


def _clock(seen: Observation) -> Check:
    distance = duration.show(abs(seen.skew) // 1_000 * 1_000)
    if abs(seen.skew) > MOST_SKEW:
        side = "ahead of" if seen.skew > 0 else "behind"
        remedy = "the store's clock decides what is due; synchronise this machine's (NTP), or instants given here mean something else"
        return Check("clock", "warn", f"this machine is {distance} {side} the store", remedy)
    return Check("clock", "ok", f"within {duration.show(MOST_SKEW)} of the store ({distance})")


def _alive(seen: Observation) -> list[Node]:
    return [node for node in seen.nodes if not node.dead and node.lease_until >= seen.now]


def _nodes(seen: Observation) -> Check:
    roles = {role for node in _alive(seen) for role in node.roles}
    waiting = sum(queue.pending for queue in seen.queues)
    if seen.schedules and "planner" not in roles:
        return Check("nodes", "warn", f"{_many(seen.schedules, 'schedule')} and no planner is alive", SERVE)
    if waiting and "worker" not in roles:
        return Check("nodes", "warn", f"{_many(waiting, 'job')} to run and no worker is alive", SERVE)
    running = sum(node.running for node in _alive(seen))
    return Check("nodes", "ok", f"{len(_alive(seen))} alive, running {_many(running, 'job')}; {waiting} to run")


def _expired(seen: Observation) -> Check:
    silent = [node for node in seen.nodes if not node.dead and node.lease_until < seen.now]
    if not silent:
        return Check("expired", "ok", "no node went silent")
    names = ", ".join(f"{node.name} ({node.id})" for node in silent)
    return Check("expired", "warn", f"lease ended, not yet declared dead: {names}", f"any living node takes over its jobs: {SERVE}")


def _leases(seen: Observation) -> Check:
    planners = [node for node in _alive(seen) if "planner" in node.roles]
    holders = {node.id for node in planners}
    held = [lease for lease in seen.leases if lease.holder in holders]
    if planners and len(held) < len(seen.leases):
        free = ", ".join(lease.name for lease in seen.leases if lease not in held)
        return Check("leases", "warn", f"nobody holds {free}", "planners take free leases within seconds; look again, then at their logs")
    return Check("leases", "ok", f"{len(held)} held by {_many(len(planners), 'planner')}")


def _schedules(seen: Observation) -> Check:
    if not seen.overdue_schedules:
        return Check("schedules", "ok", f"{seen.schedules} active, none overdue")
    names = ", ".join(seen.overdue_schedules[:5])
    remedy = "a planner plans them within seconds; is one alive, and what does its log say?"
    return Check("schedules", "warn", f"{len(seen.overdue_schedules)} not planned for more than a minute: {names}", remedy)


def _queues(seen: Observation) -> Check:
    if not seen.paused_queues:
        return Check("queues", "ok", "none is paused")
    waiting = sum(queue.due for queue in seen.queues if queue.queue in seen.paused_queues)
    remedy = "`duetime queue resume NAME` starts its jobs again"
    return Check("queues", "ok", f"paused: {', '.join(seen.paused_queues)}; {_many(waiting, 'job')} of theirs would be due", remedy)


def _jobs(seen: Observation) -> Check:
    overdue = [job for job in seen.overdue_jobs if job.queue not in seen.paused_queues]
    if not overdue:
        return Check("jobs", "ok", "none waits for more than a minute after it was due")
    kinds = sorted({f"{job.target} in queue {job.queue}" for job in overdue})
    many = f"{len(overdue)} or more" if len(seen.overdue_jobs) == MOST_LISTED else str(len(overdue))
    remedy = "is a worker alive that knows these tasks and serves these queues, and has it room (--concurrency)?"
    return Check("jobs", "warn", f"{many} overdue: {', '.join(kinds[:5])}", remedy)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _dead_letters(seen: Observation) -> Check:
    return Check("dead letters", "ok", str(seen.dead_letters), "`duetime dead list` shows them" if seen.dead_letters else "")
