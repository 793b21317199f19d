"""Tasks: the user's own functions. Async functions run on the event loop, plain ones in threads, isolated
ones in child processes."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from duetime.errors import InvalidInput, InvalidPayload, UnknownOption
from duetime.invoker import Context, DirectCall, Policies
from duetime.invokers.children import ChildProcesses
from duetime.invokers.isolation import Isolation, check_isolated
from duetime.invokers.resources import ResourceBox
from duetime.invokers.signature import Signature
from duetime.invokers.threads import Threads
from duetime.model.codec import decode, encode_payload
from duetime.model.job import Claimed
from duetime.model.limit import Limit
from duetime.model.settle import AttemptFailed, Directive, GiveUp, RetryAfter
from duetime.task_log import capture_logging, current

# Payload versions: the payload of a job stored by older code is upgraded to what the function takes
# today.


FIRST_VERSION = 1
Upgrade = Callable[[int, Any], Any]


class PayloadVersions:
    """The current version of a task's payloads, and the function that upgrades older ones."""

    def __init__(
        self,
        task: str,
        version: int = FIRST_VERSION,
        upgrade: Upgrade | None = None,
        encode: Callable[[Any], bytes] = encode_payload,
    ) -> None:
        if isinstance(version, bool) or not isinstance(version, int) or version < FIRST_VERSION:
            raise InvalidInput("version", f"{version!r} must be a whole number of at least {FIRST_VERSION}")
        if upgrade is not None and version == FIRST_VERSION:
            raise InvalidInput("upgrade", "there is no older version to upgrade from: set version=2 as well")
        self._task = task
        self._version = version
        self._upgrade = upgrade
        self._encode = encode

    @property
    def applies_to_all(self) -> bool:
        """Whether jobs without their own policies need a check, too: they are of the first version."""
        return self._version > FIRST_VERSION

    def upgraded(self, job: Claimed, payload: bytes) -> bytes:
        stored = FIRST_VERSION
        if job.policies is not None and b'"version"' in job.policies:
            stored = decode(job.policies).get("version", FIRST_VERSION)
        if stored > self._version:
            raise InvalidPayload(
                "version", f"newer code stored this as version {stored}, but this node knows {self._task!r} "
                f"only up to {self._version}: "
                "update the node, then retry the job"
            )  # fmt: skip
        if stored == self._version or self._upgrade is None:
            return payload
        return self._run_upgrade(self._upgrade, stored, decode(payload))

    def _run_upgrade(self, upgrade: Upgrade, stored: int, payload: Any) -> bytes:
        try:
            newer = upgrade(stored, payload)
        except Exception as problem:
            raise InvalidPayload(
                "upgrade",
                f"of {self._task!r} from version {stored} failed: {type(problem).__name__}: {problem}",
            ) from problem
        if not isinstance(newer, dict):
            raise InvalidPayload("upgrade", f"of {self._task!r} must return the new payload, not {newer!r}")
        try:
            return self._encode(newer)
        except UnknownOption as problem:
            raise InvalidPayload(problem.field, problem.reason) from None


# Middleware around every attempt, and hooks as its simpler form. Tasks without them pay nothing.


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


# Output: what is kept of what an attempt logs and prints.


OutputChoice = bool | Literal["logging"]


def check_output(output: Any) -> OutputChoice:
    if output is True or output is False or output == "logging":
        return output  # type: ignore[no-any-return]  # one of the three
    raise InvalidInput(
        "output",
        f'{output!r} is not valid: use True (ctx.log, and what a child process prints), "logging" (also the '
        "records of every other logger) or False (nothing is kept)",
    )


async def _with_logging(context: Context, call_next: CallNext) -> Any:
    """Keep what any logger logs during the attempt."""
    before = current.set(context.keep_line)
    try:
        return await call_next()
    finally:
        current.reset(before)


async def _without_result(context: Context, call_next: CallNext) -> Any:
    """What the task returns is not stored. Middleware and hooks get it."""
    result = await call_next()
    return result if isinstance(result, Directive) else None


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
        output: OutputChoice = True,
        store_result: bool = True,
    ) -> None:
        self._function = function
        self.keeps_output = output is not False
        if output == "logging" and not isolate:  # a child process sends all its records
            capture_logging()
            middleware = (*middleware, _with_logging)
        if not store_result:
            middleware = (_without_result, *middleware)
        self._signature = signature
        self.policies = policies
        self.limit = limit
        self._threads = threads
        self._middleware = tuple(middleware)
        self._resources = resources or ResourceBox()
        self._versions = PayloadVersions(signature.task, version, upgrade, signature.encode)
        self._read = signature.read
        isolation = check_isolated(function, signature, isolate)
        self._children = (
            None
            if isolation is None
            else ChildProcesses(function, signature.task, isolation, resources, store_result)
        )
        self.direct: DirectCall | None = None
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
        self.direct = DirectCall(function, self._signature.wants_context, read)
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
