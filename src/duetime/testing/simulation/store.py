"""The simulated store: the memory store, with every change of its jobs reported to the invariants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from uuid import UUID

from duetime.model.hint import lane_hints
from duetime.model.ids import is_fire_id
from duetime.model.instant import Micros
from duetime.model.job import JobDraft, State
from duetime.model.lease import NodeId
from duetime.model.settle import Settlement
from duetime.stores.memory.jobs import MemoryJobs
from duetime.stores.memory.nodes import MemoryNodes
from duetime.stores.memory.row import Row
from duetime.stores.memory.schedules import MemorySchedules
from duetime.stores.memory.settle import MemorySettle
from duetime.stores.memory.store import MemoryStore
from duetime.testing.simulation.effects import Write
from duetime.testing.simulation.invariants.jobs import JobInvariants


class WatchedJobs(MemoryJobs):
    def __init__(self, watcher: JobInvariants) -> None:
        super().__init__()
        self._watcher = watcher
        self._finishing: Row | None = None

    def add(self, draft: JobDraft, now: Micros, waits_for: str | None = None) -> UUID:
        known = self.stored(draft.id)
        stored = super().add(draft, now, waits_for)
        if not known and draft.id in self.live:
            self._watcher.added(self.live[draft.id])
        return stored

    def add_skipped(self, draft: JobDraft, reason: str, now: Micros) -> None:
        known = self.stored(draft.id)
        super().add_skipped(draft, reason, now)
        if not known:
            self._watcher.skipped(self.past[draft.id])

    def start(self, row: Row, node: NodeId, now: Micros, permit: UUID | None) -> None:
        super().start(row, node, now, permit)
        self._watcher.claimed(row)

    def put_back(self, row: Row, decision: Settlement) -> None:
        super().put_back(row, decision)
        self._watcher.put_back(row, decision)

    def finish(self, row: Row, state: State, finished_at: Micros, error: str | None) -> None:
        self._finishing = row
        super().finish(row, state, finished_at, error)
        self._finishing = None
        self._watcher.finished(row, state)

    def remove(self, row: Row) -> None:
        super().remove(row)
        if row is not self._finishing:
            self._watcher.withdrawn(row)

    def reschedule(self, row: Row, due_at: Micros, priority: int) -> None:
        super().reschedule(row, due_at, priority)
        self._watcher.rescheduled(row)

    def give_up_key(self, row: Row) -> None:
        self._watcher.gave_up_key(row)
        super().give_up_key(row)

    def prune(self, before: Micros, targets: Mapping[str, Micros]) -> int:
        known = list(self.past)
        count = super().prune(before, targets)
        self._watcher.pruned([job_id for job_id in known if job_id not in self.past])
        return count


class SimulatedStore(MemoryStore):
    """The real memory store; its jobs are watched, and the simulation may look inside."""

    def __init__(self, clock: Callable[[], Micros], watcher: JobInvariants) -> None:
        super().__init__(clock)
        self._jobs = WatchedJobs(watcher)
        self.effects: Counter[UUID] = Counter()  # writes of tasks in transactions that were committed, by job
        self._nodes = MemoryNodes(self._jobs)
        self._schedules = MemorySchedules(self._jobs)

    @property
    def jobs(self) -> MemoryJobs:
        return self._jobs

    async def commit(self, settlement: Settlement, writes: tuple[Write, ...]) -> bool:
        with self._lock:
            if self._jobs.running(settlement.id, settlement.attempt) is None:
                return False
            ending = MemorySettle(self._jobs, None, self._clock())
            ending.write(settlement)
            self.effects[settlement.id] += len(writes)
        self._send(lane_hints(waiting.draft for waiting in ending.claimable))
        return True

    def ahead(self, schedule_id: UUID, now: Micros) -> list[JobDraft]:
        """Planned fires of this schedule that have not started and lie ahead."""
        rows = self._jobs.of_schedule(schedule_id)
        return [
            row.draft
            for row in rows
            if row.waits_unstarted() and row.draft.fire_time > now and is_fire_id(row.draft.id)
        ]
