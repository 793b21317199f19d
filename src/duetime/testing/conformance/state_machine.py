"""A Hypothesis machine over a store: any order of verbs, two workers, late finishers, dead nodes.

Bind it by overriding `open_store` (and `teardown`, if there is something to clean up after it) and take its
`TestCase`:

    class MyMachine(StoreMachine):
        def open_store(self) -> Store: ...

    TestMyMachine = MyMachine.TestCase
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from duetime.model.instant import Micros
from duetime.model.job import CancelReply, Claimed, Ending, Job, State
from duetime.model.lease import NodeId
from duetime.model.schedule import Firing, Schedule
from duetime.model.settle import Settlement
from duetime.store import OfDeadNodes
from duetime.testing.conformance.author_rules import AuthorRules
from duetime.testing.conformance.base import PRIORITIES
from duetime.testing.conformance.drafts import (
    DAY,
    HOUR,
    TENANT,
    claim,
    ended,
    expired,
    fires,
    job,
    joined,
    limit,
    live_counts,
    loss,
    pause_schedule,
    put_schedule,
    remove_schedule,
    request,
    resume_schedule,
    schedule,
    set_limits,
    settle,
)
from duetime.testing.conformance.model import MAX_RUNNING

NAMES = ("one", "two")
FAR_AHEAD = 400 * DAY
picks = st.integers(min_value=0, max_value=99)
overlaps = st.sampled_from([None, "skip", "queue", "cancel_previous"])
outcomes = st.sampled_from(["success", "death", "cancelled", "retry", "retry later", "release"])


class StoreMachine(AuthorRules):
    @initialize(waiting=st.integers(0, 4), held=st.integers(0, 2))
    def two_workers_join(self, waiting: int, held: int) -> None:
        """Some work is there already, or most sequences would find nothing to claim."""
        self.run(set_limits(self.store, limit(max_running=MAX_RUNNING)))
        self.workers = [self.run(joined(self.store)) for _ in range(2)]
        for _ in range(waiting):
            self.add(job(self.now() - HOUR))
        if held:
            self.claim_for(self.workers[0], held, 0)

    # -- callers
    @rule(
        ahead=st.booleans(), priority=st.sampled_from(PRIORITIES), key=st.sampled_from([None, None, "a", "b"])
    )
    def submit(self, ahead: bool, priority: int, key: str | None) -> None:
        moment = self.now() + (HOUR if ahead else -HOUR)
        self.add(job(moment, priority=priority, unique_key=key))

    @rule(overlap=overlaps, which=st.integers(0, 1))
    def submit_for_a_schedule(self, overlap: str | None, which: int) -> None:
        self.add(
            job(
                self.now() - HOUR, schedule_id=self.hand_schedules[which], schedule="by hand", overlap=overlap
            )
        )

    @precondition(lambda self: self.expected.drafts)
    @rule(pick=picks)
    def submit_again(self, pick: int) -> None:
        """The reply was lost."""
        draft = self.expected.any_draft(pick)
        if draft.id not in self.expected.gone:
            assert self.run(self.store.add_jobs([draft], is_retry=True)) == [draft.id]

    @precondition(lambda self: self.expected.drafts)
    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        draft = self.expected.any_draft(pick)
        reply = self.run(self.store.cancel_job(TENANT, draft.id, "a whim"))
        expected = self.expected.state_of(draft.id)
        assert reply is expected, f"{draft.id}: {reply}, expected {expected}"
        if reply is CancelReply.CANCELLED:
            self.expected.end(draft.id, State.CANCELLED)

    @precondition(lambda self: self.expected.drafts)
    @rule(pick=picks, ahead=st.booleans(), priority=st.sampled_from(PRIORITIES))
    def move(self, pick: int, ahead: bool, priority: int) -> None:
        draft = self.expected.any_draft(pick)
        due_at = self.now() + (HOUR if ahead else -HOUR)
        moved = self.run(self.store.reschedule_job(TENANT, draft.id, due_at, priority))
        assert moved is self.expected.waits(draft.id)

    @precondition(lambda self: self.expected.dead_letters())
    @rule(pick=picks, discard=st.booleans())
    def deal_with_a_dead_letter(self, pick: int, discard: bool) -> None:
        letters = self.expected.dead_letters()
        letter = letters[pick % len(letters)]
        again = job(self.now() - HOUR, retry_of=letter)
        if discard:
            assert self.run(self.store.resolve_dead_job(TENANT, letter, None))
        else:
            assert self.run(self.store.resolve_dead_job(TENANT, letter, again))
            self.expected.accept(again)
        self.expected.disposed.add(letter)

    # -- workers
    @rule(worker=st.integers(0, 1), room=st.integers(1, 4), ahead=st.booleans(), sweep=st.booleans())
    def claim(self, worker: int, room: int, ahead: bool, sweep: bool) -> None:
        self.claim_for(self.workers[worker], room, 6 * HOUR if ahead else 0, sweep)

    @precondition(lambda self: self.expected.held)
    @rule(pick=picks)
    def change_hands(self, pick: int) -> None:
        """A job is given back and claimed at once: its first holder is now a late finisher."""
        row = self.expected.any_held(pick)
        decision = self.decide(row, "retry")
        assert self.run(settle(self.store, [decision])) == []
        self.expected.settle(decision)
        self.claim_for(self.workers[pick % 2], 100, 0)

    @precondition(lambda self: self.expected.held)
    @rule(pick=picks, outcome=outcomes)
    def settle_current(self, pick: int, outcome: str) -> None:
        row = self.expected.any_held(pick)
        decision = self.decide(row, outcome)
        assert self.run(settle(self.store, [decision])) == []
        self.expected.settle(decision)
        assert self.run(settle(self.store, [decision])) == [], "a repetition was refused"

    @precondition(lambda self: self.expected.stale())
    @rule(pick=picks, outcome=outcomes)
    def settle_stale(self, pick: int, outcome: str) -> None:
        stale = self.expected.stale()
        self.refuses([self.decide(stale[pick % len(stale)], outcome)], [])

    @precondition(lambda self: self.expected.held and self.expected.stale())
    @rule(outcome=outcomes)
    def settle_everything(self, outcome: str) -> None:
        """One batch of all that ever was held and all that is."""
        current = [self.decide(row, outcome) for row in self.expected.held.values()]
        self.refuses([self.decide(row, outcome) for row in self.expected.stale()], current)
        for decision in current:
            self.expected.settle(decision)

    def refuses(self, late: list[Settlement], current: list[Settlement]) -> None:
        """I6: whatever late finishers say, nothing changes; each is refused unless it repeats what was
        decided."""
        before = {decision.id: self.run(self.store.get_job(TENANT, decision.id)) for decision in late}
        refused = Counter(self.run(settle(self.store, [*late, *current])))
        repeats = Counter(decision.id for decision in late if _repeats(decision, before[decision.id]))
        expected = Counter(decision.id for decision in late)
        assert expected - repeats <= refused <= expected
        for job_id in before.keys() - {decision.id for decision in current}:
            assert self.run(self.store.get_job(TENANT, job_id)) == before[job_id]

    def decide(self, row: Claimed, outcome: str) -> Settlement:
        # A job that was claimed ahead of its fire time does not finish before it.
        at = max(self.now(), row.fire_time)
        match outcome:
            case "success":
                return ended(row, State.SUCCEEDED, Ending.SUCCEEDED, at)
            case "death":
                return ended(row, State.DEAD, Ending.FAILED, at, error="boom")
            case "cancelled":
                return ended(row, State.CANCELLED, Ending.CANCELLED, at)
            case "retry" | "retry later":
                return ended(
                    row,
                    State.PENDING,
                    Ending.FAILED,
                    at,
                    due_at=at + HOUR if outcome == "retry later" else at - HOUR,
                    error="boom",
                )
            case _:
                return ended(row, State.PENDING, Ending.RELEASED, at, started_at=None)

    # -- nodes
    @rule(worker=st.integers(0, 1), orderly=st.booleans())
    def a_worker_dies(self, worker: int, orderly: bool) -> None:
        """Its jobs are found and settled as lost; a new run of the process takes its place."""
        dead, other = self.workers[worker], self.workers[1 - worker]
        self.kill(dead, other, orderly)
        assert self.run(claim(self.store, request(dead))) == []
        orphans = self.run(self.store.running_jobs(OfDeadNodes(), 1_000))
        assert {row.id for row in orphans} == {row.id for row in self.expected.held_by(dead)}
        assert self.run(settle(self.store, [loss(row, self.now()) for row in orphans])) == []
        for row in orphans:
            self.expected.settle(loss(row, 0))
        self.workers[worker] = self.run(joined(self.store))

    def kill(self, dead: NodeId, other: NodeId, orderly: bool) -> None:
        if orderly:
            self.run(self.store.leave(dead))
        else:
            self.run(self.store.beat(dead, 1))
            unnoticed = self.run(expired(self.store))
            assert set(self.run(self.store.expire_nodes(other))) == {dead, unnoticed}
        assert not self.run(self.store.beat(dead, HOUR)).alive

    # -- schedules
    @rule(name=st.sampled_from(NAMES), overlap=overlaps, back=st.integers(1, 3))
    def put_schedule(self, name: str, overlap: str | None, back: int) -> None:
        cursor = self.hour(-back)
        made = self.run(put_schedule(self.store, schedule(name, overlap=overlap), cursor, None))
        assert made is not None
        self.withdraw(made)

    @rule(name=st.sampled_from(NAMES))
    def pause(self, name: str) -> None:
        self.withdraw(self.run(pause_schedule(self.store, TENANT, name, "a whim")))

    @rule(name=st.sampled_from(NAMES), ahead=st.integers(-3, 1))
    def resume(self, name: str, ahead: int) -> None:
        self.run(resume_schedule(self.store, TENANT, name, self.hour(ahead)))

    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: str) -> None:
        self.withdraw(self.run(remove_schedule(self.store, TENANT, name)))

    def withdraw(self, changed: Schedule | None) -> None:
        if changed is not None:
            assert changed.runs >= 0
            self.expected.withdraw(changed.id, self.now())

    def hour(self, ahead: int) -> Micros:
        """A full hour, so that the same fires come up again and again."""
        return (self.now() // HOUR + ahead) * HOUR + HOUR // 2

    @rule(name=st.sampled_from(NAMES), number=st.integers(0, 6), skip=st.booleans())
    def fire(self, name: str, number: int, skip: bool) -> None:
        planned = self.run(self.store.get_schedule(TENANT, name))
        if planned is None or planned.paused or planned.next_fire_time is None:
            return
        step = self.step(planned, number, skip)
        assert self.run(self.store.fire([step])) == 1
        assert self.run(self.store.fire([step])) == (1 if step.next_fire_time == step.cursor else 0)
        self.steps.append(step)
        for fire in step.fires:
            self.expected.accept_fire(planned, fire)

    def step(self, planned: Schedule, number: int, skip: bool) -> Firing:
        """Like the planner, it leaves out what the schedule has fired before."""
        assert planned.next_fire_time is not None
        moments = [planned.next_fire_time + position * HOUR for position in range(number)]
        fresh = [
            moment for moment in moments if planned.last_fire_time is None or moment > planned.last_fire_time
        ]
        made = fires(planned.id, *fresh, skip_reason="missed" if skip else None)
        following = planned.next_fire_time + number * HOUR
        return Firing(
            planned.id, planned.version, planned.next_fire_time, following, planned.runs + len(fresh), made
        )

    @precondition(lambda self: self.steps)
    @rule(pick=picks)
    def fire_a_stale_step(self, pick: int) -> None:
        """B5: a planner that lost its lease wakes up."""
        step = self.steps[pick % len(self.steps)]
        stale = replace(step, version=step.version - 1)
        assert self.run(self.store.fire([stale])) == 0

    # -- upkeep and what must always hold
    @rule()
    def prune(self) -> None:
        before = self.now()
        past = {found.id: found for found in self.listed() if found.state.final}
        self.run(self.store.prune(before))
        for job_id, found in past.items():
            if found.finished_at is not None and found.finished_at < before:
                self.expected.forget(job_id)

    @invariant()
    def the_store_agrees_with_the_ledger(self) -> None:
        found = self.listed()
        self.expected.check(found, {row.id for row in found if row.state is State.RUNNING})
        assert self.expected.most_completions() <= 1

    def teardown(self) -> None:
        """I8: after the last fault everything that waits can be brought to its end."""
        try:
            if self.workers:
                self.finish_everything()
            self.run(self.store.close())
        finally:
            self.loop.close()

    def finish_everything(self) -> None:
        node = self.run(joined(self.store))
        self.set_pause(False)
        for _ in range(len(self.expected.drafts) + 2):
            for row in list(self.expected.held.values()):
                decision = self.decide(row, "success")
                assert self.run(settle(self.store, [decision])) == []
                self.expected.settle(decision)
            self.claim_for(node, 1_000, FAR_AHEAD)
        assert self.run(live_counts(self.store)) == {}, "stuck"


def _repeats(decision: Settlement, found: Job | None) -> bool:
    return found is not None and (found.attempt, found.state) == (decision.attempt, decision.state)
