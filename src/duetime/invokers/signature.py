"""The parameters of a task: names, types and resources. A wrong call fails where it is made, not where it
runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from duetime.errors import InvalidInput, InvalidPayload, UnknownOption
from duetime.invokers.resources import annotations_of, defining_scope, uses_among
from duetime.model.codec import REQUIRED, Argument, Shape, decode, encode_arguments
from duetime.model.unchanged import are_plain, find_change

CONTEXT_NAMES = ("ctx", "context")


class Signature:
    """The parameters of one task's function. Types are compiled at first use, because they may be defined
    after the function."""

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        parameters = list(inspect.signature(function).parameters.values())
        self.task = task
        self._function = function
        self._scope = defining_scope(function)
        self.uses = uses_among(annotations_of(function, self._scope))
        self.wants_context = bool(parameters) and _is_context(parameters[0])
        own = [
            parameter
            for parameter in parameters[int(self.wants_context) :]
            if parameter.name not in self.uses
        ]
        if any(parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL) for parameter in own):
            raise InvalidInput(
                "task",
                f"{task}: every parameter needs a name: remove *args and positional-only parameters",
            )
        self.open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in own)
        self._defaults = {
            parameter.name: parameter.default
            for parameter in own
            if parameter.kind is not parameter.VAR_KEYWORD
        }
        self.names = frozenset(self._defaults)
        self._verify: Callable[[bytes], None] | None = self._verify_first
        self.required = frozenset(
            name for name, default in self._defaults.items() if default is inspect.Parameter.empty
        )

    @cached_property
    def shape(self) -> Shape:
        found = annotations_of(self._function, self._scope)
        arguments = {
            name: _argument(found.get(name, Any), default) for name, default in self._defaults.items()
        }
        return Shape(arguments, self.open_ended, self._explain)

    @property
    def described(self) -> list[dict[str, Any]]:
        """Name, type and whether it is required, of each argument."""
        written = inspect.signature(self._function).parameters
        return [
            {"name": name, "type": _type_text(written[name].annotation), "required": name in self.required}
            for name in self._defaults
        ]

    def check(self, payload: Any, options: Iterable[str] = ()) -> None:
        """Rejects a payload that does not fit the function. `options` are other names the caller may have
        meant."""
        if type(payload) is dict and payload.keys() == self.names:
            return  # the common case, quick for bulk submission
        if not isinstance(payload, dict):
            raise InvalidPayload(
                "payload",
                f"task {self.task!r} takes named arguments: give an object, not {type(payload).__name__}",
            )
        if missing := self.required - payload.keys():
            stray = sorted(map(str, payload.keys() - self.names))
            other = f"; {stray[0]!r} is not an argument of it" if stray and not self.open_ended else ""
            raise InvalidPayload(min(missing), f"is required by task {self.task!r}{other}")
        if not self.open_ended and (unknown := payload.keys() - self.names):
            name = min(unknown, key=str)
            close = get_close_matches(str(name), sorted({*self.names, *options}), 1)
            remedy = (
                f"did you mean {close[0]!r}?"
                if close
                else f"it takes {', '.join(sorted(self.names)) or 'no arguments'}"
            )
            raise UnknownOption(str(name), f"task {self.task!r} has no such argument: {remedy}")
        if self.open_ended and not all(isinstance(name, str) for name in payload):
            raise InvalidPayload("payload", "has keys that are not text: they are the names of arguments")

    def encode(self, arguments: Any) -> bytes:
        """The payload to store. When the job runs, it is certain to be readable, and to be what the caller
        gave."""
        if type(arguments) is not dict or arguments.keys() != self.names:
            self.check(arguments)
        try:
            data = encode_arguments(arguments)
        except InvalidPayload:
            for name, value in arguments.items():
                encode_arguments(value, str(name))
            raise
        if not are_plain(arguments.values()):
            self._refuse_change(arguments, data)
        elif self._verify is not None:
            self._verify(data)
        return data

    def _refuse_change(self, arguments: dict[str, Any], data: bytes) -> None:
        arrived = self.read(data) if self.shape.typed else decode(data)
        if arrived != arguments and (change := find_change(arguments, arrived)):
            annotated = bool(change.path) and change.path[0] in self.names
            raise InvalidPayload(change.field_in() or "payload", change.reason(annotated))

    def _verify_first(self, data: bytes) -> None:
        """Compiles the types. Later calls check only typed arguments, and none if there are no types."""
        self._verify = self.shape.verify if self.shape.typed else None
        self.shape.verify(data)

    @property
    def read(self) -> Callable[[bytes], dict[str, Any]]:
        """Reads a stored payload as the arguments of the call. Raises InvalidPayload if it does not fit (any
        more)."""
        return self.shape.read

    def _explain(self, data: bytes) -> None:
        """Reports a missing or unknown argument in the task's own terms."""
        try:
            payload = decode(data)
        except Exception:
            return
        try:
            self.check(payload)
        except UnknownOption as problem:
            raise InvalidPayload(problem.field, problem.reason) from None


def _argument(annotation: Any, default: Any) -> Argument:
    return Argument(annotation, REQUIRED if default is inspect.Parameter.empty else default)


def _is_context(parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    named = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return named.rpartition(".")[2] == "Context" or (
        annotation is parameter.empty and parameter.name in CONTEXT_NAMES
    )


def _type_text(annotation: Any) -> str | None:
    """As written in the code."""
    if annotation is inspect.Parameter.empty:
        return None
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
