"""The observer contract: a function that receives events. It must be quick. Its errors are ignored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from duetime.model.events import Event

Observer = Callable[[Event], None]


class Observers:
    """Passes each event to all observers. An observer that fails does not affect the others or the work."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = list(observers)

    def add(self, observer: Observer) -> None:
        self._observers.append(observer)

    def __call__(self, event: Event) -> None:
        for observer in self._observers:
            try:
                observer(event)
            except Exception:  # noqa: S112  an observer's error must not stop the work
                continue
