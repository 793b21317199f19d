"""Tasks: registered functions under stable names, with the defaults their jobs have; one by one, and in groups that an app includes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from duetime.engine.checks import check_arguments, check_delivery, check_name, check_priority, check_retry
from duetime.engine.drafts import JOB_OPTIONS, Defaults
from duetime.errors import DuplicateTask, InvalidInput, NotOpen
from duetime.invoker import Policies
from duetime.invokers.isolation import Isolation, check_isolated
from duetime.invokers.middleware import Hook, Hooks, Middleware
from duetime.invokers.resources import Resource, check_resource
from duetime.invokers.signature import Signature
from duetime.invokers.versions import Upgrade, Versions
from duetime.model import duration
from duetime.model.codec import decode, encode
from duetime.model.duration import Duration
from duetime.model.instant import Micros
from duetime.model.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, Delivery
from duetime.model.limit import Limit
from duetime.model.retry import Retry
from duetime.model.unique import Unique

if TYPE_CHECKING:
    from duetime.app.client import Client
    from duetime.handle import JobHandle

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
AnyHook = TypeVar("AnyHook", bound=Hook)
AnyResource = TypeVar("AnyResource", bound=Resource)


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """What a registration says, checked."""

    queue: str
    priority: int
    policies: Policies
    limit: Limit | None
    unique: Unique | None
    isolate: bool | Isolation
    version: int
    upgrade: Upgrade | None
    retention: Micros | None


class Task(Generic[Parameters, Result]):
    """Calling it calls the function, here and now; `submit` has it run by a worker."""

    def __init__(self, group: Tasks, name: str, function: Callable[Parameters, Result], options: TaskOptions) -> None:
        self.group = group
        self.name = name
        self.function = function
        self.options = options
        self.policies = options.policies
        self.signature = Signature(name, function)
        check_isolated(function, self.signature, options.isolate)
        self.defaults = self._defaults(options)
        self._app: Client | None = None
        self.__doc__ = function.__doc__
        taken = sorted(self.signature.names & {*JOB_OPTIONS, "connection"})
        if taken:
            raise InvalidInput("task", f"{name}: the parameter {taken[0]!r} has the name of a submit option: rename it")

    def __call__(self, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        return self.function(*arguments, **named)

    async def submit(self, *positional: Any, **arguments: Any) -> JobHandle:
        """Arguments of the function, best by name, and the options at, delay, priority, queue, unique_key, unique, on_conflict, timeout,
        retry, delivery, owner, labels; `connection` stores the job within the transaction open on it."""
        if self._app is None:
            raise NotOpen(f"task {self.name!r} is in no app yet: app.include(...) its group first")
        if positional:
            arguments = {**self._named(positional, arguments), **arguments}
        return await self._app.submit(self, **arguments)

    def _named(self, positional: tuple[Any, ...], arguments: dict[str, Any]) -> dict[str, Any]:
        order = [name for name in inspect.signature(self.function).parameters if name in self.signature.names]
        if len(positional) > len(order):
            raise InvalidInput("arguments", f"task {self.name!r} takes {len(order)}, and {len(positional)} were given")
        named = dict(zip(order, positional, strict=False))
        if twice := sorted(named.keys() & arguments.keys()):
            raise InvalidInput(twice[0], f"is given twice to task {self.name!r}, by place and by name")
        return named

    def belong_to(self, app: Client) -> None:
        """From now on `submit` goes there."""
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
        )

    def __repr__(self) -> str:
        return f"<Task {self.name}>"


class Tasks:
    """A group of tasks, for modules that do not know the app: `app.include(tasks)` makes them the app's."""

    _is_app = False

    def __init__(self) -> None:
        self.tasks: dict[str, Task[..., Any]] = {}
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
        delivery: str = Delivery.AT_LEAST_ONCE,
        limit: Limit | None = None,
        unique: Unique | bool = False,
        isolate: bool | Isolation = False,
        version: int = 1,
        upgrade: Upgrade | None = None,
        retention: Duration | None = None,
    ) -> Callable[[Callable[Parameters, Result]], Task[Parameters, Result]]:
        """Register a function under a name that stays when the function moves: stored jobs refer to it."""
        if callable(name):
            raise InvalidInput("name", f'a task has a name, under which its jobs are stored: write @app.task("{_called(name)}")')
        check_name(name, "name")
        Versions(name, version, upgrade)
        options = TaskOptions(
            queue=check_name(queue, "queue"),
            priority=check_priority(priority),
            policies=Policies(
                retry=check_retry(retry or Retry()),
                timeout=None if timeout is None else duration.positive(timeout, "timeout"),
                delivery=check_delivery(delivery),
            ),
            limit=_check_limit(limit),
            unique=_check_unique(unique),
            isolate=isolate,
            version=version,
            upgrade=upgrade,
            retention=None if retention is None else duration.positive(retention, "retention"),
        )

        def register(function: Callable[Parameters, Result]) -> Task[Parameters, Result]:
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                raise InvalidInput("task", f"{name}: a generator runs only for who takes what it yields: use `return` in place of `yield`")
            task = Task(self, name, function, options)
            self._add(task)
            return task

        return register

    # -- around attempts ----------------------------------------------------------------------------------------------
    def middleware(self, function: Middleware) -> Middleware:
        """Register `async def middleware(ctx, call_next)`: around every attempt, an app's outside those of its groups."""
        return self.hooks.add_middleware(function)

    def before_attempt(self, function: AnyHook) -> AnyHook:
        """Register `hook(ctx)`, async or plain. If it raises, the attempt fails and the task is not called."""
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
        """Register what a worker opens once and closes when it stops: a function, or a generator that yields the resource once.
        Tasks take it as `name: Annotated[Type, dt.Use(function)]`."""
        check_resource(function)
        return function

    # -- groups -------------------------------------------------------------------------------------------------------
    def include(self, tasks: Tasks) -> None:
        """Make the tasks of a group ours: those it has now, and those registered in it later."""
        if not isinstance(tasks, Tasks) or tasks._is_app:
            raise InvalidInput("tasks", f"{tasks!r} is no group of tasks: write tasks = dt.Tasks(), then @tasks.task(...)")
        if tasks in self._holders():
            raise InvalidInput("tasks", "a group cannot include itself, not even by way of another")
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
        """Who has our tasks: ourselves, and whoever includes us."""
        yield self
        for group in self._included_in:
            yield from group._holders()

    def _keep(self, task: Task[..., Any]) -> None:
        self.tasks[task.name] = task

    def _refuse_duplicate(self, task: Task[..., Any]) -> None:
        known = self.tasks.get(task.name)
        if known is not None and known is not task:
            raise DuplicateTask(f"task {task.name!r} is registered already, by {_place(known.function)}: give this one another name")


def _called(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__)).rpartition(".")[2].strip("<>")


def _place(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return repr(function) if code is None else f"{function.__qualname__} ({code.co_filename}, line {code.co_firstlineno})"


def _check_limit(value: Any) -> Limit | None:
    if value is not None and not isinstance(value, Limit):
        raise InvalidInput("limit", f'{value!r} is not a Limit: write dt.Limit(2, per="customer")')
    return value


def _check_unique(value: Any) -> Unique | None:
    if not isinstance(value, bool | Unique):
        raise InvalidInput("unique", f'{value!r} is not a Unique: write unique=True, or dt.Unique(by=["customer"])')
    return value if isinstance(value, Unique) else Unique() if value else None


def _left_out(function: Callable[..., Any], names: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """What arguments are when a caller leaves them out, as JSON has it."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in names and parameter.default is not parameter.empty:
            try:
                yield parameter.name, decode(encode(parameter.default))
            except (TypeError, ValueError, RecursionError, OverflowError):
                continue
