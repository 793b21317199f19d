"""Rules of the machine for what task authors use: limit keys, unique jobs, checkpoints, marks, paused queues,
workers outside."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from duetime.model.job import Claimed, State
from duetime.model.limit import Queue
from duetime.model.unique import LIVE, OnConflict, Rule
from duetime.store import AttemptUpdate, OnceReply, PastDeadline
from duetime.testing.conformance.base import PRIORITIES, MachineBase
from duetime.testing.conformance.drafts import (
    HOUR,
    QUEUE,
    announce,
    extend_deadline,
    hand_over,
    job,
    new_id,
    settle,
)

picks = st.integers(min_value=0, max_value=99)
keys = st.sampled_from(["a", "b"])


class AuthorRules(MachineBase):
    # -- callers
    @rule(limit_key=keys, number=st.integers(1, 4), priority=st.sampled_from(PRIORITIES))
    def submit_with_limit_key(self, limit_key: str, number: int, priority: int) -> None:
        for _ in range(number):
            self.add(job(self.now() - HOUR, limit_key=limit_key, priority=priority))

    @rule(overlap=st.sampled_from(["skip", "queue"]), limit_key=keys, which=st.integers(0, 1))
    def submit_for_a_schedule_with_limit_key(self, overlap: str, limit_key: str, which: int) -> None:
        schedule_id = self.hand_schedules[which]
        self.add(
            job(
                self.now() - HOUR,
                schedule_id=schedule_id,
                schedule="by hand",
                overlap=overlap,
                limit_key=limit_key,
            )
        )

    @rule(key=keys, on_conflict=st.sampled_from(OnConflict), running=st.booleans(), is_retry=st.booleans())
    def submit_unique(self, key: str, on_conflict: OnConflict, running: bool, is_retry: bool) -> None:
        draft = job(self.now() - HOUR, unique_key=key)
        kind = Rule(LIVE if running else LIVE - {State.RUNNING}, None, on_conflict)
        expected = self.expected.admit(draft, kind)
        assert self.run(self.store.add_unique(draft, kind)) == expected
        if is_retry and expected.id == draft.id:
            assert self.run(self.store.add_unique(draft, kind, is_retry=True)).id == draft.id

    @rule(paused=st.booleans())
    def set_pause(self, paused: bool) -> None:
        self.run(self.store.set_queue(Queue(QUEUE, paused)))
        self.paused = paused

    # -- workers
    @precondition(lambda self: self.expected.held)
    @rule(pick=picks, both=st.booleans())
    def save(self, pick: int, both: bool) -> None:
        row = self.expected.any_held(pick)
        value = b"%d" % self.expected.saves
        assert (
            self.run(
                self.store.save_progress([AttemptUpdate(row.id, row.attempt, value, value if both else None)])
            )
            == []
        )
        self.expected.save(row, value)

    @precondition(lambda self: self.expected.held and self.expected.stale())
    @rule(pick=picks)
    def save_late(self, pick: int) -> None:
        """B4: in one call with notes of those who may."""
        late, row = self._any_stale(pick), self.expected.any_held(pick)
        value = b"%d" % self.expected.saves
        notes = [
            AttemptUpdate(late.id, late.attempt, b"late", b"late"),
            AttemptUpdate(row.id, row.attempt, value, None),
        ]
        assert self.run(self.store.save_progress(notes)) == [late.id]
        self.expected.save(row, value)

    @precondition(lambda self: self.expected.held)
    @rule(pick=picks, key=keys, repeat=st.booleans())
    def mark(self, pick: int, key: str, repeat: bool) -> None:
        row, nonce = self.expected.any_held(pick), new_id(0)
        expected = OnceReply.TAKEN if self.expected.mark(row.id, key) else OnceReply.KNOWN
        for _ in range(2 if repeat else 1):
            assert self.run(self.store.take_once(row.id, row.attempt, key, nonce)) is expected

    @precondition(lambda self: self.expected.held_inside())
    @rule(pick=picks, late=st.booleans())
    def give_outside(self, pick: int, late: bool) -> None:
        inside = self.expected.held_inside()
        row = inside[pick % len(inside)]
        decision = hand_over(row, self.now() + (-HOUR if late else HOUR), self.now())
        for _ in range(2):
            assert self.run(settle(self.store, [decision])) == []
        self.expected.settle(decision)
        assert (
            row.id in {found.id for found in self.run(self.store.running_jobs(PastDeadline(), 1_000))}
        ) is late

    @precondition(lambda self: self.expected.held)
    @rule(pick=picks)
    def move_a_deadline(self, pick: int) -> None:
        row = self.expected.any_held(pick)
        assert self.run(
            extend_deadline(self.store, row.id, row.attempt, self.now() + HOUR)
        ) is self.expected.outside(row.id)

    @precondition(lambda self: self.expected.stale())
    @rule(pick=picks, key=keys)
    def mark_late(self, pick: int, key: str) -> None:
        late = self._any_stale(pick)
        assert self.run(self.store.take_once(late.id, late.attempt, key, new_id(0))) is OnceReply.REFUSED

    @precondition(lambda self: self.expected.drafts)
    @rule(pick=picks)
    def wait_for(self, pick: int) -> None:
        draft = self.expected.any_draft(pick)
        assert self.run(announce(self.store, draft.id)) is self.expected.lives(draft.id)

    def _any_stale(self, pick: int) -> Claimed:
        stale = self.expected.stale()
        return stale[pick % len(stale)]
