"""Hints about jobs and schedules, and the listeners they are sent to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock

from duetime.model.hint import Hint, JobHint, ScheduleHint
from duetime.model.schedule import Schedule

ALL_LANES = JobHint("*", 0, 0)
Listener = Callable[[Hint], None]


class MemoryNotifier:
    def __init__(self) -> None:
        self._lock = Lock()
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        with self._lock:
            self._listeners = [*self._listeners, listener]
        return lambda: self._unsubscribe(listener)

    def send(self, hints: Iterable[Hint]) -> None:
        """Never under the store's lock: a listener may call the store."""
        for hint in hints:
            for listener in self._listeners:
                listener(hint)

    def _unsubscribe(self, listener: Listener) -> None:
        with self._lock:
            if listener in self._listeners:
                at = self._listeners.index(listener)
                self._listeners = self._listeners[:at] + self._listeners[at + 1 :]


def cursor_hints(schedule: Schedule | None) -> list[Hint]:
    return (
        [] if schedule is None or schedule.next_fire_time is None else [ScheduleHint(schedule.next_fire_time)]
    )
