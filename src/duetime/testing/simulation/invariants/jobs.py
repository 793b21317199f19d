"""The life of every job, followed change by change in a record of its own: I1, I3 to I7, I9, and one at a time where asked for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID

from duetime.model.attempt import Ending
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Delivery, JobDraft, Overlap, State
from duetime.model.lease import NodeId
from duetime.model.settle import Settlement
from duetime.stores.memory.row import Row
from duetime.testing.simulation.invariants.accounting import check_settlement, delivery_of
from duetime.testing.simulation.invariants.fires import FireInvariants
from duetime.testing.simulation.invariants.nodes import NodeInvariants
from duetime.testing.simulation.invariants.tools import ToolInvariants
from duetime.testing.simulation.invariants.transaction import Transaction
from duetime.testing.simulation.invariants.verdict import Verdict
from duetime.testing.simulation.loop import Process
from duetime.testing.simulation.recorder import Recorder

EARLY = SECOND // 500  # two machines' clocks may differ by this much between samples
PREFETCH = SECOND // 5
WITHDRAWING = {"put_schedule", "pause_schedule", "remove_schedule"}


@dataclass(slots=True)
class Known:
    """What must be true of one job."""

    draft: JobDraft
    fired: bool  # by its schedule, not by hand
    due_at: Micros
    state: State = State.PENDING
    attempt: int = 0
    failures: int = 0
    losses: int = 0
    node: NodeId | None = None
    cancel_requested: bool = False
    begun: bool = False  # its worker announced the start of this attempt
    holders: dict[int, tuple[NodeId, Micros]] = field(default_factory=dict)  # attempt -> node, due_at when it was claimed
    key_given_up: bool = False
    moved: bool = False  # somebody gave it another time, which may be before the one asked for at first
    recorded: int = 0  # attempts that ended badly and must be on record


class JobInvariants:
    def __init__(self, verdict: Verdict, recorder: Recorder, nodes: NodeInvariants, fires: FireInvariants) -> None:
        self._verdict = verdict
        self._recorder = recorder
        self._nodes = nodes
        self._fires = fires
        self._started: dict[UUID, dict[UUID, None]] = {}  # by schedule: live jobs with attempt > 0
        self._keys: dict[tuple[str, str], UUID] = {}
        self._ran: set[tuple[UUID, int]] = set()
        self.tools = ToolInvariants(verdict, recorder, self.runs_under)
        self.jobs: dict[UUID, Known] = {}
        self.live: dict[UUID, Known] = {}
        self.transaction = Transaction("none", None, (), 0)
        self.claims: Counter[UUID] = Counter()
        recorder.on_start = self.task_started

    # -- changes of the table -----------------------------------------------------------------------------------------
    def added(self, row: Row) -> None:
        draft, verb = row.draft, self.transaction.verb
        self._verdict.require(draft.id not in self.jobs, "I3", f"job {draft.id} was stored a second time")
        known = Known(draft, verb == "fire", draft.due_at)
        self.jobs[draft.id] = self.live[draft.id] = known
        self._recorder.transitions["none", verb] += 1
        if draft.unique_key is not None:
            key = (draft.tenant, draft.unique_key)
            self._verdict.require(key not in self._keys, "I15", f"unique key {draft.unique_key!r} has two live jobs")
            self._keys[key] = draft.id
        if known.fired:
            self._fires.inserted(draft, None, self.transaction.now)

    def skipped(self, row: Row) -> None:
        """Stored as skipped by its schedule's policy."""
        known = Known(row.draft, True, row.draft.due_at, State.SKIPPED)
        self._verdict.require(row.draft.id not in self.jobs, "I3", f"job {row.draft.id} was stored a second time")
        self._verdict.require(bool(row.error), "I10", f"job {row.draft.id} was skipped without a reason")
        self.jobs[row.draft.id] = known
        self._recorder.transitions["none", "skip"] += 1
        self._fires.inserted(row.draft, row.error, self.transaction.now)

    def claimed(self, row: Row) -> None:
        known, now = self._known(row, "claim"), self.transaction.now
        assert row.node is not None
        self._verdict.require(known.state is State.PENDING, "I5", f"job {row.draft.id} was claimed while {known.state}")
        self._verdict.require(row.attempt == known.attempt + 1, "I5", f"job {row.draft.id} was claimed with attempt {row.attempt} again")
        self._verdict.require(self._nodes.may_hold(row.node, now), "I7", f"node {row.node} got job {row.draft.id} without a valid lease")
        self._verdict.require(known.due_at <= now + PREFETCH, "I4", f"job {row.draft.id} was claimed long before it is due")
        self._check_alone(row)
        self.tools.claimed(row.draft, row.node, now)
        known.state, known.attempt, known.node, known.begun = State.RUNNING, row.attempt, row.node, False
        known.holders[row.attempt] = (row.node, known.due_at)
        self.claims[row.draft.id] += 1
        if row.draft.schedule_id is not None:
            self._started.setdefault(row.draft.schedule_id, {})[row.draft.id] = None

    def put_back(self, row: Row, decision: Settlement) -> None:
        known = self._known(row, f"settle {decision.ending}, again")
        self._check_decision(known, decision)
        self.tools.released(known.draft)
        self._verdict.require(
            (row.failures, row.losses) == (decision.failures, decision.losses), "I9", f"job {row.draft.id} forgot failures or losses"
        )
        known.state, known.node, known.due_at = State.PENDING, None, decision.due_at
        known.failures, known.losses = row.failures, row.losses
        known.recorded += _is_recorded(decision)

    def finished(self, row: Row, state: State) -> None:
        decision = self.transaction.decisions.get(row.draft.id)
        event = f"settle {decision.ending}" if decision else "overlap skip" if self.transaction.verb == "claim" else self.transaction.verb
        known = self._known(row, event)
        match self.transaction.verb:
            case "settle" | "commit" if decision is not None:
                self._check_decision(known, decision)
                known.recorded += _is_recorded(decision)
            case "cancel_job":
                self._verdict.require(known.state is State.PENDING, "I6", f"job {row.draft.id} was cancelled under its worker's feet")
            case "add_unique":
                replaced = known.state is State.PENDING and state is State.CANCELLED and (row.error or "").startswith("replaced by job ")
                self._verdict.require(replaced, "I15", f"job {row.draft.id} was replaced while {known.state}")
            case "claim":
                blocked = known.state is State.PENDING and known.attempt == 0 and self._in_the_way(row) is not None
                legal = blocked and known.draft.overlap == Overlap.SKIP and state is State.SKIPPED
                self._verdict.require(legal, "I10", f"job {row.draft.id} was skipped for an overlap that is none")
            case verb:
                self._verdict.violate("I6", f"{verb} ended job {row.draft.id}")
        known.state, known.node, known.failures, known.losses = state, None, row.failures, row.losses
        self.tools.released(known.draft)
        self._leave(known)

    def withdrawn(self, row: Row) -> None:
        known = self._known(row, self.transaction.verb)
        legal = (
            self.transaction.verb in WITHDRAWING
            and known.fired
            and (known.state, known.attempt) == (State.PENDING, 0)
            and known.draft.fire_time > self.transaction.now
        )
        self._verdict.require(legal, "I1", f"job {row.draft.id} was withdrawn, but it is no planned fire that lies ahead")
        self._leave(known)
        del self.jobs[row.draft.id]
        self._fires.withdrawn(known.draft)

    def moved(self, row: Row) -> None:
        known = self._known(row, self.transaction.verb)
        self._verdict.require(known.state is State.PENDING, "I6", f"job {row.draft.id} was moved while {known.state}")
        known.due_at, known.moved = row.draft.due_at, True

    def gave_up_key(self, row: Row) -> None:
        known = self._known(row, "give up key")
        self._verdict.require(self.transaction.verb == "add_unique", "I15", f"job {row.draft.id} lost its key by {self.transaction.verb}")
        assert known.draft.unique_key is not None
        del self._keys[known.draft.tenant, known.draft.unique_key]
        known.key_given_up = True

    def pruned(self, job_ids: list[UUID]) -> None:
        for job_id in job_ids:
            self._verdict.require(self.jobs[job_id].state.final, "I1", f"job {job_id} was pruned before its end")

    def announced(self, job_id: UUID, attempt: int, accepted: bool) -> None:
        known, current = self.jobs.get(job_id), self.runs_under(job_id, attempt)
        self._verdict.require(accepted is current, "I6", f"job {job_id} attempt {attempt} was announced: {accepted}, it is {current}")
        if known is not None and accepted:
            known.begun = True

    def runs_under(self, job_id: UUID, attempt: int) -> bool:
        known = self.jobs.get(job_id)
        return known is not None and known.state is State.RUNNING and known.attempt == attempt

    # -- replies ------------------------------------------------------------------------------------------------------
    def cancel_was_requested(self, job_id: UUID) -> None:
        self.jobs[job_id].cancel_requested = True

    def acknowledged(self, job_id: UUID, draft: JobDraft | None) -> None:
        self._recorder.acknowledge(job_id)
        self._verdict.require(job_id in self.jobs, "I1", f"job {job_id} was acknowledged and is not stored")
        if draft is not None and job_id != draft.id:
            same = self.jobs[job_id].draft.unique_key == draft.unique_key is not None
            self._verdict.require(same, "I15", f"job {job_id} answers for {draft.id}, but does not have its unique key")

    # -- tasks --------------------------------------------------------------------------------------------------------
    def task_started(self, job_id: UUID, attempt: int, process: Process) -> None:
        known, now = self.jobs.get(job_id), self.transaction.clock()
        if known is None or attempt not in known.holders:
            self._verdict.violate("I11", f"{process.name} starts job {job_id} attempt {attempt}, which nobody claimed")
            return
        node, due_at = known.holders[attempt]
        self.tools.task_started(known.draft, attempt)
        self._verdict.require((job_id, attempt) not in self._ran, "I5", f"job {job_id} attempt {attempt} starts twice")
        self._ran.add((job_id, attempt))
        early = (due_at if known.moved else max(due_at, known.draft.fire_time)) - now
        self._verdict.require(early <= EARLY, "I4", f"job {job_id} starts {early} microseconds early")
        self._verdict.require(self._nodes.may_start(node, now), "I7", f"{process.name} starts job {job_id} after its lease ended")
        self._verdict.require(
            not known.state.final or self._nodes.dead(node), "I3", f"job {job_id} starts although it is {known.state} already"
        )
        once = delivery_of(known.draft) is Delivery.AT_MOST_ONCE and self._recorder.starts_of(job_id) > 0
        self._verdict.require(not once, "I12", f"job {job_id} is to run at most once and starts again")

    # -- inside -------------------------------------------------------------------------------------------------------
    def _known(self, row: Row, event: str) -> Known:
        known = self.jobs[row.draft.id]
        self._recorder.transitions[known.state, event] += 1
        self._verdict.require(not known.state.final, "I3", f"job {row.draft.id} left its final state {known.state} by {event}")
        return known

    def _check_decision(self, known: Known, decision: Settlement) -> None:
        fresh = known.state is State.RUNNING and decision.attempt == known.attempt
        stale = f"job {decision.id} attempt {decision.attempt} was settled; it is {known.state} with attempt {known.attempt}"
        self._verdict.require(fresh, "I6", stale)
        if not fresh or known.node is None:
            return
        owner, writer = self._nodes.host_of(known.node), self.transaction.host
        taken = writer is not owner and not self._nodes.dead(known.node)
        self._verdict.require(not taken, "I7", f"job {decision.id} was settled by another while node {known.node} lives")
        self._check_ran(decision)
        wanted_stopped = known.cancel_requested or known.draft.schedule_id in self._fires.cancelling
        # A worker that lost its lease and lives to tell was not killed by this job: it may or may not count this loss.
        blamed = known.losses == 0 or (decision.losses > known.losses if writer is owner else known.begun)
        check_settlement(self._verdict, known.draft, (known.failures, known.losses), wanted_stopped, blamed, decision)

    def _check_ran(self, decision: Settlement) -> None:
        if decision.ending in (Ending.SUCCEEDED, Ending.FAILED, Ending.TIMED_OUT):
            ran = (decision.id, decision.attempt) in self._ran
            self._verdict.require(ran, "I9", f"job {decision.id} attempt {decision.attempt} {decision.ending} without having started")

    def _check_alone(self, row: Row) -> None:
        other = self._in_the_way(row)
        if row.draft.overlap is not None and other is not None:
            self._verdict.violate("I-6", f"job {row.draft.id} starts beside {other} of the same schedule")

    def _in_the_way(self, row: Row) -> UUID | None:
        started = self._started.get(row.draft.schedule_id, {}) if row.draft.schedule_id else {}
        return next((job_id for job_id in started if job_id != row.draft.id), None)

    def _leave(self, known: Known) -> None:
        draft = known.draft
        del self.live[draft.id]
        if draft.unique_key is not None and not known.key_given_up:
            del self._keys[draft.tenant, draft.unique_key]
        if draft.schedule_id in self._started:
            self._started[draft.schedule_id].pop(draft.id, None)


def _is_recorded(decision: Settlement) -> bool:
    never_was = decision.ending is Ending.RELEASED and decision.started_at is None
    return decision.ending is not Ending.SUCCEEDED and not never_was
