"""Checks after a time without faults: nothing is late, nothing is stuck, everything is accounted for."""

from __future__ import annotations

from collections.abc import Sequence

from duetime.model.codec import decode
from duetime.model.ids import SEGMENTS
from duetime.model.instant import SECOND, Micros
from duetime.model.job import State
from duetime.model.lease import segment_lease
from duetime.stores.memory.row import Row
from duetime.testing.simulation.hosts import Host
from duetime.testing.simulation.invariants.checker import Checker
from duetime.testing.simulation.invariants.jobs import KnownJob
from duetime.testing.simulation.invariants.verdict import Invariant
from duetime.testing.simulation.store import SimulatedStore
from duetime.testing.simulation.tasks import KINDS, MAX_RUN_TIME

MAX_DELAY = 5 * SECOND // 2  # with a lost hint: a second each of claimer and sweeper, and the network
SETTLE_TIME = 4 * SECOND  # a job due this long ago has run with its retries, or waits for the next one


def check_healthy(checker: Checker, store: SimulatedStore, since: Micros, now: Micros) -> None:
    """After a time without faults in which schedules kept firing."""
    for job_id, known in checker.jobs.jobs.items():
        # When it was claimed for the first time, or now: it may have been rescheduled before
        due_at = next((due_then for _, due_then in known.holders.values()), known.due_at)
        free = known.draft.overlap is None and known.draft.limit_key is None
        if free and since <= due_at < now - MAX_DELAY:
            starts = checker.recorder.starts.get(job_id)
            began = starts[0].at if starts else None
            in_time = known.state.final if began is None else began <= due_at + MAX_DELAY
            checker.verdict.require(
                in_time,
                Invariant.PUNCTUALITY,
                f"job {job_id} was due at {due_at} and started at {began} ({known.state})",
            )
    for segment in range(SEGMENTS):
        holder = checker.nodes.holder_of(segment_lease(segment))
        held = holder is not None and checker.nodes.may_hold(holder, now)
        checker.verdict.require(held, Invariant.LIVENESS, f"segment {segment} is not held by a living node")
    for plan in checker.fires.plans.values():
        planned = plan.removed or plan.paused or plan.cursor is None or plan.cursor > now - MAX_DELAY
        checker.verdict.require(
            planned,
            Invariant.LIVENESS,
            f"schedule {plan.draft.name!r} is behind: its cursor is {plan.cursor}",
        )


def check_quiet(checker: Checker, store: SimulatedStore, hosts: Sequence[Host], now: Micros) -> None:
    """At the end, some time after the last request."""
    for known in checker.jobs.live.values():
        stuck = _stuck(checker, known, now)
        checker.verdict.require(
            stuck is None,
            Invariant.LIVENESS,
            f"job {known.draft.id} ({known.draft.target}) is stuck: {stuck}",
        )
    if not checker.jobs.live:
        for host in hosts:
            held = 0 if host.gone else host.held()
            checker.verdict.require(
                held == 0,
                Invariant.LIVENESS,
                f"{host.name} counts {held} jobs of its own, but there are none",
            )
    _check_records(checker, store)


def _stuck(checker: Checker, known: KnownJob, now: Micros) -> str | None:
    if known.node is not None:
        host = checker.nodes.host_of(known.node)
        since = max(
            (start.at for start in checker.recorder.starts.get(known.draft.id, ())), default=known.due_at
        )
        gone = checker.nodes.dead(known.node) or host is None or host.gone
        return (
            "it runs under a dead node"
            if gone
            else "it runs too long"
            if since < now - MAX_RUN_TIME - SETTLE_TIME
            else None
        )
    if known.due_at >= now - SETTLE_TIME:
        return None
    rivals = [
        other
        for other in checker.jobs.live.values()
        if other.draft.schedule_id == known.draft.schedule_id and other is not known
    ]
    is_blocked = known.draft.overlap is not None and any(other.attempt > 0 for other in rivals)
    is_blocked = is_blocked or checker.jobs.tools.busy(known.draft.limit_key)
    return None if is_blocked else f"it was due {(now - known.due_at) / SECOND:.1f}s ago and has not started"


def _check_records(checker: Checker, store: SimulatedStore) -> None:
    for job_id, known in checker.jobs.jobs.items():
        row = store.jobs.live.get(job_id) or store.jobs.past.get(job_id)
        if row is None:
            checker.verdict.require(
                known.state.final, Invariant.DURABILITY, f"job {job_id} is gone from the store"
            )
            continue
        checker.verdict.require(
            _agrees(row, known), Invariant.FENCING, f"job {job_id} changed outside of any transaction"
        )
        recorded = len(store.jobs.attempts.get(job_id, ()))
        checker.verdict.require(
            recorded == known.recorded,
            Invariant.ACCOUNTING,
            f"job {job_id}: {recorded} attempts on record, but {known.recorded} were unsuccessful",
        )
        checker.verdict.require(
            row.attempt == checker.jobs.claims[job_id],
            Invariant.ACCOUNTING,
            f"job {job_id}: attempts differ from claims",
        )
        impossible = known.state is State.SUCCEEDED and KINDS[known.draft.target].always_fails
        checker.verdict.require(
            not impossible, Invariant.ACCOUNTING, f"job {job_id} always fails and succeeded"
        )
        _check_effects(checker, store, row)
    for job_id in checker.recorder.acknowledged:
        checker.verdict.require(
            job_id in checker.jobs.jobs, Invariant.DURABILITY, f"job {job_id} was acknowledged and is missing"
        )


def _check_effects(checker: Checker, store: SimulatedStore, row: Row) -> None:
    job_id, kept = row.draft.id, int(decode(row.checkpoint or b"0"))
    known = checker.jobs.tools.checkpoint_of(job_id)
    checker.verdict.require(
        kept == known, Invariant.FENCING, f"job {job_id} has checkpoint {kept}, {known} was saved last"
    )
    if row.draft.target == "banking":
        expected, found = int(row.state is State.SUCCEEDED), store.effects[job_id]
        checker.verdict.require(
            found == expected,
            Invariant.SINGLE_EFFECTS,
            f"job {job_id} is {row.state} and its writes were committed {found} times",
        )


def _agrees(row: Row, known: KnownJob) -> bool:
    mine = (known.state, known.attempt, known.failures, known.losses, known.node)
    theirs = (row.state, row.attempt, row.failures, row.losses, None if row.state.final else row.node)
    return mine == theirs and (row.state.final or row.draft.due_at == known.due_at)
