"""Every fire that the oracle expects is a row, and there are no others. A change of a schedule withdraws its
future fires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from duetime.model.duration import parse
from duetime.model.instant import SECOND, Micros
from duetime.model.jitter import bounds
from duetime.model.job import JobDraft, Overlap
from duetime.model.schedule import LATE_AFTER, Firing, Schedule, ScheduleDraft
from duetime.store import ScheduleState
from duetime.testing.simulation.invariants import oracle
from duetime.testing.simulation.invariants.verdict import Invariant, Verdict

CLOCK_ERROR = SECOND // 500  # a client's clock may be ahead of the store's by this much
AROUND_EDIT = SECOND // 4  # a fire this close to a change may belong to the version before or after it
AFTER_EDIT = 30 * SECOND  # so long a planned fire may be judged by the version before the change
CHECK_TIME = SECOND // 10  # between the check of a late fire and its start
BACKLOG = 3 * SECOND  # fires older than this must not be lost by a change


@dataclass(slots=True)
class KnownSchedule:
    """A schedule after its last committed change."""

    draft: ScheduleDraft
    version: int
    cursor: Micros | None
    paused: bool = False
    removed: bool = False
    optional_until: Micros = 0
    rows: dict[Micros, UUID] = field(default_factory=dict)  # fire time -> the one job
    earlier: dict[Micros, UUID] = field(default_factory=dict)  # rows from before it was removed and re-added


class FireInvariants:
    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict
        self.plans: dict[UUID, KnownSchedule] = {}
        self.cancelling: set[UUID] = set()  # schedules that have ever had overlap `cancel_previous`
        self.expected = 0

    # -- changes of the table of jobs ------------------------------------------------------------------------
    def inserted(self, draft: JobDraft, skip_reason: str | None, now: Micros) -> None:
        plan = self.plans.get(draft.schedule_id) if draft.schedule_id else None
        name, moment = draft.schedule, draft.fire_time
        if plan is None or plan.removed or plan.paused:
            self._verdict.violate(
                Invariant.ONLY_EXPECTED_WORK, f"schedule {name!r} fired although it is paused or removed"
            )
            return
        self._verdict.require(
            oracle.is_fire(plan.draft.when, moment),
            Invariant.ONLY_EXPECTED_WORK,
            f"schedule {name!r} does not fire at {moment}",
        )
        self._verdict.require(
            moment not in plan.rows and moment not in plan.earlier,
            Invariant.SINGLE_OUTCOME,
            f"schedule {name!r} fired twice for {moment}",
        )
        low, high = bounds(plan.draft.jitter)
        self._verdict.require(
            low <= draft.due_at - moment <= high,
            Invariant.NEVER_EARLY,
            f"a fire of {name!r} is due outside its jitter",
        )
        plan.rows[moment] = draft.id
        limit = plan.draft.max_runs
        self._verdict.require(
            limit is None or len(plan.rows) <= limit,
            Invariant.ONLY_EXPECTED_WORK,
            f"schedule {name!r} fired more than {limit} times",
        )
        if skip_reason is not None:
            self._check_skip(plan, moment, skip_reason, now)

    def withdrawn(self, draft: JobDraft) -> None:
        assert draft.schedule_id is not None
        plan = self.plans[draft.schedule_id]
        del (plan.rows if draft.fire_time in plan.rows else plan.earlier)[draft.fire_time]

    def _check_skip(self, plan: KnownSchedule, moment: Micros, reason: str, now: Micros) -> None:
        missed = plan.draft.missed
        late = moment < now - LATE_AFTER + CLOCK_ERROR
        may = missed.policy != "all" or missed.max is not None or missed.within is not None
        legal = late and may and reason.startswith("missed: ")
        self._verdict.require(
            legal,
            Invariant.FIRES_COMPLETE,
            f"schedule {plan.draft.name!r} skipped {moment} ({reason}), which its policy does not allow",
        )

    # -- starts ----------------------------------------------------------------------------------------------
    def started(self, draft: JobDraft, now: Micros) -> None:
        """A job that was planned as a fire starts for the first time. If it is late, the policy allows it,
        or it may have waited for the job before it or for a limit."""
        plan, age = self._judged(draft, now), now - draft.due_at
        if plan is None or age <= LATE_AFTER + CHECK_TIME:
            return
        if draft.overlap == Overlap.QUEUE or draft.limit_key is not None:
            return
        missed = plan.draft.missed
        newer = sum(draft.fire_time < moment < now - LATE_AFTER - CHECK_TIME for moment in plan.rows)
        most = {"skip": 0, "latest": 1, "all": missed.max}[missed.policy]
        too_old = missed.within is not None and age > parse(missed.within, "within") + CHECK_TIME
        self._verdict.require(
            not too_old and (most is None or newer < most),
            Invariant.FIRES_COMPLETE,
            f"schedule {draft.schedule!r} ran its fire at {draft.fire_time} {age} microseconds late",
        )

    def skipped_at_start(self, draft: JobDraft, reason: str | None, now: Micros, in_time: bool) -> None:
        """A planned fire was skipped by its worker, because it is late and has not started."""
        plan = self._judged(draft, now)
        if in_time:
            self._verdict.violate(Invariant.FIRES_COMPLETE, f"job {draft.id} was skipped: {reason}")
        elif plan is not None:
            self._check_skip(plan, draft.due_at, reason or "", now)

    def _judged(self, draft: JobDraft, now: Micros) -> KnownSchedule | None:
        """The schedule of a job; None if it was just changed, because a worker may have read it before."""
        plan = self.plans.get(draft.schedule_id) if draft.schedule_id else None
        return None if plan is None or plan.removed or now < plan.optional_until + AFTER_EDIT else plan

    # -- verbs -----------------------------------------------------------------------------------------------
    def fired(self, firings: Sequence[Firing], applied: int) -> None:
        due = [firing for firing in firings if self._applies(firing)]
        self._verdict.require(
            len(due) == applied,
            Invariant.FIRE_COMPARE_AND_SET,
            f"{applied} firings were applied, {len(due)} were up to date",
        )
        for firing in due:
            self._advance(self.plans[firing.schedule_id], firing)

    def written(
        self, state: ScheduleState | None, stored: Schedule | None, ahead: Sequence[JobDraft], now: Micros
    ) -> None:
        """A schedule was created, changed, paused, resumed or removed."""
        if stored is None:
            return
        if state is not None and state.draft.overlap == Overlap.CANCEL_PREVIOUS:
            self.cancelling.add(stored.id)
        old = self.plans.get(stored.id)
        if state is None:
            plan = self.plans[stored.id]
            self._check_change(plan, ahead, now)
            plan.removed = True
        elif old is None or old.removed:
            earlier = {} if old is None else old.earlier | old.rows
            plan = KnownSchedule(state.draft, stored.version, stored.next_fire_time, earlier=earlier)
            plan.paused = state.paused
            self.plans[stored.id] = plan
            self._check_cursor(state.draft, stored.next_fire_time, now)
        else:
            self._changed(old, stored, ahead, now)
            edited = replace(state.draft, id=old.draft.id) != old.draft
            resumed = old.paused and not state.paused
            old.draft, old.paused = state.draft, state.paused
            if edited or (resumed and old.draft.max_runs is None):
                self._check_cursor(old.draft, stored.next_fire_time, now)

    # -- internals -------------------------------------------------------------------------------------------
    def _applies(self, firing: Firing) -> bool:
        plan = self.plans.get(firing.schedule_id)
        if plan is None or plan.removed or plan.paused:
            return False
        return (plan.version, plan.cursor) == (firing.version, firing.cursor)

    def _advance(self, plan: KnownSchedule, firing: Firing) -> None:
        """The cursor moved: every fire in between must be a row."""
        after = firing.next_fire_time
        last = max(plan.rows, default=firing.cursor)
        for moment in oracle.fires(plan.draft.when, firing.cursor, last + 1 if after is None else after):
            self.expected += 1
            accounted = moment in plan.rows or moment in plan.earlier or moment <= plan.optional_until
            self._verdict.require(
                accounted,
                Invariant.FIRES_COMPLETE,
                f"schedule {plan.draft.name!r} passed {moment} without a row for it",
            )
        if after is None:
            self._check_exhausted(plan, last)
        else:
            self._verdict.require(
                oracle.is_fire(plan.draft.when, after),
                Invariant.ONLY_EXPECTED_WORK,
                f"the cursor of {plan.draft.name!r} is not a fire",
            )
        plan.cursor = after

    def _check_exhausted(self, plan: KnownSchedule, last: Micros) -> None:
        spent = plan.draft.max_runs is not None and len(plan.rows) + len(plan.earlier) >= plan.draft.max_runs
        done = spent or oracle.first_after(plan.draft.when, max(last, plan.optional_until)) is None
        self._verdict.require(
            done,
            Invariant.FIRES_COMPLETE,
            f"schedule {plan.draft.name!r} stopped firing after {last}, before its end",
        )

    def _changed(self, plan: KnownSchedule, stored: Schedule, ahead: Sequence[JobDraft], now: Micros) -> None:
        self._check_change(plan, ahead, now)
        self._verdict.require(
            stored.version == plan.version + 1,
            Invariant.VERSIONS,
            f"schedule {plan.draft.name!r} skipped a version",
        )
        plan.version, plan.cursor, plan.optional_until = (
            stored.version,
            stored.next_fire_time,
            now + AROUND_EDIT,
        )

    def _check_change(self, plan: KnownSchedule, ahead: Sequence[JobDraft], now: Micros) -> None:
        name = plan.draft.name
        self._verdict.require(
            not ahead, Invariant.ONLY_EXPECTED_WORK, f"a change of {name!r} left {len(ahead)} future fires"
        )
        if plan.cursor is not None and not plan.paused:
            lost = list(oracle.fires(plan.draft.when, plan.cursor, now - BACKLOG))
            self._verdict.require(
                not lost,
                Invariant.FIRES_COMPLETE,
                f"a change of {name!r} lost {len(lost)} fires that were due before it",
            )

    def _check_cursor(self, draft: ScheduleDraft, cursor: Micros | None, now: Micros) -> None:
        """No fire from now on may be left out."""
        following = oracle.first_after(draft.when, now + CLOCK_ERROR)
        complete = following is None or (cursor is not None and cursor <= following)
        self._verdict.require(
            complete,
            Invariant.FIRES_COMPLETE,
            f"schedule {draft.name!r} begins at {cursor}, after its fire at {following}",
        )
