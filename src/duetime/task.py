"""Tasks: functions registered under stable names, with defaults for their jobs; and groups of tasks that an
app includes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from duetime.engine.submit.build import JOB_OPTIONS, Defaults, check_unique
from duetime.engine.submit.validate import (
    check_arguments,
    check_delivery,
    check_name,
    check_priority,
    check_retry,
    check_type,
)
from duetime.errors import DuplicateTask, InvalidInput, NotOpen
from duetime.handle import JobHandle
from duetime.invoker import Context, Policies
from duetime.invokers.isolation import Isolation, check_isolated
from duetime.invokers.resources import Resource, check_resource
from duetime.invokers.signature import Signature
from duetime.invokers.task import (
    Hook,
    Hooks,
    Middleware,
    OutputChoice,
    PayloadVersions,
    Upgrade,
    check_output,
)
from duetime.model import duration
from duetime.model.codec import decode, encode
from duetime.model.duration import Duration
from duetime.model.instant import Micros
from duetime.model.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, Delivery, DeliveryName
from duetime.model.limit import Limit
from duetime.model.retry import Retry
from duetime.model.unique import ConflictName, Unique

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
AnyHook = TypeVar("AnyHook", bound=Hook)
AnyResource = TypeVar("AnyResource", bound=Resource)


class Submits(Protocol):
    async def submit(
        self, task: Task[..., Any] | str, /, *, connection: Any = None, **arguments: Any
    ) -> JobHandle:
        """Store one job."""


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """The validated options of a registration."""

    queue: str
    priority: int
    policies: Policies
    limit: Limit | None
    unique: Unique | None
    isolate: bool | Isolation
    version: int
    upgrade: Upgrade | None
    retention: Micros | None
    output: OutputChoice
    store_result: bool


class Task(Generic[Parameters, Result]):
    """Calling it calls the function in this process; `submit` has a worker run it. `Parameters` are those of
    the function, without the context."""

    def __init__(
        self, group: Tasks, name: str, function: Callable[..., Result], options: TaskOptions
    ) -> None:
        self.group = group
        self.name = name
        self.function = function
        self.options = options
        self.policies = options.policies
        self.signature = Signature(name, function)
        check_isolated(function, self.signature, options.isolate)
        self.defaults = self._defaults(options)
        self._app: Submits | None = None
        self.__doc__ = function.__doc__
        taken = sorted(self.signature.names & {*JOB_OPTIONS, "connection"})
        if taken:
            raise InvalidInput(
                "task", f"{name}: parameter {taken[0]!r} has the name of a submit option: rename it"
            )

    @overload
    def __call__(
        self, ctx: Context, /, *arguments: Parameters.args, **named: Parameters.kwargs
    ) -> Result: ...
    @overload
    def __call__(self, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result: ...
    def __call__(self, /, *arguments: Any, **named: Any) -> Result:  # type: ignore[misc]  # it takes all of them
        return self.function(*arguments, **named)

    # Type checkers compare a call without options with the function. Types cannot add options to the
    # parameters of a function: in a call with options they check an option, and the arguments are checked at
    # run time.
    @overload
    async def submit(self, *arguments: Parameters.args, **named: Parameters.kwargs) -> JobHandle: ...
    @overload
    async def submit(self, *arguments: Any, at: datetime | None, **named: Any) -> JobHandle: ...
    @overload
    async def submit(self, *arguments: Any, delay: Duration | None, **named: Any) -> JobHandle: ...
    @overload
    async def submit(self, *arguments: Any, priority: int | None, **named: Any) -> JobHandle: ...
    @overload
    async def submit(self, *arguments: Any, queue: str | None, **named: Any) -> JobHandle: ...
    @overload
    async def submit(self, *arguments: Any, unique_key: str | None, **named: Any) -> JobHandle: ...
    @overload
    async def submit(self, *arguments: Any, unique: Unique | bool | None, **named: Any) -> JobHandle: ...
    @overload
    async def submit(self, *arguments: Any, on_conflict: ConflictName | None, **named: Any) -> JobHandle: ...
    @overload
    async def submit(self, *arguments: Any, timeout: Duration | None, **named: Any) -> JobHandle: ...
    @overload
    async def submit(self, *arguments: Any, retry: Retry | None, **named: Any) -> JobHandle: ...
    @overload
    async def submit(self, *arguments: Any, delivery: DeliveryName | None, **named: Any) -> JobHandle: ...
    @overload
    async def submit(
        self, *arguments: Any, expires: Duration | datetime | None, **named: Any
    ) -> JobHandle: ...
    @overload
    async def submit(self, *arguments: Any, jitter: Duration | None, **named: Any) -> JobHandle: ...
    @overload
    async def submit(self, *arguments: Any, owner: str | None, **named: Any) -> JobHandle: ...
    @overload
    async def submit(self, *arguments: Any, labels: Mapping[str, str] | None, **named: Any) -> JobHandle: ...
    @overload
    async def submit(self, *arguments: Any, connection: Any, **named: Any) -> JobHandle: ...
    async def submit(self, *positional: Any, **arguments: Any) -> JobHandle:
        """Submit a job. Takes the arguments of the function, preferably by name, and the options at, delay,
        priority, queue, unique_key, unique, on_conflict, timeout, retry, delivery, expires, jitter, owner,
        labels.
        `connection` stores the job within its open transaction."""
        if self._app is None:
            raise NotOpen(
                f"task {self.name!r} does not belong to an app yet: app.include(...) its group first"
            )
        if positional:
            arguments = {**self._named(positional, arguments), **arguments}
        return await self._app.submit(self, **arguments)

    def _named(self, positional: tuple[Any, ...], arguments: dict[str, Any]) -> dict[str, Any]:
        order = [name for name in inspect.signature(self.function).parameters if name in self.signature.names]
        if len(positional) > len(order):
            raise InvalidInput(
                "arguments", f"task {self.name!r} takes {len(order)}, but {len(positional)} were given"
            )
        named = dict(zip(order, positional, strict=False))
        if twice := sorted(named.keys() & arguments.keys()):
            raise InvalidInput(twice[0], f"is given twice to task {self.name!r}, by position and by name")
        return named

    def belong_to(self, app: Submits) -> None:
        """Submit jobs through this app."""
        self._app = app

    def _defaults(self, options: TaskOptions) -> Defaults:
        names = None if self.signature.open_ended else self.signature.names
        limit, unique, delivery = options.limit, options.unique, options.policies.delivery
        if limit is not None and limit.per is not None:
            check_arguments("limit.per", [limit.per], None if names is None else names | {"owner", "tenant"})
        if unique is not None:
            check_arguments("unique.by", unique.by or (), names)
        return Defaults(
            options.queue,
            options.priority,
            delivery.value if delivery is Delivery.AT_MOST_ONCE else None,
            options.version,
            self.signature.encode,
            limit,
            unique,
            names,
            dict(_left_out(self.function, self.signature.names)),
            self._about(options.policies),
        )

    def _about(self, own: Policies) -> dict[str, Any]:
        return {
            "doc": (self.function.__doc__ or "").strip().partition("\n")[0] or None,
            "arguments": self.signature.described,
            "timeout": None if own.timeout is None else duration.show(own.timeout),
            "retry": own.retry.described(),
            "delivery": own.delivery.value,
        }

    def __repr__(self) -> str:
        return f"<Task {self.name}>"


AnyTask = Task[..., Any]


class Registration(Protocol):
    """Makes a task of a function, with or without a context."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, Parameters], Result], /
    ) -> Task[Parameters, Result]: ...
    @overload
    def __call__(self, function: Callable[Parameters, Result], /) -> Task[Parameters, Result]: ...


class Tasks:
    """A group of tasks, for modules that do not import the app: `app.include(tasks)` adds them to the app."""

    _is_app = False

    def __init__(self) -> None:
        self.tasks: dict[str, AnyTask] = {}
        self.hooks = Hooks()
        self._included_in: list[Tasks] = []

    def task(
        self,
        name: str,
        *,
        queue: str = DEFAULT_QUEUE,
        priority: int = DEFAULT_PRIORITY,
        timeout: Duration | None = None,
        retry: Retry | None = None,
        delivery: DeliveryName = Delivery.AT_LEAST_ONCE,
        limit: Limit | None = None,
        unique: Unique | bool = False,
        isolate: bool | Isolation = False,
        version: int = 1,
        upgrade: Upgrade | None = None,
        retention: Duration | None = None,
        output: OutputChoice = True,
        store_result: bool = True,
    ) -> Registration:
        """Register a function. Stored jobs refer to it by `name`, which stays the same if the function
        moves."""
        if callable(name):
            raise InvalidInput("name", f'task name missing: write @app.task("{_called(name)}")')
        check_name(name, "name")
        PayloadVersions(name, version, upgrade)
        options = TaskOptions(
            queue=check_name(queue, "queue"),
            priority=check_priority(priority),
            policies=Policies(
                retry=check_retry(retry or Retry()),
                timeout=None if timeout is None else duration.positive(timeout, "timeout"),
                delivery=check_delivery(delivery),
            ),
            limit=None if limit is None else check_type(limit, Limit, "limit", 'dt.Limit(2, per="customer")'),
            unique=check_unique(unique),
            isolate=isolate,
            version=version,
            upgrade=upgrade,
            retention=None if retention is None else duration.positive(retention, "retention"),
            output=check_output(output),
            store_result=check_type(store_result, bool, "store_result", "store_result=False"),
        )

        def register(function: Callable[..., Any]) -> AnyTask:
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                raise InvalidInput(
                    "task", f"{name}: tasks cannot be generators: return a value instead of yielding"
                )
            task: AnyTask = Task(self, name, function, options)
            self._add(task)
            return task

        return register  # type: ignore[return-value]  # the overloads say how the types are related

    # -- around attempts
    def middleware(self, function: Middleware) -> Middleware:
        """Register `async def middleware(ctx, call_next)` around every attempt. The app's middleware is
        outside that of its groups."""
        return self.hooks.add_middleware(function)

    def before_attempt(self, function: AnyHook) -> AnyHook:
        """Register `hook(ctx)`, async or plain. If it raises, the attempt fails and the task is not
        called."""
        self.hooks.before.append(function)
        return function

    def after_attempt(self, function: AnyHook) -> AnyHook:
        """Register `hook(ctx, result)`, async or plain, for attempts that succeeded."""
        self.hooks.after.append(function)
        return function

    def on_failure(self, function: AnyHook) -> AnyHook:
        """Register `hook(ctx, error)`, async or plain, for attempts that failed."""
        self.hooks.failure.append(function)
        return function

    def resource(self, function: AnyResource) -> AnyResource:
        """Register a resource that a worker opens once and closes when it stops: a function, or a generator
        that yields it once. Tasks take it as `name: Annotated[Type, dt.Use(function)]`."""
        check_resource(function)
        return function

    # -- groups
    def include(self, tasks: Tasks) -> None:
        """Add the tasks of a group: those it has now, and those registered in it later."""
        if not isinstance(tasks, Tasks) or tasks._is_app:
            raise InvalidInput(
                "tasks", f"{tasks!r} is not a group of tasks: write tasks = dt.Tasks(), then @tasks.task(...)"
            )
        if tasks in self._holders():
            raise InvalidInput("tasks", "a group cannot include itself, directly or through another group")
        if self in tasks._included_in:
            return
        for task in tasks.tasks.values():
            self._add(task)
        tasks._included_in.append(self)

    def _add(self, task: Task[..., Any]) -> None:
        holders = list(self._holders())
        for holder in holders:
            holder._refuse_duplicate(task)
        for holder in holders:
            holder._keep(task)

    def _holders(self) -> Iterator[Tasks]:
        """This group and all groups and apps that include it."""
        yield self
        for group in self._included_in:
            yield from group._holders()

    def _keep(self, task: Task[..., Any]) -> None:
        self.tasks[task.name] = task

    def _refuse_duplicate(self, task: Task[..., Any]) -> None:
        known = self.tasks.get(task.name)
        if known is not None and known is not task:
            raise DuplicateTask(
                f"task {task.name!r} is already registered by {_place(known.function)}: give this one "
                "another name"
            )


def _called(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__)).rpartition(".")[2].strip("<>")


def _place(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return (
        repr(function)
        if code is None
        else f"{function.__qualname__} ({code.co_filename}, line {code.co_firstlineno})"
    )


def _left_out(function: Callable[..., Any], names: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """Default values of arguments, as JSON values."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in names and parameter.default is not parameter.empty:
            try:
                yield parameter.name, decode(encode(parameter.default))
            except (TypeError, ValueError, RecursionError, OverflowError):
                continue
