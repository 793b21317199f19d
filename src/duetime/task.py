"""A task: a registered function under a stable name, with the defaults its jobs have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from duetime.engine.drafts import JOB_OPTIONS, Defaults
from duetime.errors import InvalidInput
from duetime.invoker import Policies
from duetime.invokers.task import Signature

if TYPE_CHECKING:
    from duetime.app import App
    from duetime.handle import JobHandle

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Task(Generic[Parameters, Result]):
    """Calling it calls the function, here and now; `submit` has it run by a worker."""

    def __init__(self, app: App, name: str, function: Callable[Parameters, Result], policies: Policies, defaults: Defaults) -> None:
        self._app = app
        self.name = name
        self.function = function
        self.policies = policies
        self.defaults = defaults
        self.signature = Signature(name, function)
        taken = sorted(self.signature.names & {*JOB_OPTIONS, "connection"})
        if taken:
            raise InvalidInput("task", f"{name}: the parameter {taken[0]!r} has the name of a submit option: rename it")
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        return self.function(*arguments, **named)

    async def submit(self, **arguments: Any) -> JobHandle:
        """Arguments of the function, and the options at, delay, priority, queue, unique_key, timeout, retry, delivery, owner, labels."""
        return await self._app.submit(self, **arguments)

    def __repr__(self) -> str:
        return f"<Task {self.name}>"
