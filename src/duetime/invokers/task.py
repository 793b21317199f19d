"""Tasks: the user's own functions. Async ones run on the event loop, plain ones in threads, isolated ones in processes of their own."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from duetime.invoker import Context, Policies
from duetime.invokers.children import ChildProcesses
from duetime.invokers.isolation import Isolation, check_isolated
from duetime.invokers.middleware import Middleware, surround
from duetime.invokers.resources import ResourceBox
from duetime.invokers.signature import Signature
from duetime.invokers.threads import Threads
from duetime.invokers.versions import FIRST_VERSION, Upgrade, Versions
from duetime.model.limit import Limit

__all__ = ["Signature", "TaskHandler"]
Invoke = Callable[[Context, bytes], Awaitable[Any]]


class TaskHandler:
    """Calls one function. A payload that does not fit is refused by `invoke` itself, before anything is awaited."""

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        policies: Policies,
        threads: Callable[[], Threads],
        limit: Limit | None = None,
        isolate: bool | Isolation | None = None,
        version: int = FIRST_VERSION,
        upgrade: Upgrade | None = None,
        middleware: Sequence[Middleware] = (),
        resources: ResourceBox | None = None,
    ) -> None:
        self._function = function
        self._signature = signature
        self.policies = policies
        self.limit = limit
        self._threads = threads
        self._middleware = tuple(middleware)
        self._resources = resources or ResourceBox()
        self._versions = Versions(signature.task, version, upgrade)
        self._read = signature.read
        isolation = check_isolated(function, signature, isolate)
        self._children = None if isolation is None else ChildProcesses(function, signature.task, isolation, resources)
        self.invoke: Invoke = self._choose()

    def _choose(self) -> Invoke:
        function, read = self._function, self._read
        special = self._children is not None or self._middleware or self._signature.uses or self._versions.concerns_all
        if special or not inspect.iscoroutinefunction(function):
            return self._invoke_with_care
        current = self._versions.bring_up
        if self._signature.wants_context:
            return lambda context, payload: function(context, **read(current(context.job, payload) if context.job.policies else payload))
        return lambda context, payload: function(**read(current(context.job, payload) if context.job.policies else payload))

    def _invoke_with_care(self, context: Context, payload: bytes) -> Awaitable[Any]:
        payload = self._versions.bring_up(context.job, payload)
        arguments = self._read(payload)
        here = partial(self._call, context, arguments)
        call = here if self._children is None else partial(self._children.run, context, payload)
        return surround(self._middleware, context, call)

    async def _call(self, context: Context, arguments: dict[str, Any]) -> Any:
        if self._signature.uses:
            arguments |= await self._resources.fill(self._signature.uses)
        given = (context,) if self._signature.wants_context else ()
        if inspect.iscoroutinefunction(self._function):
            return await self._function(*given, **arguments)
        return await self._in_thread(context, partial(self._function, *given, **arguments))

    async def _in_thread(self, context: Context, call: Callable[[], Any]) -> Any:
        def told_to_stop() -> None:
            context.stop_requested = True

        what = f"task {self._signature.task} of job {context.job_id}"
        result = await self._threads().run(call, told_to_stop, what)
        # An async function behind a plain decorator looks plain, and only its result tells.
        return await result if inspect.isawaitable(result) else result
