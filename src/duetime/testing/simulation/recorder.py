"""Records a run from outside all processes: starts and ends of tasks, the trace and its hash, and the
coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID
from zlib import crc32

from duetime.model.instant import SECOND, Micros
from duetime.testing.processes import Process, current_process


class Start(NamedTuple):
    at: Micros
    attempt: int
    process: str


class Recorder:
    def __init__(self, now: Callable[[], Micros], began: Micros, keep_trace: bool) -> None:
        self._now = now
        self._began = began
        self._keep_trace = keep_trace
        self._hash = 0
        self.trace: list[str] = []
        self.starts: dict[UUID, list[Start]] = {}
        self.ends: Counter[str] = Counter()
        self.acknowledged: dict[UUID, Micros] = {}
        self.faults: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self.failpoints: Counter[str] = Counter()
        self.transitions: Counter[tuple[str, str]] = Counter()
        self.on_checkpoint: Callable[[UUID, int], None] = lambda job_id, step: None
        self.on_resume: Callable[[UUID, int], None] = lambda job_id, step: None
        self.on_once: Callable[[UUID, str], None] = lambda job_id, key: None
        self.on_end: Callable[[UUID, int], None] = lambda job_id, attempt: None
        self.on_start: Callable[[UUID, int, Process], None] = lambda job_id, attempt, process: None

    @property
    def trace_hash(self) -> str:
        return f"{self._hash:08x}"

    def note(self, line: str) -> None:
        """Add a line to the trace. Two runs of a seed must have the same hash of all lines."""
        stamped = f"{(self._now() - self._began) / SECOND:10.6f} {line}"
        self._hash = crc32(stamped.encode(), self._hash)
        if self._keep_trace:
            self.trace.append(stamped)

    def fault(self, kind: str, victim: str = "") -> None:
        self.faults[kind] += 1
        self.note(f"FAULT {kind} {victim}")

    def starts_of(self, job_id: UUID) -> int:
        return len(self.starts.get(job_id, ()))

    def started(self, job_id: UUID, attempt: int) -> None:
        process = current_process()
        if process is None or process.dead:
            return  # cleanup after the end of the process
        self.note(f"{process.name} starts {job_id} attempt {attempt}")
        self.on_start(job_id, attempt, process)
        self.starts.setdefault(job_id, []).append(Start(self._now(), attempt, process.name))

    def ended(self, job_id: UUID, attempt: int, ending: str) -> None:
        process = current_process()
        if process is None or process.dead:
            return
        self.ends[ending] += 1
        self.on_end(job_id, attempt)
        self.note(f"{process.name} ends {job_id} attempt {attempt}: {ending}")

    def resumed(self, job_id: UUID, step: int) -> None:
        if self._is_alive():
            self.note(f"{job_id} goes on from {step}")
            self.on_resume(job_id, step)

    def checkpointed(self, job_id: UUID, step: int) -> None:
        """The task knows that this checkpoint is saved."""
        if self._is_alive():
            self.on_checkpoint(job_id, step)

    def did_once(self, job_id: UUID, key: str) -> None:
        if self._is_alive():
            self.note(f"{job_id} does {key}")
            self.on_once(job_id, key)

    def _is_alive(self) -> bool:
        process = current_process()
        return process is not None and not process.dead

    def acknowledge(self, job_id: UUID) -> None:
        self.acknowledged[job_id] = self._now()
        self.note(f"acknowledged {job_id}")
