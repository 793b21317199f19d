"""When the engine has something to do next, read from the store. Virtual time skips the polling in
between."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from duetime.engine.fetch.claimer import PREFETCH
from duetime.engine.node.loop import Loop
from duetime.model.ids import SEGMENTS
from duetime.model.instant import Micros
from duetime.model.lease import NodeId
from duetime.store import ClaimRequest, DueSchedules
from duetime.testing.kit.recording_store import RecordingStore
from duetime.testing.one_step import run_in_one_step

ALL_SEGMENTS = tuple(range(SEGMENTS))
END_OF_TIME: Micros = 1 << 62
NO_NODE = NodeId(0)


class NextEngineEvent:
    """The engine polls several times a second, which adds up over a virtual year. The memory store never
    loses a hint, so polling finds something new only when a job becomes due or a schedule comes within the
    planner's lookahead."""

    def __init__(self, store: RecordingStore) -> None:
        self._store = store
        self.lookahead: Micros | None = None  # None: the node does not plan
        self.targets: tuple[str, ...] = ()

    def is_polling(self, timer: asyncio.TimerHandle) -> bool:
        owner = getattr(timer._callback, "__self__", None)  # type: ignore[attr-defined]  # private, pinned by a test
        return isinstance(owner, Loop) and owner._failed_turns == 0

    def next(self) -> tuple[Micros | None, bool]:
        now = self._store.now()
        # Half a prefetch ahead the claimer sees the job and starts it exactly when it is due.
        starts = [*self._jobs(PREFETCH // 2), *self._schedules()]
        ahead = [start for start in starts if start > now]
        return min(ahead, default=None), len(ahead) < len(starts)

    def _jobs(self, before: Micros) -> Sequence[Micros]:
        request = ClaimRequest(NO_NODE, self._store.lanes_with_jobs(), self.targets, room=1, prefetch=0)
        due_at = run_in_one_step(self._store.due_jobs(request)).next_at
        return () if due_at is None else (due_at - before,)

    def _schedules(self) -> Sequence[Micros]:
        if self.lookahead is None:
            return ()
        found = run_in_one_step(self._store.list_schedules(DueSchedules(ALL_SEGMENTS, END_OF_TIME), 1))
        return [
            schedule.next_fire_time - self.lookahead
            for schedule in found
            if schedule.next_fire_time is not None
        ]
