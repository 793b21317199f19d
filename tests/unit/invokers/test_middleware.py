"""Middleware and hooks: around the attempt, outermost first; what a hook does afterwards changes no
outcome."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.errors import InvalidInput, InvalidPayload
from duetime.invoker import Context
from duetime.invokers.task import CallNext, Hooks
from duetime.model.settle import Cancel, RetryAfter, Snooze
from tests.unit.invokers.attempts import handler, invoke


async def work(outcome: Any = None) -> Any:
    match outcome:
        case "fail":
            raise ValueError("failed")
        case "snooze":
            raise Snooze("5s")
        case "cancel":
            return Cancel()
        case "again":
            return RetryAfter("5s")
    return outcome


async def test_the_first_is_the_outermost_and_may_change_the_result() -> None:
    seen: list[str] = []

    def named(name: str) -> Any:
        async def middleware(ctx: Context, call_next: CallNext) -> Any:
            seen.append(f"{name} in {ctx.attempt}")
            result = await call_next()
            seen.append(f"{name} out")
            return [name, result]

        return middleware

    chain = (named("outer"), named("inner"))
    assert await invoke(work, {"outcome": 1}, middleware=chain) == ["outer", ["inner", 1]]
    assert seen == ["outer in 1", "inner in 1", "inner out", "outer out"]


async def test_middleware_may_leave_the_task_out() -> None:
    async def closed(ctx: Context, call_next: CallNext) -> Any:
        return "not today"

    assert await invoke(work, {"outcome": "fail"}, middleware=(closed,)) == "not today"


async def test_plain_functions_are_surrounded_too() -> None:
    async def doubled(ctx: Context, call_next: CallNext) -> Any:
        return 2 * await call_next()

    def plain() -> int:
        return 4

    assert await invoke(plain, middleware=(doubled,)) == 8


async def test_a_payload_that_does_not_fit_meets_no_middleware() -> None:
    async def never(ctx: Context, call_next: CallNext) -> Any:
        raise AssertionError

    with pytest.raises(InvalidPayload):
        await invoke(work, {"wrong": 1}, middleware=(never,))


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (7, ["before", "after 7"]),
        ("fail", ["before", "failure ValueError"]),
        ("again", ["before", "failure RetryAfter"]),
        ("snooze", ["before"]),
        ("cancel", ["before"]),
    ],
)
async def test_hooks_are_told_how_it_ended(outcome: Any, expected: list[str]) -> None:
    hooks, seen = Hooks(), []

    async def before(ctx: Context) -> None:
        seen.append("before")

    hooks.before.append(before)
    hooks.after.append(lambda ctx, result: seen.append(f"after {result}"))
    hooks.failure.append(lambda ctx, error: seen.append(f"failure {type(error).__name__}"))
    try:
        await invoke(work, {"outcome": outcome}, middleware=hooks.chain)
    except (ValueError, Snooze):
        assert outcome in ("fail", "snooze")
    assert seen == expected


async def test_a_hook_before_can_stop_the_attempt() -> None:
    hooks = Hooks()

    def refuse(ctx: Context) -> None:
        raise PermissionError("not now")

    hooks.before.append(refuse)
    with pytest.raises(PermissionError):
        await invoke(work, {"outcome": 1}, middleware=hooks.chain)


async def test_a_hook_that_fails_afterwards_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    hooks = Hooks()
    hooks.after.append(lambda ctx, result: 1 / 0)
    hooks.failure.append(lambda ctx, error: 1 / 0)
    assert await invoke(work, {"outcome": 1}, middleware=hooks.chain) == 1
    with pytest.raises(ValueError, match="failed"):
        await invoke(work, {"outcome": "fail"}, middleware=hooks.chain)
    assert caplog.text.count("ZeroDivisionError") == 2


def test_nothing_registered_costs_nothing() -> None:
    assert Hooks().chain == ()
    assert handler(work).invoke.__name__ == "<lambda>"  # the function is called straight away


def test_middleware_must_be_async() -> None:
    with pytest.raises(InvalidInput, match="async def middleware"):
        Hooks().add_middleware(lambda ctx, call_next: call_next())
