"""Middleware around every attempt, and hooks as its simpler form. Tasks without them pay nothing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from duetime.errors import InvalidInput
from duetime.invoker import Context
from duetime.model.directives import AttemptFailed, Directive, GiveUp, RetryAfter

CallNext = Callable[[], Awaitable[Any]]
Middleware = Callable[[Context, CallNext], Awaitable[Any]]
Hook = Callable[..., Any]
TIMEOUT = "timeout"  # the argument with which a worker cancels an attempt that timed out


def surround(middleware: Sequence[Middleware], context: Context, call: CallNext) -> Awaitable[Any]:
    """The call inside all middleware; the first one is the outermost."""
    for outer in reversed(middleware):
        call = partial(outer, context, call)
    return call()


@dataclass(frozen=True, slots=True)
class Hooks:
    """Registered middleware and hooks. Plain hooks run on the event loop, so that tasks see their context
    variables: keep them short."""

    middleware: list[Middleware] = field(default_factory=list)
    before: list[Hook] = field(
        default_factory=list
    )  # (ctx); an error in one fails the attempt before the task is called
    after: list[Hook] = field(default_factory=list)  # (ctx, result) after a success; errors are logged
    failure: list[Hook] = field(default_factory=list)  # (ctx, error) after a failure; errors are logged

    def add_middleware(self, function: Middleware) -> Middleware:
        if not inspect.iscoroutinefunction(function):
            raise InvalidInput(
                "middleware", f"{function!r} must be written `async def middleware(ctx, call_next)`"
            )
        self.middleware.append(function)
        return function

    @property
    def chain(self) -> tuple[Middleware, ...]:
        """All of them in one chain; the hooks are closest to the task."""
        return (
            (*self.middleware, self._with_hooks)
            if self.before or self.after or self.failure
            else tuple(self.middleware)
        )

    async def _with_hooks(self, context: Context, call_next: CallNext) -> Any:
        try:
            for hook in self.before:
                await _call(hook, context)
            result = await call_next()
        except asyncio.CancelledError as stop:
            # A cancelled job and a node that shuts down are not failures.
            if TIMEOUT in stop.args:
                await self._failed(context, TimeoutError("timed out"))
            raise
        except BaseException as problem:
            await self._failed(context, problem)
            raise
        if isinstance(result, Directive):
            await self._failed(context, result)
        else:
            await _call_all(self.after, context, result)
        return result

    async def _failed(self, context: Context, problem: BaseException) -> None:
        # Snooze and Cancel are not failures.
        if not isinstance(problem, Directive) or isinstance(problem, RetryAfter | AttemptFailed | GiveUp):
            await _call_all(self.failure, context, problem)


async def _call_all(hooks: Sequence[Hook], context: Context, subject: Any) -> None:
    """The attempt has ended already; an error here does not change its result."""
    for hook in hooks:
        try:
            await _call(hook, context, subject)
        except Exception:
            context.log.exception("hook %s failed", getattr(hook, "__qualname__", hook))


async def _call(hook: Hook, *arguments: Any) -> None:
    result = hook(*arguments)
    if inspect.isawaitable(result):
        await result
