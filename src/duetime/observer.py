"""The observer contract: a function told of events. It must be quick, and what it raises is swallowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from duetime.model.events import Event

Observer = Callable[[Event], None]


class Observers:
    """Tells each observer; one that fails does not disturb the others or the work."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = list(observers)

    def add(self, observer: Observer) -> None:
        self._observers.append(observer)

    def __call__(self, event: Event) -> None:
        for observer in self._observers:
            try:
                observer(event)
            except Exception:  # noqa: S112  an observer's fault is its own: work goes on
                continue
