"""Every fire the oracle expects is a row, and no other (I10, I11); changes of a schedule withdraw what lies ahead (I-1, I-3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from duetime.model.instant import SECOND, Micros
from duetime.model.job import JobDraft, Overlap
from duetime.model.schedule import LATE_AFTER, Firing, Schedule, ScheduleDraft
from duetime.testing.simulation.invariants import oracle
from duetime.testing.simulation.invariants.verdict import Verdict

BEHIND = SECOND // 500  # how far a client's idea of now may lie ahead of the store's
AROUND_EDIT = SECOND // 4  # fires this close to a change may count for the schedule before or after it
BACKLOG = 3 * SECOND  # fires older than this must not vanish in a change


@dataclass(slots=True)
class Plan:
    """A schedule as its last committed change left it."""

    draft: ScheduleDraft
    version: int
    cursor: Micros | None
    paused: bool = False
    removed: bool = False
    optional_until: Micros = 0
    rows: dict[Micros, UUID] = field(default_factory=dict)  # fire time -> the one job
    earlier: dict[Micros, UUID] = field(default_factory=dict)  # of the same id, before it was removed and a late request made it again


class FireInvariants:
    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict
        self.plans: dict[UUID, Plan] = {}
        self.cancelling: set[UUID] = set()  # schedules that ever cancelled the previous job
        self.expected = 0

    # -- changes of the table of jobs ---------------------------------------------------------------------------------
    def inserted(self, draft: JobDraft, skip_reason: str | None, now: Micros) -> None:
        plan = self.plans.get(draft.schedule_id) if draft.schedule_id else None
        name, moment = draft.schedule, draft.fire_time
        if plan is None or plan.removed or plan.paused:
            self._verdict.violate("I11", f"schedule {name!r} fired although it is paused or gone")
            return
        self._verdict.require(oracle.is_fire(plan.draft.when, moment), "I11", f"schedule {name!r} does not fire at {moment}")
        self._verdict.require(moment not in plan.rows and moment not in plan.earlier, "I3", f"schedule {name!r} fired twice for {moment}")
        self._verdict.require(0 <= draft.due_at - moment <= plan.draft.jitter, "I4", f"a fire of {name!r} is due outside its jitter")
        plan.rows[moment] = draft.id
        most = plan.draft.max_runs
        self._verdict.require(most is None or len(plan.rows) <= most, "I11", f"schedule {name!r} fired more than {most} times")
        if skip_reason is not None:
            self._check_skip(plan, moment, skip_reason, now)

    def withdrawn(self, draft: JobDraft) -> None:
        assert draft.schedule_id is not None
        plan = self.plans[draft.schedule_id]
        del (plan.rows if draft.fire_time in plan.rows else plan.earlier)[draft.fire_time]

    def _check_skip(self, plan: Plan, moment: Micros, reason: str, now: Micros) -> None:
        missed = plan.draft.missed
        late = moment < now - LATE_AFTER + BEHIND
        may = missed.policy != "all" or missed.max is not None or missed.within is not None
        legal = late and may and reason.startswith("missed: ")
        self._verdict.require(legal, "I10", f"schedule {plan.draft.name!r} skipped {moment} ({reason}), which its policy does not say")

    # -- verbs --------------------------------------------------------------------------------------------------------
    def fired(self, firings: Sequence[Firing], applied: int) -> None:
        due = [firing for firing in firings if self._applies(firing)]
        self._verdict.require(len(due) == applied, "B5", f"{applied} firings were applied, {len(due)} were up to date")
        for firing in due:
            self._advance(self.plans[firing.schedule_id], firing)

    def put(self, draft: ScheduleDraft, stored: Schedule | None, ahead: Sequence[JobDraft], now: Micros) -> None:
        if stored is None:
            return
        old = self.plans.get(stored.id)
        if draft.overlap == Overlap.CANCEL_PREVIOUS:
            self.cancelling.add(stored.id)
        if old is None or old.removed:
            earlier = {} if old is None else old.earlier | old.rows
            self.plans[stored.id] = Plan(draft, stored.version, stored.next_fire_time, earlier=earlier)
        else:
            self._changed(old, stored, ahead, now)
            old.draft = draft
        self._check_cursor(draft, stored.next_fire_time, now)

    def paused(self, stored: Schedule | None, ahead: Sequence[JobDraft], now: Micros) -> None:
        if stored is not None:
            plan = self.plans[stored.id]
            self._changed(plan, stored, ahead, now)
            plan.paused = True

    def resumed(self, stored: Schedule | None, now: Micros) -> None:
        if stored is None or stored.paused or not self.plans[stored.id].paused:
            return
        plan = self.plans[stored.id]
        self._changed(plan, stored, (), now)
        plan.paused = False
        if plan.draft.max_runs is None:
            self._check_cursor(plan.draft, stored.next_fire_time, now)

    def removed(self, stored: Schedule | None, ahead: Sequence[JobDraft], now: Micros) -> None:
        if stored is not None:
            plan = self.plans[stored.id]
            self._check_change(plan, ahead, now)
            plan.removed = True

    # -- inside -------------------------------------------------------------------------------------------------------
    def _applies(self, firing: Firing) -> bool:
        plan = self.plans.get(firing.schedule_id)
        if plan is None or plan.removed or plan.paused:
            return False
        return (plan.version, plan.cursor) == (firing.version, firing.cursor)

    def _advance(self, plan: Plan, firing: Firing) -> None:
        """The cursor went from here to there: everything in between must be a row."""
        after = firing.next_fire_time
        last = max(plan.rows, default=firing.cursor)
        for moment in oracle.fires(plan.draft.when, firing.cursor, last + 1 if after is None else after):
            self.expected += 1
            accounted = moment in plan.rows or moment in plan.earlier or moment <= plan.optional_until
            self._verdict.require(accounted, "I10", f"schedule {plan.draft.name!r} went past {moment} without a row for it")
        if after is None:
            self._check_exhausted(plan, last)
        else:
            self._verdict.require(oracle.is_fire(plan.draft.when, after), "I11", f"the cursor of {plan.draft.name!r} is no fire")
        plan.cursor = after

    def _check_exhausted(self, plan: Plan, last: Micros) -> None:
        spent = plan.draft.max_runs is not None and len(plan.rows) + len(plan.earlier) >= plan.draft.max_runs
        done = spent or oracle.first_after(plan.draft.when, max(last, plan.optional_until)) is None
        self._verdict.require(done, "I10", f"schedule {plan.draft.name!r} stopped firing after {last}, before its end")

    def _changed(self, plan: Plan, stored: Schedule, ahead: Sequence[JobDraft], now: Micros) -> None:
        self._check_change(plan, ahead, now)
        self._verdict.require(stored.version == plan.version + 1, "I-4", f"schedule {plan.draft.name!r} skipped a version")
        plan.version, plan.cursor, plan.optional_until = stored.version, stored.next_fire_time, now + AROUND_EDIT

    def _check_change(self, plan: Plan, ahead: Sequence[JobDraft], now: Micros) -> None:
        name = plan.draft.name
        self._verdict.require(not ahead, "I11", f"a change of {name!r} left {len(ahead)} planned fires that lie ahead")
        if plan.cursor is not None and not plan.paused:
            lost = list(oracle.fires(plan.draft.when, plan.cursor, now - BACKLOG))
            self._verdict.require(not lost, "I10", f"a change of {name!r} forgot {len(lost)} fires that were due before it")

    def _check_cursor(self, draft: ScheduleDraft, cursor: Micros | None, now: Micros) -> None:
        """Nothing from now on may be left out."""
        following = oracle.first_after(draft.when, now + BEHIND)
        complete = following is None or (cursor is not None and cursor <= following)
        self._verdict.require(complete, "I10", f"schedule {draft.name!r} begins at {cursor}, after its fire at {following}")
