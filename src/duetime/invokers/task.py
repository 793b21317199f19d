"""Tasks: the user's own functions. Async functions run on the event loop, plain ones in threads, isolated
ones in child processes."""

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
from duetime.invokers.versions import FIRST_VERSION, PayloadVersions, Upgrade
from duetime.model.limit import Limit

__all__ = ["Signature", "TaskHandler"]
Invoke = Callable[[Context, bytes], Awaitable[Any]]


class TaskHandler:
    """Calls one function. `invoke` itself rejects a payload that does not fit, before anything is awaited."""

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
        self._versions = PayloadVersions(signature.task, version, upgrade)
        self._read = signature.read
        isolation = check_isolated(function, signature, isolate)
        self._children = (
            None if isolation is None else ChildProcesses(function, signature.task, isolation, resources)
        )
        self.invoke: Invoke = self._choose()

    def _choose(self) -> Invoke:
        function, read = self._function, self._read
        indirect = (
            self._children is not None
            or self._middleware
            or self._signature.uses
            or self._versions.applies_to_all
        )
        if indirect or not inspect.iscoroutinefunction(function):
            return self._invoke_indirectly
        upgrade = self._versions.upgraded
        if self._signature.wants_context:
            return lambda context, payload: function(
                context, **read(upgrade(context.job, payload) if context.job.policies else payload)
            )
        return lambda context, payload: function(
            **read(upgrade(context.job, payload) if context.job.policies else payload)
        )

    def _invoke_indirectly(self, context: Context, payload: bytes) -> Awaitable[Any]:
        payload = self._versions.upgraded(context.job, payload)
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
        def request_stop() -> None:
            context.stop_requested = True

        what = f"task {self._signature.task} of job {context.job_id}"
        result = await self._threads().run(call, request_stop, what)
        # An async function behind a plain decorator looks plain; only its result shows that it is async.
        return await result if inspect.isawaitable(result) else result
