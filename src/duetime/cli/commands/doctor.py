"""`duetime doctor`: what is wrong, and what to do. First everything is read, then pure functions judge it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Annotated

import typer

from duetime.app import App
from duetime.cli.backend import PAGE, Backend, active_schedules, open_app, open_backend, time_of, uses_server
from duetime.cli.check import Check
from duetime.cli.command import command, standalone
from duetime.cli.files import key_ring
from duetime.cli.format import plural, show, show_record, target_text
from duetime.cli.inputs import JsonFlag
from duetime.cli.production import checklist
from duetime.cli.program import REFUSED, settings_of
from duetime.clock import wall_micros
from duetime.config import Settings, hide_password
from duetime.config_compat import HOST, KNOWN
from duetime.errors import ConfigError, DuetimeError, LeasesUnavailable, StoreUnavailable
from duetime.model import duration
from duetime.model.instant import SECOND, Micros, to_micros
from duetime.model.job import State
from duetime.model.lease import role_of
from duetime.model.schedule import ScheduleFilter
from duetime.model.settle import NOT_HERE
from duetime.model.target import key_ids
from duetime.model.views import JobSummary, LeaseView, NodeView, QueueView
from duetime.store import Store

commands = standalone()

OVERDUE = timedelta(minutes=1)
MAX_SKEW = 2 * SECOND
MAX_LISTED = 1_000
MAX_NAMED = 5
SERVE = "start one with `duetime serve --app module:app`"
DISPATCH = "jobs start about a second late: start one with `duetime serve --roles dispatcher --queue URL`"


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of the store at one instant."""

    skew: Micros  # this machine's wall clock minus the store's
    nodes: list[NodeView]
    leases: list[LeaseView] | str  # or why they cannot be read
    queues: list[QueueView]
    schedules: int
    overdue_schedules: list[str]
    overdue_jobs: list[JobSummary]
    dead_letters: int
    not_here: int = 0  # pending jobs that a node gave back because it may not run them


@command(commands, "doctor", "duetime doctor", "duetime doctor --production", "duetime doctor --json")
def doctor(
    context: typer.Context,
    production: Annotated[
        bool, typer.Option("--production", help="Also check the list for production: docs/production.md.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check the store, clocks, nodes, leases and overdue work; fails if something needs attention."""
    settings = settings_of(context)
    checks = _checks(settings)
    if production and checks[0].level == "ok":
        checks += asyncio.run(_production(settings))
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
        seen = asyncio.run(_observed(settings))
        own = [] if uses_server(settings) else asyncio.run(_own(settings))
    except DuetimeError as problem:
        # Other errors say themselves what to do.
        remedy = (
            "check --store, the network, and that the server runs"
            if isinstance(problem, StoreUnavailable)
            else ""
        )
        return [Check("store", "warn", f"{problem.message} [{problem.code}]", remedy)]
    return [_store(settings), *foreign_names(settings), *examine(seen), *own]


async def _production(settings: Settings) -> list[Check]:
    async with open_backend(settings) as backend:
        found = checklist(settings, await backend.nodes(), await backend.alert_channels())
        # The store of a service is not the one in the settings of this machine.
        return [check for check in found if check.name != "durable store" or not uses_server(settings)]


async def _observed(settings: Settings) -> Observation:
    async with open_backend(settings) as backend:
        return await observe(backend)


async def observe(backend: Backend) -> Observation:
    now = await time_of(backend)
    skew = wall_micros() - to_micros(now)
    late = now - OVERDUE
    schedules = await active_schedules(backend)
    return Observation(
        skew=skew,
        nodes=await backend.nodes(),
        leases=await _read_leases(backend),
        queues=await backend.queues(),
        schedules=len(schedules),
        overdue_schedules=[
            one.name for one in schedules if one.next_fire_time is not None and one.next_fire_time < late
        ],
        overdue_jobs=await backend.jobs(state=State.PENDING, due_before=late, limit=MAX_LISTED),
        dead_letters=len(await backend.dead_letters(limit=MAX_LISTED)),
        not_here=len(await backend.jobs(state=State.PENDING, error=NOT_HERE, limit=MAX_LISTED)),
    )


async def _read_leases(backend: Backend) -> list[LeaseView] | str:
    try:
        return await backend.leases()
    except LeasesUnavailable as problem:
        return problem.message


async def _own(settings: Settings) -> list[Check]:
    """What only the App of this machine knows."""
    async with open_app(settings) as app:
        sealed: dict[str, str] = {}
        last: str | None = None
        while page := await app.store.list_schedules(ScheduleFilter(app.tenant), PAGE, last):
            sealed |= {key: one.draft.name for one in page for key in key_ids(one.draft.target_spec)}
            last = page[-1].draft.name
        return [secret_keys(settings, app.store, sealed), *database_connections(settings, app)]


def _store(settings: Settings) -> Check:
    """After it was opened: a store with a missing or newer schema cannot be."""
    if uses_server(settings):
        return Check("store", "ok", f"{settings.server} answers")
    name = (
        settings.app
        if settings.app is not None and not settings.given("store")
        else hide_password(settings.store)
    )
    return Check("store", "ok", f"{name} answers, and its schema is the one of this version")


def secret_keys(settings: Settings, store: Store, sealed: Mapping[str, str]) -> Check:
    """Whether this machine can decrypt the secrets of the schedules, and store new ones."""
    try:
        ring = key_ring(settings, store, creates=False)
    except ConfigError as problem:
        return Check("secret keys", "warn", problem.message)
    for key_id, name in sealed.items():
        if ring.find(key_id) is None:
            remedy = "add it to DUETIME_SECRET_KEYS, which must be the same on every node"
            return Check(
                "secret keys", "warn", f"key {key_id} is missing: schedule {name!r} needs it", remedy
            )
    if ring.current is None:
        return Check("secret keys", "ok", "none, and none is needed yet", "targets with secrets need one")
    old = ", ".join(key.id for key in ring.keys[1:] if key.id in sealed)
    still = f"; schedules still need {old}" if old else ""
    return Check("secret keys", "ok", f"{ring.current.id} encrypts{still}")


def database_connections(settings: Settings, app: App) -> Iterator[Check]:
    """Where each thread has a connection of its own."""
    if app.threads is not None:
        number = settings.threads or app.threads
        text = f"a worker takes up to {number} for plain and isolated tasks, 1 for async tasks"
        remedy = "change it with --threads; Duetime's own connections come on top"
        yield Check("connections", "ok", text, remedy)


def foreign_names(settings: Settings) -> Iterator[Check]:
    """Settings that were given under the names of another scheduler, if any."""
    taken = [f"{name} from {source}" for name, source in settings.sources.items() if source in (*KNOWN, HOST)]
    if taken or settings.remarks:
        yield Check(
            "environment", "ok", "; ".join([", ".join(taken) or "nothing taken from it", *settings.remarks])
        )


def examine(seen: Observation) -> Iterator[Check]:
    for check in (_clock, _nodes, _permissions, _expired, _leases, _schedules, _queues, _jobs, _dead_letters):
        yield check(seen)


def _clock(seen: Observation) -> Check:
    """That of this machine, and those that the nodes report."""
    clocks = {f"node {node.name} ({node.id})": _micros(node.clock_skew) for node in _alive(seen)}
    wrong = {
        name: skew for name, skew in {"this machine": seen.skew, **clocks}.items() if abs(skew) > MAX_SKEW
    }
    if wrong:
        text = ", ".join(f"{name} is {_distance(skew)}" for name, skew in [*wrong.items()][:MAX_NAMED])
        remedy = "the store's clock decides when jobs are due; synchronise the clock of each machine (NTP)"
        return Check("clock", "warn", f"{text} the store", remedy)
    distance = duration.show(abs(seen.skew) // 1_000 * 1_000)
    return Check("clock", "ok", f"within {duration.show(MAX_SKEW)} of the store ({distance})")


def _micros(seconds: float | None) -> Micros:
    return int((seconds or 0) * SECOND)


def _distance(skew: Micros) -> str:
    return f"{duration.show(abs(skew) // 1_000 * 1_000)} {'ahead of' if skew > 0 else 'behind'}"


def _alive(seen: Observation) -> list[NodeView]:
    return [node for node in seen.nodes if node.state == "alive"]


def _nodes(seen: Observation) -> Check:
    roles = {role for node in _alive(seen) for role in node.roles}
    waiting = sum(queue.pending for queue in seen.queues)
    if seen.schedules and "planner" not in roles:
        return Check("nodes", "warn", f"{plural(seen.schedules, 'schedule')} and no planner is alive", SERVE)
    if waiting and "worker" not in roles:
        return Check("nodes", "warn", f"{plural(waiting, 'job')} to run and no worker is alive", SERVE)
    if "dispatcher" not in roles and any(node.broker for node in _alive(seen) if "worker" in node.roles):
        return Check("nodes", "warn", "workers use a broker and no dispatcher is alive", DISPATCH)
    running = sum(node.running for node in _alive(seen))
    return Check(
        "nodes", "ok", f"{len(_alive(seen))} alive, running {plural(running, 'job')}; {waiting} to run"
    )


def _permissions(seen: Observation) -> Check:
    """Different permissions may be intended: only jobs that wait for one are a reason to warn."""
    lacks = [node for node in seen.nodes if node.lacks]
    shown = [f"{node.name} ({node.id}) lacks {', '.join(node.lacks)}" for node in lacks]
    text = "; ".join(shown[:MAX_NAMED]) or "the live workers have the same"
    if seen.not_here:
        waiting = "1 job waits" if seen.not_here == 1 else f"{seen.not_here} jobs wait"
        remedy = "`duetime why JOB` says what is missing; give it to a worker"
        return Check("permissions", "warn", f"{waiting} for a node that may run it; {text}", remedy)
    remedy = "give every worker the same settings, if this is not intended" if lacks else ""
    return Check("permissions", "ok", text, remedy)


def _expired(seen: Observation) -> Check:
    silent = [node for node in seen.nodes if node.state == "expired"]
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
    if isinstance(seen.leases, str):
        return Check("leases", "warn", seen.leases, "check --leases, the network, and that etcd runs")
    shares = []
    for role in ("planner", "dispatcher"):
        holders = {node.id for node in _alive(seen) if role in node.roles}
        wanted = [lease for lease in seen.leases if role_of(lease.name) == role]
        free = [lease.name for lease in wanted if lease.holder not in holders]
        if holders and free:
            remedy = f"{role}s take free leases within seconds; if it stays, look at their logs"
            return Check("leases", "warn", f"no {role} holds {', '.join(free)}", remedy)
        if holders or role == "planner":
            shares.append(f"{len(wanted) - len(free)} held by {plural(len(holders), role)}")
    return Check("leases", "ok", ", ".join(shares))


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
    paused = [queue for queue in seen.queues if queue.paused]
    if not paused:
        return Check("queues", "ok", "none is paused")
    waiting = sum(queue.due for queue in paused)
    text = f"paused: {', '.join(queue.name for queue in paused)}; {plural(waiting, 'job')} due in them"
    return Check("queues", "ok", text, "`duetime queue resume NAME` starts its jobs again")


def _jobs(seen: Observation) -> Check:
    paused = {queue.name for queue in seen.queues if queue.paused}
    overdue = [job for job in seen.overdue_jobs if job.queue not in paused]
    if not overdue:
        return Check("jobs", "ok", "none is overdue by more than a minute")
    kinds = sorted({f"{target_text(job.target)} in queue {job.queue}" for job in overdue})
    count = f"{len(overdue)} or more" if len(seen.overdue_jobs) == MAX_LISTED else str(len(overdue))
    remedy = (
        "check that a live worker knows these tasks, serves these queues and has capacity (--concurrency)"
    )
    return Check("jobs", "warn", f"{count} overdue: {', '.join(kinds[:MAX_NAMED])}", remedy)


def _dead_letters(seen: Observation) -> Check:
    return Check(
        "dead letters", "ok", str(seen.dead_letters), "see `duetime dead list`" if seen.dead_letters else ""
    )
