"""What the machine knows must be true: kept apart from the store, in the simplest way there is."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from duetime.model.instant import Micros
from duetime.model.job import CancelReply, Claimed, Job, JobDraft, State
from duetime.model.lease import NodeId
from duetime.model.schedule import Fire, Schedule
from duetime.model.settle import Settlement
from duetime.model.unique import Admission, OnConflict, Rule
from duetime.testing.conformance.drafts import job

MAX_RUNNING = 2  # of one limit key


class ExpectedState:
    def __init__(self) -> None:
        self.drafts: dict[UUID, JobDraft] = {}  # everything ever accepted
        self.gone: set[UUID] = set()  # withdrawn or pruned
        self.final: dict[UUID, State] = {}
        self.held: dict[UUID, Claimed] = {}
        self.disposed: set[UUID] = set()
        self.saves = 0
        self._checkpoints: dict[UUID, bytes] = {}
        self._marks: set[tuple[UUID, str]] = set()
        self._outside: set[UUID] = set()  # handed over: held, and by no node
        self._holders: dict[tuple[UUID, int], NodeId] = {}
        self._ever: list[Claimed] = []
        self._attempts: dict[UUID, int] = {}
        self._completions: Counter[UUID] = Counter()

    # -- what happened
    def accept(self, draft: JobDraft) -> None:
        assert draft.id not in self.drafts or draft.id in self.gone, "accepted twice"
        self.drafts[draft.id] = draft
        self.gone.discard(draft.id)
        self.final.pop(draft.id, None)

    def accept_fire(self, planned: Schedule, fire: Fire) -> None:
        if fire.id in self.drafts and fire.id not in self.gone:
            return
        of_schedule = job(
            fire.due_at, schedule_id=planned.id, schedule=planned.draft.name, overlap=planned.draft.overlap
        )
        self.accept(of_schedule._replace(id=fire.id, fire_time=fire.fire_time))
        if fire.skip_reason is not None:
            self.end(fire.id, State.SKIPPED)

    def admit(self, draft: JobDraft, rule: Rule) -> Admission:
        """What must become of a unique job, and that it becomes so."""
        holder = next(
            (
                each
                for each in self.drafts.values()
                if each.unique_key == draft.unique_key and self.lives(each.id)
            ),
            None,
        )
        if holder is not None and holder.id in self.held:
            if State.RUNNING in rule.states:
                return Admission(holder.id, "skipped")
            self.drafts[holder.id] = holder._replace(unique_key=None)
        elif holder is not None and rule.on_conflict is not OnConflict.REPLACE:
            return Admission(holder.id, "skipped" if rule.on_conflict is OnConflict.SKIP else "rescheduled")
        elif holder is not None:
            self.end(holder.id, State.CANCELLED)
            self.accept(draft)
            return Admission(draft.id, "replaced")
        self.accept(draft)
        return Admission(draft.id)

    def save(self, row: Claimed, checkpoint: bytes) -> None:
        self.saves += 1
        self._checkpoints[row.id] = checkpoint

    def mark(self, job_id: UUID, key: str) -> bool:
        """Whether this is the first time."""
        known = (job_id, key) in self._marks
        self._marks.add((job_id, key))
        return not known

    def shares_key(self, holder: UUID, draft: JobDraft) -> None:
        assert draft.unique_key is not None
        assert self.drafts[holder].unique_key == draft.unique_key
        assert self.lives(holder), "a finished job held a unique key"

    def start(self, row: Claimed, node: NodeId) -> None:
        """I5: a token has one holder, and tokens only rise."""
        assert self.lives(row.id), "a job that is final or gone was claimed"
        assert row.id not in self.held, "claimed while it runs"
        assert (row.id, row.attempt) not in self._holders, "one token, two holders"
        assert row.attempt > self._attempts.get(row.id, 0)
        self._holders[row.id, row.attempt] = node
        self._attempts[row.id] = row.attempt
        self._outside.discard(row.id)
        self.held[row.id] = row
        self._ever.append(row)

    def settle(self, decision: Settlement) -> None:
        if decision.state is State.RUNNING:
            self._outside.add(decision.id)
            return
        del self.held[decision.id]
        if decision.state.final:
            self.end(decision.id, decision.state)
            self._completions[decision.id] += 1

    def end(self, job_id: UUID, state: State) -> None:
        """I3: final once."""
        assert self.lives(job_id), "ended twice"
        self.held.pop(job_id, None)
        self.final[job_id] = state

    def withdraw(self, schedule_id: UUID, now: Micros) -> None:
        for draft in self.drafts.values():
            ahead = draft.schedule_id == schedule_id and draft.fire_time > now
            if ahead and self.lives(draft.id) and draft.id not in self._attempts:
                self.gone.add(draft.id)

    def forget(self, job_id: UUID) -> None:
        assert job_id in self.final
        self.gone.add(job_id)

    # -- what must be so
    def check(self, found: list[Job], running: set[UUID]) -> None:
        ids = [row.id for row in found]
        assert len(ids) == len(set(ids)), "a job is live and past, or listed twice"
        self._learn_of_overlaps(found)
        assert set(ids) == set(self.drafts) - self.gone, "jobs were lost or came from nowhere"
        assert running == set(self.held), "running jobs and holders differ"
        for row in found:
            assert row.state.final == (row.id in self.final), f"{row.id} is {row.state}"
            assert self.final.get(row.id, row.state) is row.state, "a final state changed"
            assert row.attempt == self._attempts.get(row.id, 0)
            assert row.checkpoint == self._checkpoints.get(row.id), (
                "a checkpoint was lost, or written by a late attempt"
            )
            assert row.unique_key == self.drafts[row.id].unique_key
        self._one_at_a_time(found)
        self._within_limits(
            [row for row in found if row.state is State.RUNNING and row.limit_key is not None]
        )

    def most_completions(self) -> int:
        return max(self._completions.values(), default=0)

    def _learn_of_overlaps(self, found: list[Job]) -> None:
        """A claim may end blocked jobs by itself; they must say why, and must never have started."""
        for row in found:
            if row.state is State.SKIPPED and row.id not in self.final:
                assert row.overlap == "skip"
                assert row.attempt == 0
                assert row.error is not None
                assert row.error.startswith("overlap: ")
                self.end(row.id, State.SKIPPED)

    def _within_limits(self, running: list[Job]) -> None:
        """At most so many permits of one limit key. Successors under one permit run one after the other on
        their node."""
        permits: dict[str | None, set[object]] = {}
        for row in running:
            permit = self.held[row.id].permit if row.id in self.held else row.id
            permits.setdefault(row.limit_key, set()).add(permit)
        assert max(map(len, permits.values()), default=0) <= MAX_RUNNING, "too many of one limit key"

    def _one_at_a_time(self, found: list[Job]) -> None:
        started = Counter(
            row.schedule_id
            for row in found
            if row.overlap is not None and row.attempt > 0 and not row.state.final
        )
        assert max(started.values(), default=0) <= 1, "two jobs of a schedule that runs one at a time"

    # -- choosing
    def any_draft(self, pick: int) -> JobDraft:
        return list(self.drafts.values())[pick % len(self.drafts)]

    def any_held(self, pick: int) -> Claimed:
        return list(self.held.values())[pick % len(self.held)]

    def held_by(self, node: NodeId) -> list[Claimed]:
        return [
            row
            for row in self.held.values()
            if self._holders[row.id, row.attempt] == node and row.id not in self._outside
        ]

    def held_inside(self) -> list[Claimed]:
        return [row for row in self.held.values() if row.id not in self._outside]

    def stale(self) -> list[Claimed]:
        return [
            row for row in self._ever if row.id not in self.held or self.held[row.id].attempt != row.attempt
        ]

    def dead_letters(self) -> list[UUID]:
        dead = (job_id for job_id, state in self.final.items() if state is State.DEAD)
        return [job_id for job_id in dead if job_id not in self.gone and job_id not in self.disposed]

    def state_of(self, job_id: UUID) -> CancelReply:
        """What cancelling this job would be answered."""
        if job_id in self.gone:
            return CancelReply.MISSING
        if job_id in self.final:
            return CancelReply.FINAL
        return CancelReply.CANCELLED if self.waits(job_id) or self.outside(job_id) else CancelReply.REQUESTED

    def waits(self, job_id: UUID) -> bool:
        return self.lives(job_id) and job_id not in self.held

    def outside(self, job_id: UUID) -> bool:
        return job_id in self.held and job_id in self._outside

    def lives(self, job_id: UUID) -> bool:
        return job_id in self.drafts and job_id not in self.gone and job_id not in self.final
