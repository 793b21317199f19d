"""Rules of the machine for what task authors use: gates, unique jobs, checkpoints, marks, paused queues, workers outside."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from duetime.model.job import Claimed, State
from duetime.model.limit import Queue
from duetime.model.unique import LIVE, OnConflict, Rule
from duetime.store import MarkReply, Note
from duetime.testing.conformance.drafts import HOUR, QUEUE, hand_over, job, new_id
from duetime.testing.conformance.frame import PRIORITIES, MachineFrame

picks = st.integers(min_value=0, max_value=99)
keys = st.sampled_from(["a", "b"])


class ToolRules(MachineFrame):
    # -- callers ------------------------------------------------------------------------------------------------------
    @rule(gate=keys, number=st.integers(1, 4), priority=st.sampled_from(PRIORITIES))
    def submit_behind_a_gate(self, gate: str, number: int, priority: int) -> None:
        for _ in range(number):
            self.add(job(self.now() - HOUR, gate=gate, priority=priority))

    @rule(overlap=st.sampled_from(["skip", "queue"]), gate=keys, which=st.integers(0, 1))
    def submit_behind_a_gate_for_a_schedule(self, overlap: str, gate: str, which: int) -> None:
        schedule_id = self.hand_schedules[which]
        self.add(job(self.now() - HOUR, schedule_id=schedule_id, schedule="by hand", overlap=overlap, gate=gate))

    @rule(key=keys, on_conflict=st.sampled_from(OnConflict), running=st.booleans(), again=st.booleans())
    def submit_unique(self, key: str, on_conflict: OnConflict, running: bool, again: bool) -> None:
        draft = job(self.now() - HOUR, unique_key=key)
        kind = Rule(LIVE if running else LIVE - {State.RUNNING}, None, on_conflict)
        expected = self.ledger.admit(draft, kind)
        assert self.run(self.store.add_unique(draft, kind)) == expected
        if again and expected.id == draft.id:
            assert self.run(self.store.add_unique(draft, kind, again=True)).id == draft.id

    @rule(paused=st.booleans())
    def set_pause(self, paused: bool) -> None:
        self.run(self.store.set_queue(Queue(QUEUE, paused)))
        self.paused = paused

    # -- workers ------------------------------------------------------------------------------------------------------
    @precondition(lambda self: self.ledger.held)
    @rule(pick=picks, both=st.booleans())
    def save(self, pick: int, both: bool) -> None:
        row = self.ledger.any_held(pick)
        value = b"%d" % self.ledger.saves
        assert self.run(self.store.save([Note(row.id, row.attempt, value, value if both else None)])) == []
        self.ledger.save(row, value)

    @precondition(lambda self: self.ledger.held and self.ledger.stale())
    @rule(pick=picks)
    def save_late(self, pick: int) -> None:
        """B4: in one call with notes of those who may."""
        late, row = self._any_stale(pick), self.ledger.any_held(pick)
        value = b"%d" % self.ledger.saves
        notes = [Note(late.id, late.attempt, b"late", b"late"), Note(row.id, row.attempt, value, None)]
        assert self.run(self.store.save(notes)) == [late.id]
        self.ledger.save(row, value)

    @precondition(lambda self: self.ledger.held)
    @rule(pick=picks, key=keys, repeat=st.booleans())
    def mark(self, pick: int, key: str, repeat: bool) -> None:
        row, nonce = self.ledger.any_held(pick), new_id(0)
        expected = MarkReply.TAKEN if self.ledger.mark(row.id, key) else MarkReply.KNOWN
        for _ in range(2 if repeat else 1):
            assert self.run(self.store.mark(row.id, row.attempt, key, nonce)) is expected

    @precondition(lambda self: self.ledger.held_inside())
    @rule(pick=picks, late=st.booleans())
    def give_outside(self, pick: int, late: bool) -> None:
        inside = self.ledger.held_inside()
        row = inside[pick % len(inside)]
        decision = hand_over(row, self.now() + (-HOUR if late else HOUR), self.now())
        for _ in range(2):
            assert self.run(self.store.settle([decision])) == []
        self.ledger.settle(decision)
        assert (row.id in {found.id for found in self.run(self.store.overdue(1_000))}) is late

    @precondition(lambda self: self.ledger.held)
    @rule(pick=picks)
    def move_a_deadline(self, pick: int) -> None:
        row = self.ledger.any_held(pick)
        assert self.run(self.store.extend(row.id, row.attempt, self.now() + HOUR)) is self.ledger.outside(row.id)

    @precondition(lambda self: self.ledger.stale())
    @rule(pick=picks, key=keys)
    def mark_late(self, pick: int, key: str) -> None:
        late = self._any_stale(pick)
        assert self.run(self.store.mark(late.id, late.attempt, key, new_id(0))) is MarkReply.REFUSED

    @precondition(lambda self: self.ledger.drafts)
    @rule(pick=picks)
    def wait_for(self, pick: int) -> None:
        draft = self.ledger.any_draft(pick)
        assert self.run(self.store.await_job(draft.id)) is self.ledger.lives(draft.id)

    def _any_stale(self, pick: int) -> Claimed:
        stale = self.ledger.stale()
        return stale[pick % len(stale)]
