"""`duetime doctor`: what is wrong, and what to do. First everything is read, then pure functions judge it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

import typer

from duetime.app import App
from duetime.cli.backend import all_schedules, find_app, require_file
from duetime.cli.command import command, standalone
from duetime.cli.format import plural, show, show_record
from duetime.cli.inputs import JsonFlag
from duetime.cli.program import REFUSED, settings_of
from duetime.clock import wall_micros
from duetime.config import Settings, hide_password
from duetime.config_compat import HOST, KNOWN
from duetime.errors import ConfigError, DuetimeError
from duetime.model import duration
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Job, JobFilter, State
from duetime.model.lease import Lease, Node
from duetime.model.limit import Queue

commands = standalone()

OVERDUE = 60 * SECOND
MAX_SKEW = 2 * SECOND
MAX_LISTED = 1_000
MAX_NAMED = 5
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
    """The state of the store at one instant."""

    now: Micros
    skew: Micros  # this machine's wall clock minus the store's
    nodes: list[Node]
    leases: list[Lease]
    queues: list[Queue]
    paused_queues: list[str]
    schedules: int
    overdue_schedules: list[str]
    overdue_jobs: list[Job]
    dead_letters: int


@command(commands, "doctor", "duetime doctor", "duetime doctor --json")
def doctor(context: typer.Context, as_json: JsonFlag = False) -> None:
    """Check the store, clocks, nodes, leases and overdue work; fails if something needs attention."""
    checks = _checks(settings_of(context))
    show([asdict(check) for check in checks], as_json, lambda _: _show_checks(checks))
    if any(check.level == "warn" for check in checks):
        raise typer.Exit(REFUSED)


def _show_checks(checks: list[Check]) -> None:
    show_record(
        (check.name, "\n-> ".join(filter(None, [f"{check.level} {check.text}", check.remedy])))
        for check in checks
    )


def _checks(settings: Settings) -> list[Check]:
    try:
        app = find_app(settings)
        require_file(settings)
        seen = asyncio.run(observe(app))
    except DuetimeError as problem:
        # An error in a setting says itself what to do.
        remedy = (
            "" if isinstance(problem, ConfigError) else "check --store, the network, and that the server runs"
        )
        return [Check("store", "warn", f"{problem.message} [{problem.code}]", remedy)]
    return [_store(settings), *foreign_names(settings), *examine(seen)]


async def observe(app: App) -> Observation:
    try:
        await app.open()
        now = await app.store.time()
        skew = wall_micros() - now
        cursors = [(one.draft.name, one.next_fire_time) async for one in all_schedules(app) if not one.paused]
        waiting = JobFilter(
            app.tenant, states=frozenset({State.PENDING, State.QUEUED}), due_before=now - OVERDUE
        )
        dead = JobFilter(app.tenant, states=frozenset({State.DEAD}), undisposed=True)
        return Observation(
            now=now,
            skew=skew,
            nodes=await app.store.nodes(),
            leases=await app.store.leases(),
            queues=await app.store.queues(counted=True),
            paused_queues=[queue.name for queue in await app.store.queues() if queue.paused],
            schedules=len(cursors),
            overdue_schedules=[
                name for name, cursor in cursors if cursor is not None and cursor < now - OVERDUE
            ],
            overdue_jobs=await app.store.list_jobs(waiting, MAX_LISTED),
            dead_letters=len(await app.store.list_jobs(dead, MAX_LISTED)),
        )
    finally:
        await app.close()


def _store(settings: Settings) -> Check:
    """After it was opened: a store with a missing or newer schema cannot be."""
    name = (
        settings.app
        if settings.app is not None and not settings.given("store")
        else hide_password(settings.store)
    )
    return Check("store", "ok", f"{name} answers, and its schema is the one of this version")


def foreign_names(settings: Settings) -> Iterator[Check]:
    """Settings that were given under the names of another scheduler, if any."""
    taken = [f"{name} from {source}" for name, source in settings.sources.items() if source in (*KNOWN, HOST)]
    if taken or settings.remarks:
        yield Check(
            "environment", "ok", "; ".join([", ".join(taken) or "nothing taken from it", *settings.remarks])
        )


def examine(seen: Observation) -> Iterator[Check]:
    for check in (_clock, _nodes, _expired, _leases, _schedules, _queues, _jobs, _dead_letters):
        yield check(seen)


def _clock(seen: Observation) -> Check:
    distance = duration.show(abs(seen.skew) // 1_000 * 1_000)
    if abs(seen.skew) > MAX_SKEW:
        side = "ahead of" if seen.skew > 0 else "behind"
        remedy = "the store's clock decides when jobs are due; synchronise this machine's clock (NTP)"
        return Check("clock", "warn", f"this machine is {distance} {side} the store", remedy)
    return Check("clock", "ok", f"within {duration.show(MAX_SKEW)} of the store ({distance})")


def _alive(seen: Observation) -> list[Node]:
    return [node for node in seen.nodes if not node.dead and node.lease_until >= seen.now]


def _nodes(seen: Observation) -> Check:
    roles = {role for node in _alive(seen) for role in node.roles}
    waiting = sum(queue.counts.pending for queue in seen.queues if queue.counts)
    if seen.schedules and "planner" not in roles:
        return Check("nodes", "warn", f"{plural(seen.schedules, 'schedule')} and no planner is alive", SERVE)
    if waiting and "worker" not in roles:
        return Check("nodes", "warn", f"{plural(waiting, 'job')} to run and no worker is alive", SERVE)
    running = sum(node.running for node in _alive(seen))
    return Check(
        "nodes", "ok", f"{len(_alive(seen))} alive, running {plural(running, 'job')}; {waiting} to run"
    )


def _expired(seen: Observation) -> Check:
    silent = [node for node in seen.nodes if not node.dead and node.lease_until < seen.now]
    if not silent:
        return Check("expired", "ok", "every node renews its lease")
    names = ", ".join(f"{node.name} ({node.id})" for node in silent)
    return Check(
        "expired",
        "warn",
        f"lease expired, not yet declared dead: {names}",
        f"another node takes over the jobs: {SERVE}",
    )


def _leases(seen: Observation) -> Check:
    planners = [node for node in _alive(seen) if "planner" in node.roles]
    holders = {node.id for node in planners}
    held = [lease for lease in seen.leases if lease.holder in holders]
    if planners and len(held) < len(seen.leases):
        free = ", ".join(lease.name for lease in seen.leases if lease not in held)
        remedy = "planners take free leases within seconds; if it stays, look at their logs"
        return Check("leases", "warn", f"no planner holds {free}", remedy)
    return Check("leases", "ok", f"{len(held)} held by {plural(len(planners), 'planner')}")


def _schedules(seen: Observation) -> Check:
    if not seen.overdue_schedules:
        return Check("schedules", "ok", f"{seen.schedules} active, none overdue")
    names = ", ".join(seen.overdue_schedules[:MAX_NAMED])
    remedy = "a planner plans them within seconds; check that one is alive, and its log"
    return Check(
        "schedules",
        "warn",
        f"{len(seen.overdue_schedules)} not planned for more than a minute: {names}",
        remedy,
    )


def _queues(seen: Observation) -> Check:
    if not seen.paused_queues:
        return Check("queues", "ok", "none is paused")
    waiting = sum(
        queue.counts.due for queue in seen.queues if queue.counts and queue.name in seen.paused_queues
    )
    text = f"paused: {', '.join(seen.paused_queues)}; {plural(waiting, 'job')} due in them"
    return Check("queues", "ok", text, "`duetime queue resume NAME` starts its jobs again")


def _jobs(seen: Observation) -> Check:
    overdue = [job for job in seen.overdue_jobs if job.queue not in seen.paused_queues]
    if not overdue:
        return Check("jobs", "ok", "none is overdue by more than a minute")
    kinds = sorted({f"{job.target} in queue {job.queue}" for job in overdue})
    count = f"{len(overdue)} or more" if len(seen.overdue_jobs) == MAX_LISTED else str(len(overdue))
    remedy = (
        "check that a live worker knows these tasks, serves these queues and has capacity (--concurrency)"
    )
    return Check("jobs", "warn", f"{count} overdue: {', '.join(kinds[:MAX_NAMED])}", remedy)


def _dead_letters(seen: Observation) -> Check:
    return Check(
        "dead letters", "ok", str(seen.dead_letters), "see `duetime dead list`" if seen.dead_letters else ""
    )
