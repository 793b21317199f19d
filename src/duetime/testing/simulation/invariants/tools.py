"""What task authors rely on: limits, checkpoints, once-marks and transactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from duetime.model.codec import decode
from duetime.model.instant import Micros
from duetime.model.job import JobDraft
from duetime.model.limit import Queue
from duetime.model.settle import Settlement
from duetime.store import AttemptUpdate
from duetime.testing.simulation.invariants.verdict import Invariant, Verdict
from duetime.testing.simulation.recorder import Recorder
from duetime.testing.simulation.tasks import KINDS


class ToolInvariants:
    def __init__(self, verdict: Verdict, recorder: Recorder, runs_under: Callable[[UUID, int], bool]) -> None:
        self._verdict = verdict
        self._events = recorder.events
        self._runs_under = runs_under
        self._running: dict[str, dict[UUID, UUID | None]] = {}  # by limit key: running jobs and their permits
        self._at_work: dict[
            str, dict[UUID, int]
        ] = {}  # by limit key: jobs with a running task, and the attempt
        self._starts: dict[str, list[Micros]] = {}  # by limit key with a rate
        self._paused: set[str] = set()
        self._stored: dict[UUID, int] = {}  # the last checkpoint of each job
        self._promised: dict[UUID, int] = {}  # the last checkpoint that a task knows to be saved
        self._marks: dict[tuple[UUID, str], UUID] = {}
        self._once: set[tuple[UUID, str]] = set()
        self._committed: set[UUID] = set()
        recorder.on_end = self.task_ended
        recorder.on_checkpoint, recorder.on_resume, recorder.on_once = (
            self.promised,
            self.resumed,
            self.did_once,
        )

    # -- limits ----------------------------------------------------------------------------------------------
    def claimed(self, draft: JobDraft, permit: UUID | None, now: Micros) -> None:
        self._verdict.require(
            draft.queue not in self._paused,
            Invariant.LIMITS,
            f"job {draft.id} of the paused queue {draft.queue!r} was claimed",
        )
        limit = KINDS[draft.target].limit
        if draft.limit_key is None or limit is None:
            return
        running = self._running.setdefault(draft.limit_key, {})
        self._events["two jobs under one permit"] += permit in running.values()
        running[draft.id] = permit
        if limit.max_running is not None:
            permits = len(set(running.values()))
            self._verdict.require(
                permits <= limit.max_running,
                Invariant.LIMITS,
                f"{permits} permits of limit key {draft.limit_key!r} are in use",
            )
        if limit.parsed_rate is not None:
            starts = self._starts.setdefault(draft.limit_key, [])
            starts.append(now)
            self._check_rate(draft.limit_key, starts, limit.parsed_rate.count, limit.parsed_rate.period)

    def task_started(self, draft: JobDraft, attempt: int) -> None:
        """The running tasks that still own their job are within the limit, over all nodes."""
        limit = KINDS[draft.target].limit
        if draft.limit_key is None or limit is None or limit.max_running is None:
            return
        at_work = {
            job_id: number
            for job_id, number in self._at_work.get(draft.limit_key, {}).items()
            if self._runs_under(job_id, number)
        }
        self._at_work[draft.limit_key] = at_work
        if self._runs_under(draft.id, attempt):
            at_work[draft.id] = attempt
        self._verdict.require(
            len(at_work) <= limit.max_running,
            Invariant.LIMITS,
            f"{len(at_work)} jobs of limit key {draft.limit_key!r} run at the same time",
        )

    def task_ended(self, job_id: UUID, attempt: int) -> None:
        for at_work in self._at_work.values():
            if at_work.get(job_id) == attempt:
                del at_work[job_id]

    def _check_rate(self, key: str, starts: list[Micros], count: int, period: Micros) -> None:
        """A token bucket of size `count`: any period has at most its content and the tokens added
        meanwhile."""
        for number, first in enumerate(reversed(starts), start=1):
            earned = count + (starts[-1] - first) * count // period + 1
            self._verdict.require(
                number <= earned,
                Invariant.LIMITS,
                f"{number} starts of limit key {key!r} in {starts[-1] - first} microseconds",
            )

    def released(self, draft: JobDraft) -> None:
        if draft.limit_key is not None:
            self._running.get(draft.limit_key, {}).pop(draft.id, None)

    def busy(self, key: str | None) -> bool:
        return key is not None and bool(self._running.get(key))

    def queue_changed(self, queue: Queue) -> None:
        (self._paused.add if queue.paused else self._paused.discard)(queue.name)

    # -- checkpoints -----------------------------------------------------------------------------------------
    def saved(self, updates: Sequence[AttemptUpdate], refused: Sequence[UUID]) -> None:
        for update in updates:
            current = self._runs_under(update.id, update.attempt)
            answer = "refused" if update.id in refused else "accepted"
            message = f"attempt {update.attempt} of job {update.id} saved its progress and was {answer}"
            self._verdict.require(current is (update.id not in refused), Invariant.FENCING, message)
            if update.checkpoint is not None and update.id not in refused:
                step, before = int(decode(update.checkpoint)), self.checkpoint_of(update.id)
                self._verdict.require(
                    step >= before,
                    Invariant.FENCING,
                    f"the checkpoint of job {update.id} went back from {before} to {step}",
                )
                self._stored[update.id] = step

    def checkpoint_of(self, job_id: UUID) -> int:
        return self._stored.get(job_id, 0)

    def promised(self, job_id: UUID, step: int) -> None:
        self._verdict.require(
            self.checkpoint_of(job_id) >= step,
            Invariant.DURABILITY,
            f"checkpoint {step} of job {job_id} is not in the store",
        )
        self._promised[job_id] = max(step, self._promised.get(job_id, 0))

    def resumed(self, job_id: UUID, step: int) -> None:
        kept = self._promised.get(job_id, 0)
        self._verdict.require(
            step >= kept,
            Invariant.DURABILITY,
            f"job {job_id} continues from {step}, although checkpoint {kept} was saved",
        )

    # -- marks and effects -----------------------------------------------------------------------------------
    def marked(self, job_id: UUID, attempt: int, key: str, nonce: UUID) -> None:
        current = self._runs_under(job_id, attempt)
        self._verdict.require(
            current,
            Invariant.FENCING,
            f"attempt {attempt} of job {job_id} took mark {key!r}, but does not own the job",
        )
        first = self._marks.setdefault((job_id, key), nonce)
        self._verdict.require(
            first == nonce, Invariant.SINGLE_EFFECTS, f"mark {key!r} of job {job_id} was taken twice"
        )

    def did_once(self, job_id: UUID, key: str) -> None:
        self._verdict.require(
            (job_id, key) not in self._once, Invariant.SINGLE_EFFECTS, f"job {job_id} did {key!r} twice"
        )
        self._once.add((job_id, key))

    def committed(self, settlement: Settlement) -> None:
        self._verdict.require(
            settlement.id not in self._committed,
            Invariant.SINGLE_EFFECTS,
            f"the writes of job {settlement.id} were committed twice",
        )
        self._committed.add(settlement.id)
