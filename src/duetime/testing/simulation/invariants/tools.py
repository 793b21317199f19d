"""What task authors were promised: limits hold (I19), the late keep nothing (I6), what is kept stays (I1), effects are single (I17)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from duetime.model.codec import decode
from duetime.model.instant import Micros
from duetime.model.job import JobDraft
from duetime.model.lease import NodeId
from duetime.model.limit import Queue
from duetime.model.settle import Settlement
from duetime.store import Note
from duetime.testing.simulation.invariants.verdict import Verdict
from duetime.testing.simulation.recorder import Recorder
from duetime.testing.simulation.tasks import KINDS


class ToolInvariants:
    def __init__(self, verdict: Verdict, recorder: Recorder, runs_under: Callable[[UUID, int], bool]) -> None:
        self._verdict = verdict
        self._events = recorder.events
        self._runs_under = runs_under
        self._running: dict[str, dict[UUID, NodeId]] = {}  # by gate: who has them
        self._at_work: dict[str, dict[UUID, int]] = {}  # by gate: jobs whose task was seen to start and not to end, with the attempt
        self._starts: dict[str, list[Micros]] = {}  # by gate with a rate
        self._paused: set[str] = set()
        self._stored: dict[UUID, int] = {}  # the last checkpoint of each job
        self._promised: dict[UUID, int] = {}  # the last one a task was told is kept
        self._marks: dict[tuple[UUID, str], UUID] = {}
        self._once: set[tuple[UUID, str]] = set()
        self._committed: set[UUID] = set()
        recorder.on_end = self.task_ended
        recorder.on_checkpoint, recorder.on_resume, recorder.on_once = self.promised, self.resumed, self.did_once

    # -- limits -------------------------------------------------------------------------------------------------------
    def claimed(self, draft: JobDraft, node: NodeId, now: Micros) -> None:
        self._verdict.require(draft.queue not in self._paused, "I19", f"job {draft.id} of the paused queue {draft.queue!r} was claimed")
        limit = KINDS[draft.target].limit
        if draft.gate is None or limit is None:
            return
        running = self._running.setdefault(draft.gate, {})
        running[draft.id] = node
        if limit.most is not None:
            over, shared = len(running) > limit.most, len(set(running.values())) > 1
            within = not (over and shared)
            self._events["claimed ahead"] += over
            self._verdict.require(within, "I19", f"{len(running)} jobs of gate {draft.gate!r} are held by several nodes")
        if limit.parsed_rate is not None:
            starts = self._starts.setdefault(draft.gate, [])
            starts.append(now)
            self._check_rate(draft.gate, starts, limit.parsed_rate.count, limit.parsed_rate.period)

    def task_started(self, draft: JobDraft, attempt: int) -> None:
        """Wherever it starts: those at work who still have their job are no more than the limit."""
        limit = KINDS[draft.target].limit
        if draft.gate is None or limit is None or limit.most is None:
            return
        at_work = {job_id: number for job_id, number in self._at_work.get(draft.gate, {}).items() if self._runs_under(job_id, number)}
        self._at_work[draft.gate] = at_work
        if self._runs_under(draft.id, attempt):
            at_work[draft.id] = attempt
        self._verdict.require(len(at_work) <= limit.most, "I19", f"{len(at_work)} jobs of gate {draft.gate!r} run at once")

    def task_ended(self, job_id: UUID, attempt: int) -> None:
        for at_work in self._at_work.values():
            if at_work.get(job_id) == attempt:
                del at_work[job_id]

    def _check_rate(self, gate: str, starts: list[Micros], count: int, period: Micros) -> None:
        """A bucket that holds `count` and fills evenly: over any time, no more than it held and what came in meanwhile."""
        for number, first in enumerate(reversed(starts), start=1):
            earned = count + (starts[-1] - first) * count // period + 1
            self._verdict.require(number <= earned, "I19", f"{number} starts of gate {gate!r} in {starts[-1] - first} microseconds")

    def released(self, draft: JobDraft) -> None:
        if draft.gate is not None:
            self._running.get(draft.gate, {}).pop(draft.id, None)

    def busy(self, gate: str | None) -> bool:
        return gate is not None and bool(self._running.get(gate))

    def said(self, queue: Queue) -> None:
        (self._paused.add if queue.paused else self._paused.discard)(queue.name)

    # -- checkpoints --------------------------------------------------------------------------------------------------
    def saved(self, notes: Sequence[Note], refused: Sequence[UUID]) -> None:
        for note in notes:
            current = self._runs_under(note.id, note.attempt)
            said = f"attempt {note.attempt} of job {note.id} saved a note, and was {'refused' if note.id in refused else 'accepted'}"
            self._verdict.require(current is (note.id not in refused), "I6", said)
            if note.checkpoint is not None and note.id not in refused:
                step, before = int(decode(note.checkpoint)), self.checkpoint_of(note.id)
                self._verdict.require(step >= before, "I6", f"the checkpoint of job {note.id} went back from {before} to {step}")
                self._stored[note.id] = step

    def checkpoint_of(self, job_id: UUID) -> int:
        return self._stored.get(job_id, 0)

    def promised(self, job_id: UUID, step: int) -> None:
        self._verdict.require(self.checkpoint_of(job_id) >= step, "I1", f"checkpoint {step} of job {job_id} is not in the store")
        self._promised[job_id] = max(step, self._promised.get(job_id, 0))

    def resumed(self, job_id: UUID, step: int) -> None:
        kept = self._promised.get(job_id, 0)
        self._verdict.require(step >= kept, "I1", f"job {job_id} goes on from {step}, although checkpoint {kept} was kept")

    # -- marks and effects --------------------------------------------------------------------------------------------
    def marked(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> None:
        current = self._runs_under(job_id, attempt)
        self._verdict.require(current, "I6", f"attempt {attempt} of job {job_id} took mark {key!r}, but does not have the job")
        first = self._marks.setdefault((job_id, key), nonce)
        self._verdict.require(first == nonce, "I17", f"mark {key!r} of job {job_id} was taken twice")

    def did_once(self, job_id: UUID, key: str) -> None:
        self._verdict.require((job_id, key) not in self._once, "I17", f"job {job_id} did {key!r} twice")
        self._once.add((job_id, key))

    def committed(self, settlement: Settlement) -> None:
        self._verdict.require(settlement.id not in self._committed, "I17", f"the writes of job {settlement.id} were committed twice")
        self._committed.add(settlement.id)
