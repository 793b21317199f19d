"""Tasks: the user's own functions, async or plain. Plain ones run in threads, so that they hold up nobody."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Executor
from contextvars import copy_context
from difflib import get_close_matches
from functools import partial
from typing import Any

from duetime.errors import InvalidInput, InvalidPayload, UnknownOption
from duetime.invoker import Context, Policies

CONTEXT_NAMES = ("ctx", "context")


class Signature:
    """What a task takes, so that a wrong call is refused where it is made and not where it runs."""

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        parameters = list(inspect.signature(function).parameters.values())
        self.task = task
        self.wants_context = bool(parameters) and _is_context(parameters[0])
        own = parameters[1:] if self.wants_context else parameters
        if any(parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL) for parameter in own):
            raise InvalidInput(
                "task", f"{task}: parameters must be nameable: payloads are JSON objects, so no *args and no positional-only ones"
            )
        self.open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in own)
        self.names = frozenset(parameter.name for parameter in own if parameter.kind is not parameter.VAR_KEYWORD)
        self.required = frozenset(
            parameter.name for parameter in own if parameter.kind is not parameter.VAR_KEYWORD and parameter.default is parameter.empty
        )

    def check(self, payload: Any, options: Iterable[str] = ()) -> None:
        """Refuses a payload the function could not be called with; `options` are what else the caller may have meant."""
        if type(payload) is dict and payload.keys() == self.names:
            return  # every argument is there and nothing else: the common case, made quick for bulk submission
        if not isinstance(payload, dict):
            raise InvalidPayload("payload", f"task {self.task!r} takes named arguments: give an object, not {type(payload).__name__}")
        if missing := self.required - payload.keys():
            name = min(missing)
            raise InvalidPayload(name, f"is required by task {self.task!r}")
        if not self.open_ended and (unknown := payload.keys() - self.names):
            name = min(unknown, key=str)
            close = get_close_matches(str(name), sorted({*self.names, *options}), 1)
            remedy = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(sorted(self.names)) or 'no arguments'}"
            raise UnknownOption(str(name), f"task {self.task!r} has no such argument: {remedy}")


class TaskHandler:
    """Calls one function."""

    def __init__(self, function: Callable[..., Any], signature: Signature, policies: Policies, threads: Callable[[], Executor]) -> None:
        self._function = function
        self._signature = signature
        self.policies = policies
        self._threads = threads
        self.invoke: Callable[[Context, Any], Awaitable[Any]] = self._choose()

    def _choose(self) -> Callable[[Context, Any], Awaitable[Any]]:
        function, wants_context = self._function, self._signature.wants_context
        if not inspect.iscoroutinefunction(function):
            return self._in_thread
        if wants_context:
            return lambda context, payload: function(context, **payload)
        return lambda context, payload: function(**payload)

    async def _in_thread(self, context: Context, payload: Any) -> Any:
        call = partial(self._function, context, **payload) if self._signature.wants_context else partial(self._function, **payload)
        result = await asyncio.get_running_loop().run_in_executor(self._threads(), copy_context().run, _contained, call)
        # An async function behind a plain decorator looks plain, and only its result tells.
        return await result if inspect.isawaitable(result) else result


def _contained(call: Callable[[], Any]) -> Any:
    """A future cannot carry these two: one is refused by it, the other closes the coroutines that wait for it; the job would never end."""
    try:
        return call()
    except (StopIteration, GeneratorExit) as problem:
        raise RuntimeError(f"the task raised {problem!r}") from problem


def _is_context(parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    named = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return named.rpartition(".")[2] == "Context" or (annotation is parameter.empty and parameter.name in CONTEXT_NAMES)
