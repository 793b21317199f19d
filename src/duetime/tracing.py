"""The tracer contract: what the parts of Duetime ask of a tracer. Without one they ask nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from duetime.invoker import Handler
from duetime.model.instant import Micros
from duetime.model.job import JobDraft
from duetime.model.trace import SpanId


class Span(Protocol):
    """Something that takes time: a request, an attempt, a call."""

    @property
    def id(self) -> SpanId: ...

    def note(self, **attributes: Any) -> None:
        """Attributes; `__` in a name stands for a dot."""
        ...

    def rename(self, name: str) -> None: ...

    def fail(self, kind: str, reason: str = "") -> None: ...

    def call(self, name: str, attributes: Mapping[str, Any]) -> AbstractContextManager[Span]:
        """A call of another program, which gets the id of the new span."""
        ...

    def publish(self, name: str, attributes: Mapping[str, Any]) -> AbstractContextManager[Span]: ...


class Tracer(Protocol):
    def request(
        self, name: str, traceparent: str | None, attributes: Mapping[str, Any]
    ) -> AbstractContextManager[Span]:
        """A request that this process answers."""
        ...

    def send(self, drafts: Sequence[JobDraft], now: Micros) -> AbstractContextManager[Sequence[JobDraft]]:
        """Jobs that are submitted: the drafts with what their attempts need to know."""
        ...

    def handlers(self, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
        """These handlers, each attempt with a span."""
        ...

    async def flush(self) -> None:
        """Send what is left, if that does not take too long."""
        ...


class TracerSlot:
    """Where the parts of an app look for its tracer."""

    __slots__ = ("tracer",)

    def __init__(self) -> None:
        self.tracer: Tracer | None = None


class _Finder:
    find: Callable[[], Span | None] = staticmethod(lambda: None)


def current_span() -> Span | None:
    """The innermost span of Duetime that this code runs in."""
    return _Finder.find()


def find_spans_by(find: Callable[[], Span | None]) -> None:
    """For the library that knows which code runs in which span."""
    _Finder.find = staticmethod(find)
