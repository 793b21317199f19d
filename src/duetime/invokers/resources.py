"""Resources of tasks: a worker opens each one at its first use and closes them in reverse order when it
stops."""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from logging import getLogger
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

from duetime.errors import InvalidInput
from duetime.invokers.threads import Threads

# The annotations of a function, as far as they can be resolved. One that cannot be resolved is left out;
# that is not an error.


_NAME = re.compile(r"[^\W\d]\w*")


def annotations_of(function: Callable[..., Any], scope: Mapping[str, Any]) -> dict[str, Any]:
    """By parameter. Annotations that are text are looked up in the function's module and in `scope`."""
    plain = unwrapped(function)
    try:
        return get_type_hints(plain, localns=dict(scope) or None, include_extras=True)
    except Exception:
        # One unknown name makes the whole call fail: resolve them one by one.
        known = getattr(plain, "__annotations__", {})
        found = {name: _resolved(plain, written, scope) for name, written in known.items()}
        return {name: annotation for name, annotation in found.items() if annotation is not None}


def _resolved(function: Callable[..., Any], written: Any, scope: Mapping[str, Any]) -> Any:
    alone = SimpleNamespace(__annotations__={"wanted": written})
    try:
        return get_type_hints(alone, getattr(function, "__globals__", {}), dict(scope), include_extras=True)[
            "wanted"
        ]
    except Exception:
        return None


def defining_scope(function: Callable[..., Any]) -> dict[str, Any]:
    """The local names that its annotations use from the function that defines it. Call it while that function
    still runs."""
    plain = unwrapped(function)
    if "<locals>" not in getattr(plain, "__qualname__", ""):
        return {}
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals is not getattr(plain, "__globals__", None):
        frame = frame.f_back
    written = " ".join(
        text for text in getattr(plain, "__annotations__", {}).values() if isinstance(text, str)
    )
    return {name: frame.f_locals[name] for name in _NAME.findall(written) if name in frame.f_locals}


def unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, without decorators and partial arguments."""
    while True:
        if isinstance(function, partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            return function


CLOSE_TIMEOUT = 10.0  # seconds, for each resource
Resource = Callable[..., Any]
_USES = "__duetime_uses__"
_NOTHING = object()
_logger = getLogger("duetime")


@dataclass(frozen=True, slots=True)
class Use:
    """Marks a parameter that the worker fills in: `db: Annotated[Database, dt.Use(database)]`."""

    resource: Resource

    def __post_init__(self) -> None:
        if not callable(self.resource):
            raise InvalidInput(
                "use", f"{self.resource!r} is not a function that opens a resource: write dt.Use(function)"
            )


INJECTED: Any = object()  # the default of such a parameter: type checkers then do not ask callers for it


def uses_among(annotations: Mapping[str, Any]) -> dict[str, Resource]:
    """The parameters that use a resource, and the resource of each."""
    marks = {
        name: [part for part in _marks(annotation) if isinstance(part, Use)]
        for name, annotation in annotations.items()
    }
    return {name: found[0].resource for name, found in marks.items() if found}


def _marks(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation)[1:] if hasattr(annotation, "__metadata__") else ()


def check_resource(function: Resource) -> Resource:
    """Rejects a resource that a worker cannot open: every parameter must be a resource itself or have a
    default."""
    uses = uses_among(annotations_of(function, defining_scope(function)))
    for parameter in inspect.signature(function).parameters.values():
        if parameter.default is parameter.empty and parameter.name not in uses:
            raise InvalidInput(
                "resource",
                f"{_name(function)} needs {parameter.name!r}: annotate it with Use(...), or set a default",
            )
    # Kept on the function, because local names cannot be looked up later.
    setattr(function, _USES, uses)
    return function


def uses_of(resource: Resource) -> dict[str, Resource]:
    noted: dict[str, Resource] | None = getattr(resource, _USES, None)
    return uses_among(annotations_of(resource, {})) if noted is None else noted


def _refuse_circle(resource: Resource, within: tuple[Resource, ...] = ()) -> None:
    if resource in within:
        raise InvalidInput(
            "resource",
            f"{' needs '.join(_name(part) for part in (*within, resource))}: this is a circle",
        )
    for needed in uses_of(resource).values():
        _refuse_circle(needed, (*within, resource))


class ResourceBox:
    """The open resources of one running node."""

    def __init__(self, stand_ins: Mapping[Resource, Any] | None = None) -> None:
        self._open: dict[Resource, asyncio.Task[Any]] = {}
        self._closers: list[tuple[Resource, Any]] = []
        self._stand_ins = dict(stand_ins or {})  # for tests: values to use instead of opening the resource
        self._threads = Threads("duetime-resource")
        self._at_close: list[Callable[[], Awaitable[None]]] = []

    async def fill(self, uses: Mapping[str, Resource]) -> dict[str, Any]:
        """The values of these parameters."""
        return {name: await self.get(resource) for name, resource in uses.items()}

    async def get(self, resource: Resource) -> Any:
        """Its value. The first call opens it, and calls in the meantime wait for that. An opening that failed
        is tried again."""
        if resource in self._stand_ins:
            return self._stand_ins[resource]
        opening = self._open.get(resource)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            _refuse_circle(resource)
            opening = asyncio.create_task(self._begin(resource), name=f"duetime-open-{_name(resource)}")
            self._open[resource] = opening
        # An attempt that times out must not cancel the opening for the others.
        return await asyncio.shield(opening)

    def at_close(self, call: Callable[[], Awaitable[None]]) -> None:
        """Register something else to close together with the node."""
        self._at_close.append(call)

    async def close(self) -> None:
        """Last opened, first closed. One that fails or hangs is logged and skipped."""
        for call in self._at_close:
            await call()
        openings, self._open = list(self._open.values()), {}
        for opening in openings:
            opening.cancel()
        await asyncio.gather(*openings, return_exceptions=True)
        while self._closers:
            resource, generator = self._closers.pop()
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await self._end(resource, generator)
            except Exception as problem:
                _logger.error("closing the resource %s failed: %r", _name(resource), problem)
        self._threads.close()

    async def _begin(self, resource: Resource) -> Any:
        needs = await self.fill(uses_of(resource))
        if inspect.isasyncgenfunction(resource) or inspect.isgeneratorfunction(resource):
            generator = resource(**needs)
            value = await self._step(generator)
            if value is _NOTHING:
                raise InvalidInput("resource", f"{_name(resource)} yielded nothing")
            self._closers.append((resource, generator))
            return value
        if inspect.iscoroutinefunction(resource):
            return await resource(**needs)
        return await self._threads.run(lambda: resource(**needs))

    async def _end(self, resource: Resource, generator: Any) -> None:
        if await self._step(generator) is not _NOTHING:
            raise InvalidInput("resource", f"{_name(resource)} yielded twice")

    async def _step(self, generator: Any) -> Any:
        """Async generators run on the event loop, plain ones in a thread, because opening may take long."""
        if inspect.isasyncgen(generator):
            return await anext(generator, _NOTHING)
        return await self._threads.run(lambda: next(generator, _NOTHING))


def _name(resource: Resource) -> str:
    return getattr(resource, "__qualname__", repr(resource))
