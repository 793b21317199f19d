"""What the engine will have to do next, read from the store: the stretches in between are not lived through."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from duetime.engine.claimer import PREFETCH
from duetime.engine.loop import Loop
from duetime.model.ids import SEGMENTS
from duetime.model.instant import Micros
from duetime.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY
from duetime.model.lease import NodeId
from duetime.model.limit import Bound
from duetime.store import ClaimRequest, Lane
from duetime.testing.kit.plain import in_one_step

if TYPE_CHECKING:
    from duetime.testing.kit.recorder import RecordingStore

ALL_SEGMENTS = tuple(range(SEGMENTS))
PRIORITIES = range(LOWEST_PRIORITY, HIGHEST_PRIORITY + 1)
END_OF_TIME: Micros = 1 << 62
NOBODY = NodeId(0)


class EngineHorizon:
    """The engine looks around several times a second, which over a year is a lot. Hints of the memory store are never lost, so that
    looking finds nothing new except when a job falls due or a schedule comes within the planner's sight."""

    def __init__(self, store: RecordingStore) -> None:
        self._store = store
        self.lookahead: Micros | None = None  # None: nobody plans
        self.targets: tuple[str, ...] = ()
        self.bounds: tuple[Bound, ...] = ()

    def idle(self, timer: asyncio.TimerHandle) -> bool:
        owner = getattr(timer._callback, "__self__", None)  # type: ignore[attr-defined]  # private, pinned by a test
        return isinstance(owner, Loop) and owner._failed_turns == 0

    def next(self) -> tuple[Micros | None, bool]:
        now = self._store.now()
        # From half a prefetch on, the claimer sees the job and has it start at its instant.
        starts = [*self._jobs(PREFETCH // 2), *self._schedules()]
        ahead = [start for start in starts if start > now]
        return min(ahead, default=None), len(ahead) < len(starts)

    def _jobs(self, before: Micros) -> Sequence[Micros]:
        lanes = tuple(Lane(queue, priority, 0) for queue in self._store.queue_names() for priority in PRIORITIES)
        request = ClaimRequest(NOBODY, lanes, self.targets, room=1, prefetch=0, bounds=self.bounds)
        due_at = in_one_step(self._store.next_due(request))
        return () if due_at is None else (due_at - before,)

    def _schedules(self) -> Sequence[Micros]:
        if self.lookahead is None:
            return ()
        found = in_one_step(self._store.due_schedules(ALL_SEGMENTS, END_OF_TIME, 1))
        return [schedule.next_fire_time - self.lookahead for schedule in found if schedule.next_fire_time is not None]
