"""Registration: names, signatures and defaults are checked when the module is imported, not when the job
runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

import duetime as dt
from duetime.engine.submit.build import JOB_OPTIONS


@pytest.fixture
def app() -> dt.App:
    return dt.App("memory://")


async def outcome(app: dt.App, task: dt.Task[..., Any], /, **arguments: Any) -> Any:
    async with app.running():
        job = await task.submit(**arguments)
        await job.wait("60s")
    assert job.state == "succeeded", job.error
    return job.result


def test_task_name_can_be_registered_once(app: dt.App) -> None:
    @app.task("invoice.send")
    async def first() -> None: ...

    async def second() -> None: ...

    with pytest.raises(dt.DuplicateTask, match=r"invoice\.send.*first"):
        app.task("invoice.send")(second)


def test_one_function_may_have_two_names(app: dt.App) -> None:
    def work() -> None: ...

    assert app.task("one")(work).name == "one"
    assert app.task("two")(work).name == "two"
    assert sorted(app.tasks) == ["one", "two"]


@pytest.mark.parametrize(
    "name", ["", " padded", "padded ", "line\nbreak", "x" * 129, "*", "@http", None, 7, "nul\0"]
)
def test_names_that_cannot_be_stored_or_told_apart_are_refused(app: dt.App, name: Any) -> None:
    with pytest.raises(dt.InvalidInput, match="name"):
        app.task(name)


@pytest.mark.parametrize("option", [*JOB_OPTIONS, "connection"])
def test_a_parameter_with_the_name_of_an_option_is_refused(app: dt.App, option: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def work({option}): pass", scope)
    with pytest.raises(dt.InvalidInput, match=option):
        app.task("work")(scope["work"])
    assert app.tasks == {}


def test_parameters_that_json_cannot_name_are_refused(app: dt.App) -> None:
    def variable(*numbers: int) -> None: ...
    def positional(number: int, /) -> None: ...

    for number, function in enumerate((variable, positional)):
        with pytest.raises(dt.InvalidInput, match="every parameter needs a name"):
            app.task(f"work{number}")(function)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"queue": ""}, "queue"),
        ({"priority": 10}, "priority"),
        ({"priority": True}, "priority"),
        ({"timeout": "0s"}, "timeout"),
        ({"timeout": "soon"}, "timeout"),
        ({"retry": 3}, "retry"),
        ({"delivery": "exactly_once"}, "delivery"),
        ({"limit": 2}, "limit"),
        ({"unique": "customer"}, "unique"),
        ({"version": 0}, "version"),
        ({"version": "2"}, "version"),
        ({"upgrade": lambda version, payload: payload}, "upgrade"),
        ({"retention": "0s"}, "retention"),
    ],
)
def test_wrong_defaults_are_refused(app: dt.App, options: dict[str, Any], field: str) -> None:
    with pytest.raises(dt.InvalidInput, match=field):
        app.task("work", **options)


def test_calling_a_task_calls_the_function(app: dt.App) -> None:
    @app.task("add")
    def add(left: int, right: int) -> int:
        """Adds."""
        return left + right

    assert add(2, right=3) == 5
    assert add.__doc__ == "Adds."
    assert repr(add) == "<Task add>"


async def test_async_task_with_context(app: dt.App) -> None:
    @app.task("work")
    async def work(ctx: dt.Context, number: int) -> list[Any]:
        return [
            ctx.attempt,
            number,
            ctx.queue,
            ctx.schedule,
            ctx.payload,
            ctx.idempotency_key == str(ctx.job_id),
        ]

    assert await outcome(app, work, number=4) == [1, 4, "default", None, {"number": 4}, True]


async def test_async_task_without_context(app: dt.App) -> None:
    @app.task("work")
    async def work(number: int = 3) -> int:
        return number

    assert await outcome(app, work) == 3


async def test_plain_functions_run_in_threads(app: dt.App) -> None:
    @app.task("work")
    def work(ctx: dt.Context, number: int) -> list[Any]:
        return [threading.current_thread() is not threading.main_thread(), ctx.attempt, number]

    assert await outcome(app, work, number=1) == [True, 1, 1]


async def test_context_parameter_is_recognised_by_its_name(app: dt.App) -> None:
    @app.task("work")
    def work(ctx):  # type: ignore[no-untyped-def]  # that is the case under test
        return ctx.attempt

    assert await outcome(app, work) == 1


async def test_an_open_ended_task_takes_any_arguments(app: dt.App) -> None:
    @app.task("work")
    async def work(**everything: Any) -> dict[str, Any]:
        return everything

    assert await outcome(app, work, one=1, task="two") == {"one": 1, "task": "two"}


async def test_an_async_function_behind_a_plain_decorator_is_awaited(app: dt.App) -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def inner(*arguments: Any, **named: Any) -> Any:
            return function(*arguments, **named)

        return inner

    @app.task("work")
    @logged
    async def work(number: int) -> int:
        return number

    assert await outcome(app, work, number=8) == 8


async def test_positional_arguments_of_submit(app: dt.App) -> None:
    @app.task("greet")
    async def greet(ctx: dt.Context, name: str, times: int = 1) -> None: ...

    await app.open()
    job = await (await greet.submit("ann", 2, delay="1h")).refresh()
    assert job.payload == {"name": "ann", "times": 2}
    with pytest.raises(dt.InvalidInput, match="takes 2, but 3 were given"):
        await greet.submit("ann", 2, 3)  # type: ignore[call-overload]
    with pytest.raises(dt.InvalidInput, match="name: is given twice"):
        await greet.submit("ann", name="bob")  # type: ignore[call-overload]
    await app.close()


async def test_new_jobs_take_the_task_itself(app: dt.App) -> None:
    @app.task("greet", queue="letters")
    async def greet(name: str) -> None: ...

    await app.open()
    [job] = await app.submit_many([dt.NewJob(greet, {"name": "ann"})])
    await job.refresh()
    assert (job.task, job.queue) == ("greet", "letters")
    with pytest.raises(dt.TaskNotFound):
        await app.submit_many([dt.NewJob(greet.function, {"name": "ann"})])
    await app.close()
