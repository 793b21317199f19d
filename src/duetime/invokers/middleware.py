"""What an application wraps around every attempt: middleware, and the hooks that are its simpler form. Tasks without any pay nothing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from duetime.errors import InvalidInput
from duetime.invoker import Context
from duetime.model.verdict import Failed, GiveUp, RetryAfter, Verdict

CallNext = Callable[[], Awaitable[Any]]
Middleware = Callable[[Context, CallNext], Awaitable[Any]]
Hook = Callable[..., Any]
TIMEOUT = "timeout"  # what a worker says when it cancels an attempt for that


def surround(middleware: Sequence[Middleware], context: Context, call: CallNext) -> Awaitable[Any]:
    """The call inside all of them; the first is the outermost."""
    for outer in reversed(middleware):
        call = partial(outer, context, call)
    return call()


@dataclass(frozen=True, slots=True)
class Hooks:
    """What was registered. Plain hooks run on the event loop, where the task can see the context variables they set: keep them short."""

    middleware: list[Middleware] = field(default_factory=list)
    before: list[Hook] = field(default_factory=list)  # (ctx); one that raises fails the attempt, and the task is not called
    after: list[Hook] = field(default_factory=list)  # (ctx, result) of an attempt that succeeded; their errors are logged
    failure: list[Hook] = field(default_factory=list)  # (ctx, error) of one that failed; their errors are logged

    def add_middleware(self, function: Middleware) -> Middleware:
        if not inspect.iscoroutinefunction(function):
            raise InvalidInput("middleware", f"{function!r} must be written `async def middleware(ctx, call_next)`")
        self.middleware.append(function)
        return function

    @property
    def chain(self) -> tuple[Middleware, ...]:
        """One chain of all that is registered; the hooks are closest to the task."""
        return (*self.middleware, self._with_hooks) if self.before or self.after or self.failure else tuple(self.middleware)

    async def _with_hooks(self, context: Context, call_next: CallNext) -> Any:
        try:
            for hook in self.before:
                await _call(hook, context)
            result = await call_next()
        except asyncio.CancelledError as stop:
            # Cancelled from outside, or the node shuts down: that is no failure.
            if TIMEOUT in stop.args:
                await self._failed(context, TimeoutError("timed out"))
            raise
        except BaseException as problem:
            await self._failed(context, problem)
            raise
        if isinstance(result, Verdict):
            await self._failed(context, result)
        else:
            await _call_all(self.after, context, result)
        return result

    async def _failed(self, context: Context, problem: BaseException) -> None:
        # To snooze or to cancel is no failure.
        if not isinstance(problem, Verdict) or isinstance(problem, RetryAfter | Failed | GiveUp):
            await _call_all(self.failure, context, problem)


async def _call_all(hooks: Sequence[Hook], context: Context, subject: Any) -> None:
    """The attempt has ended: whatever happens here changes nothing of that."""
    for hook in hooks:
        try:
            await _call(hook, context, subject)
        except Exception:
            context.log.exception("the hook %s failed", getattr(hook, "__qualname__", hook))


async def _call(hook: Hook, *arguments: Any) -> None:
    answer = hook(*arguments)
    if inspect.isawaitable(answer):
        await answer
