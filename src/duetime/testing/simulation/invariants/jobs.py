"""Follows every change of every job in separate records and checks that it is allowed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID

from duetime.model.instant import SECOND, Micros
from duetime.model.job import Delivery, Ending, JobDraft, Overlap, State
from duetime.model.lease import NodeId
from duetime.model.settle import Settlement
from duetime.stores.memory.row import Row
from duetime.testing.processes import Process
from duetime.testing.simulation.invariants.accounting import check_settlement, delivery_of
from duetime.testing.simulation.invariants.fires import FireInvariants
from duetime.testing.simulation.invariants.nodes import NodeInvariants
from duetime.testing.simulation.invariants.tools import ToolInvariants
from duetime.testing.simulation.invariants.transaction import StoreTransaction
from duetime.testing.simulation.invariants.verdict import Invariant, Verdict
from duetime.testing.simulation.recorder import Recorder

CLOCK_ERROR = SECOND // 500  # the clocks of two machines may differ by this much
PREFETCH = SECOND // 5
WITHDRAWING = {"write_schedule"}


@dataclass(slots=True)
class KnownJob:
    """What must be true of one job."""

    draft: JobDraft
    fired: bool  # by its schedule, not manually
    due_at: Micros
    state: State = State.PENDING
    attempt: int = 0
    failures: int = 0
    losses: int = 0
    node: NodeId | None = None
    cancel_requested: bool = False
    begun: bool = False  # the worker recorded the start of this attempt
    begun_late: bool = False  # after its node was declared dead: a reaper may have read the job before
    holders: dict[int, tuple[NodeId, Micros]] = field(default_factory=dict)  # by attempt: node, due_at then
    key_given_up: bool = False
    moved: bool = False  # rescheduled, perhaps to before its first time
    recorded: int = 0  # unsuccessful attempts, which must be on record


class JobInvariants:
    def __init__(
        self, verdict: Verdict, recorder: Recorder, nodes: NodeInvariants, fires: FireInvariants
    ) -> None:
        self._verdict = verdict
        self._recorder = recorder
        self._nodes = nodes
        self._fires = fires
        self._started: dict[UUID, dict[UUID, None]] = {}  # by schedule: live jobs with attempt > 0
        self._keys: dict[tuple[str, str], UUID] = {}
        self._ran: set[tuple[UUID, int]] = set()
        self.tools = ToolInvariants(verdict, recorder, self.runs_under)
        self.jobs: dict[UUID, KnownJob] = {}
        self.live: dict[UUID, KnownJob] = {}
        self.transaction = StoreTransaction("none", None, (), 0)
        self.claims: Counter[UUID] = Counter()
        recorder.on_start = self.task_started

    # -- changes of the table --------------------------------------------------------------------------------
    def added(self, row: Row) -> None:
        draft, verb = row.draft, self.transaction.verb
        self._verdict.require(
            draft.id not in self.jobs, Invariant.SINGLE_OUTCOME, f"job {draft.id} was stored a second time"
        )
        known = KnownJob(draft, verb == "fire", draft.due_at)
        self.jobs[draft.id] = self.live[draft.id] = known
        self._recorder.transitions["none", verb] += 1
        if draft.unique_key is not None:
            key = (draft.tenant, draft.unique_key)
            self._verdict.require(
                key not in self._keys,
                Invariant.UNIQUE_KEYS,
                f"unique key {draft.unique_key!r} has two live jobs",
            )
            self._keys[key] = draft.id
        if known.fired:
            self._fires.inserted(draft, None, self.transaction.now)

    def skipped(self, row: Row) -> None:
        """Stored as skipped by the policy of its schedule."""
        known = KnownJob(row.draft, True, row.draft.due_at, State.SKIPPED)
        self._verdict.require(
            row.draft.id not in self.jobs,
            Invariant.SINGLE_OUTCOME,
            f"job {row.draft.id} was stored a second time",
        )
        self._verdict.require(
            bool(row.error), Invariant.FIRES_COMPLETE, f"job {row.draft.id} was skipped without a reason"
        )
        self.jobs[row.draft.id] = known
        self._recorder.transitions["none", "skip"] += 1
        self._fires.inserted(row.draft, row.error, self.transaction.now)

    def claimed(self, row: Row) -> None:
        known, now = self._known(row, self.transaction.start_event), self.transaction.now
        assert row.node is not None
        self._verdict.require(
            known.state is State.PENDING,
            Invariant.SINGLE_CLAIM,
            f"job {row.draft.id} was claimed while {known.state}",
        )
        self._verdict.require(
            row.attempt == known.attempt + 1,
            Invariant.SINGLE_CLAIM,
            f"job {row.draft.id} was claimed with attempt {row.attempt} twice",
        )
        self._verdict.require(
            self._nodes.may_hold(row.node, now),
            Invariant.LEASES,
            f"node {row.node} got job {row.draft.id} without a valid lease",
        )
        self._verdict.require(
            known.due_at <= now + PREFETCH,
            Invariant.NEVER_EARLY,
            f"job {row.draft.id} was claimed long before it is due",
        )
        self._check_alone(row)
        self.tools.claimed(row.draft, row.permit, now)
        known.state, known.attempt, known.node, known.begun = State.RUNNING, row.attempt, row.node, False
        known.begun_late = False
        known.holders[row.attempt] = (row.node, known.due_at)
        self.claims[row.draft.id] += 1
        if row.draft.schedule_id is not None:
            self._started.setdefault(row.draft.schedule_id, {})[row.draft.id] = None

    def put_back(self, row: Row, decision: Settlement) -> None:
        known = self._known(row, f"settle {decision.ending}, again")
        self._check_decision(known, decision)
        self.tools.released(known.draft)
        self._verdict.require(
            (row.failures, row.losses) == (decision.failures, decision.losses),
            Invariant.ACCOUNTING,
            f"job {row.draft.id} has wrong counts of failures or losses",
        )
        known.state, known.node, known.due_at = State.PENDING, None, decision.due_at
        known.failures, known.losses = row.failures, row.losses
        known.recorded += _is_recorded(decision)

    def finished(self, row: Row, state: State) -> None:
        decision = self.transaction.decisions.get(row.draft.id)
        event = (
            f"settle {decision.ending}"
            if decision
            else "overlap skip"
            if self.transaction.verb == "claim"
            else self.transaction.verb
        )
        known = self._known(row, event)
        match self.transaction.verb:
            case "settle" | "commit" if decision is not None:
                self._check_decision(known, decision)
                known.recorded += _is_recorded(decision)
                if state is State.SKIPPED:
                    in_time = known.moved or not known.fired or known.recorded > 0
                    self._fires.skipped_at_start(known.draft, row.error, self.transaction.now, in_time)
            case "cancel_job":
                self._verdict.require(
                    known.state is State.PENDING,
                    Invariant.FENCING,
                    f"job {row.draft.id} was cancelled while it ran",
                )
            case "add_unique":
                replaced = (
                    known.state is State.PENDING
                    and state is State.CANCELLED
                    and (row.error or "").startswith("replaced by job ")
                )
                self._verdict.require(
                    replaced, Invariant.UNIQUE_KEYS, f"job {row.draft.id} was replaced while {known.state}"
                )
            case "claim":
                blocked = (
                    known.state is State.PENDING
                    and known.attempt == 0
                    and self._blocking_job(row) is not None
                )
                legal = blocked and known.draft.overlap == Overlap.SKIP and state is State.SKIPPED
                self._verdict.require(
                    legal, Invariant.FIRES_COMPLETE, f"job {row.draft.id} was skipped without an overlap"
                )
            case verb:
                self._verdict.violate(Invariant.FENCING, f"{verb} ended job {row.draft.id}")
        known.state, known.node, known.failures, known.losses = state, None, row.failures, row.losses
        self.tools.released(known.draft)
        self._leave(known)

    def withdrawn(self, row: Row) -> None:
        known = self._known(row, self.transaction.schedule_change)
        legal = (
            self.transaction.verb in WITHDRAWING
            and known.fired
            and (known.state, known.attempt) == (State.PENDING, 0)
            and known.draft.fire_time > self.transaction.now
        )
        self._verdict.require(
            legal, Invariant.DURABILITY, f"job {row.draft.id} was withdrawn, but it is not a future fire"
        )
        self._leave(known)
        del self.jobs[row.draft.id]
        self._fires.withdrawn(known.draft)

    def rescheduled(self, row: Row) -> None:
        known = self._known(row, self.transaction.verb)
        self._verdict.require(
            known.state is State.PENDING,
            Invariant.FENCING,
            f"job {row.draft.id} was rescheduled while {known.state}",
        )
        known.due_at, known.moved = row.draft.due_at, True

    def gave_up_key(self, row: Row) -> None:
        known = self._known(row, "give up key")
        self._verdict.require(
            self.transaction.verb == "add_unique",
            Invariant.UNIQUE_KEYS,
            f"job {row.draft.id} lost its key by {self.transaction.verb}",
        )
        assert known.draft.unique_key is not None
        del self._keys[known.draft.tenant, known.draft.unique_key]
        known.key_given_up = True

    def pruned(self, job_ids: list[UUID]) -> None:
        for job_id in job_ids:
            self._verdict.require(
                self.jobs[job_id].state.final,
                Invariant.DURABILITY,
                f"job {job_id} was pruned before it was final",
            )

    def announced(self, job_id: UUID, attempt: int, accepted: bool) -> None:
        known, current = self.jobs.get(job_id), self.runs_under(job_id, attempt)
        self._verdict.require(
            accepted is current,
            Invariant.FENCING,
            f"job {job_id} attempt {attempt} recorded its start: answered {accepted}, expected {current}",
        )
        if known is not None and accepted:
            known.begun = True
            known.begun_late = known.node is not None and self._nodes.dead(known.node)

    def runs_under(self, job_id: UUID, attempt: int) -> bool:
        known = self.jobs.get(job_id)
        return known is not None and known.state is State.RUNNING and known.attempt == attempt

    # -- replies ---------------------------------------------------------------------------------------------
    def cancel_was_requested(self, job_id: UUID) -> None:
        self.jobs[job_id].cancel_requested = True

    def acknowledged(self, job_id: UUID, draft: JobDraft | None) -> None:
        self._recorder.acknowledge(job_id)
        self._verdict.require(
            job_id in self.jobs, Invariant.DURABILITY, f"job {job_id} was acknowledged and is not stored"
        )
        if draft is not None and job_id != draft.id:
            same = self.jobs[job_id].draft.unique_key == draft.unique_key is not None
            self._verdict.require(
                same,
                Invariant.UNIQUE_KEYS,
                f"job {job_id} was returned for {draft.id}, but has another unique key",
            )

    # -- tasks -----------------------------------------------------------------------------------------------
    def task_started(self, job_id: UUID, attempt: int, process: Process) -> None:
        known, now = self.jobs.get(job_id), self.transaction.clock()
        if known is None or attempt not in known.holders:
            self._verdict.violate(
                Invariant.ONLY_EXPECTED_WORK,
                f"{process.name} starts job {job_id} attempt {attempt}, which was not claimed",
            )
            return
        node, due_at = known.holders[attempt]
        self.tools.task_started(known.draft, attempt)
        self._verdict.require(
            (job_id, attempt) not in self._ran,
            Invariant.SINGLE_CLAIM,
            f"job {job_id} attempt {attempt} starts twice",
        )
        self._ran.add((job_id, attempt))
        early = (due_at if known.moved else max(due_at, known.draft.fire_time)) - now
        self._verdict.require(
            early <= CLOCK_ERROR, Invariant.NEVER_EARLY, f"job {job_id} starts {early} microseconds early"
        )
        self._verdict.require(
            self._nodes.may_start(node, now),
            Invariant.LEASES,
            f"{process.name} starts job {job_id} after its lease ended",
        )
        self._verdict.require(
            not known.state.final or self._nodes.dead(node),
            Invariant.SINGLE_OUTCOME,
            f"job {job_id} starts although it is {known.state} already",
        )
        if known.fired and not known.moved and known.recorded == 0:
            self._fires.started(known.draft, now)
        once = delivery_of(known.draft) is Delivery.AT_MOST_ONCE and self._recorder.starts_of(job_id) > 0
        self._verdict.require(
            not once, Invariant.AT_MOST_ONCE, f"job {job_id} must run at most once, but starts again"
        )

    # -- internals -------------------------------------------------------------------------------------------
    def _known(self, row: Row, event: str) -> KnownJob:
        known = self.jobs[row.draft.id]
        self._recorder.transitions[known.state, event] += 1
        self._verdict.require(
            not known.state.final,
            Invariant.SINGLE_OUTCOME,
            f"job {row.draft.id} left its final state {known.state} by {event}",
        )
        return known

    def _check_decision(self, known: KnownJob, decision: Settlement) -> None:
        fresh = known.state is State.RUNNING and decision.attempt == known.attempt
        current = f"attempt {known.attempt} is {known.state}"
        stale = f"job {decision.id} attempt {decision.attempt} was settled, but {current}"
        self._verdict.require(fresh, Invariant.FENCING, stale)
        if not fresh or known.node is None:
            return
        owner, writer = self._nodes.host_of(known.node), self.transaction.host
        taken = writer is not owner and not self._nodes.dead(known.node)
        self._verdict.require(
            not taken,
            Invariant.LEASES,
            f"job {decision.id} was settled by another node while node {known.node} is alive",
        )
        self._check_ran(decision)
        may_cancel = known.cancel_requested or known.draft.schedule_id in self._fires.cancelling
        # A living worker that lost its lease was not killed by this job: it may or may not count the loss.
        doubtful = writer is owner or known.begun_late
        blamed = known.losses == 0 or (decision.losses > known.losses if doubtful else known.begun)
        check_settlement(
            self._verdict, known.draft, (known.failures, known.losses), may_cancel, blamed, decision
        )

    def _check_ran(self, decision: Settlement) -> None:
        if decision.ending in (Ending.SUCCEEDED, Ending.FAILED, Ending.TIMED_OUT):
            ran = (decision.id, decision.attempt) in self._ran
            self._verdict.require(
                ran,
                Invariant.ACCOUNTING,
                f"job {decision.id} attempt {decision.attempt} {decision.ending} without having started",
            )

    def _check_alone(self, row: Row) -> None:
        other = self._blocking_job(row)
        if row.draft.overlap is not None and other is not None:
            self._verdict.violate(
                Invariant.OVERLAP, f"job {row.draft.id} starts while {other} of the same schedule runs"
            )

    def _blocking_job(self, row: Row) -> UUID | None:
        started = self._started.get(row.draft.schedule_id, {}) if row.draft.schedule_id else {}
        return next((job_id for job_id in started if job_id != row.draft.id), None)

    def _leave(self, known: KnownJob) -> None:
        draft = known.draft
        del self.live[draft.id]
        if draft.unique_key is not None and not known.key_given_up:
            del self._keys[draft.tenant, draft.unique_key]
        if draft.schedule_id in self._started:
            self._started[draft.schedule_id].pop(draft.id, None)


def _is_recorded(decision: Settlement) -> bool:
    never_started = decision.ending is Ending.RELEASED and decision.started_at is None
    return decision.ending is not Ending.SUCCEEDED and not never_started
