"""The tasks of the simulated program: quick, slow, longer than a lease, failing, stubborn, deadly. Each tells the recorder what it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NoReturn

from duetime.invoker import Context, Policies
from duetime.invokers.task import Signature, TaskHandler
from duetime.model.instant import SECOND
from duetime.model.job import Delivery
from duetime.model.retry import Retry
from duetime.testing.simulation.recorder import Recorder

Body = Callable[[Context, dict[str, Any]], Awaitable[Any]]

RETRY = Retry(max_attempts=3, first_delay="400ms", multiplier=2.0, max_delay="1s")
TIMEOUT = SECOND // 2
LONGEST = 3 * SECOND  # no task of the simulation runs longer than this when left alone
_left_behind: ContextVar[str] = ContextVar("left_behind")


@dataclass(frozen=True, slots=True)
class Kind:
    """A task as everybody outside the engine knows it."""

    name: str
    policies: Policies
    always_fails: bool = False
    deadly: bool = False
    quick: bool = False  # fit for a schedule that queues


def _policies(timeout: int | None = None, delivery: Delivery = Delivery.AT_LEAST_ONCE) -> Policies:
    return Policies(RETRY, timeout, delivery)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("instant", _policies(), quick=True),
        Kind("sleeper", _policies(), quick=True),
        Kind("long", _policies()),
        Kind("flaky", _policies(), quick=True),
        Kind("failing", _policies(), always_fails=True),
        Kind("stubborn", _policies()),
        Kind("slow", _policies(timeout=TIMEOUT)),
        Kind("exiting", _policies(), quick=True),
        Kind("cancelling", _policies(), quick=True),
        Kind("leaky", _policies(), quick=True),
        Kind("once", _policies(delivery=Delivery.AT_MOST_ONCE)),
        Kind("deadly", _policies(), deadly=True),
    )
}
SAFE_KINDS = tuple(name for name, kind in KINDS.items() if not kind.deadly)


def handlers(recorder: Recorder, die: Callable[[], None], names: tuple[str, ...]) -> dict[str, TaskHandler]:
    """What one node can run. Plain functions need threads, so all of them are coroutines."""
    return {name: _handler(KINDS[name], recorder, die) for name in names}


def _handler(kind: Kind, recorder: Recorder, die: Callable[[], None]) -> TaskHandler:
    async def body(context: Context, **payload: Any) -> Any:
        recorder.started(context.job_id, context.attempt)
        ending = "raised"
        try:
            answer = await _act(kind.name, context, payload, recorder, die)
            ending = "returned"
            return answer
        finally:
            recorder.ended(context.job_id, context.attempt, ending)

    return TaskHandler(body, Signature(kind.name, body), kind.policies, _no_threads)


async def _act(name: str, context: Context, payload: dict[str, Any], recorder: Recorder, die: Callable[[], None]) -> Any:
    seconds = float(payload.get("seconds", 0.0))
    match name:
        case "instant":
            return {"attempt": context.attempt}
        case "sleeper" | "long" | "once":
            await asyncio.sleep(seconds)
        case "flaky":
            await asyncio.sleep(seconds)
            _fail_first(recorder.starts_of(context.job_id), payload, ValueError("not yet"))
        case "failing":
            raise ValueError("never")
        case "stubborn":
            await _ignore_cancellation(seconds)
        case "slow":
            await asyncio.sleep(2 * TIMEOUT / SECOND)
        case "exiting":
            _fail_first(recorder.starts_of(context.job_id), payload, SystemExit(3))
        case "cancelling":
            _fail_first(recorder.starts_of(context.job_id), payload, asyncio.CancelledError())
        case "leaky":
            _left_behind.set(str(context.job_id))
        case "deadly":
            await asyncio.sleep(seconds)
            die()
    return None


def _fail_first(starts: int, payload: dict[str, Any], problem: BaseException) -> None:
    if starts <= int(payload.get("failures", 0)):
        raise problem


async def _ignore_cancellation(seconds: float) -> None:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        await asyncio.sleep(seconds)


def _no_threads() -> NoReturn:
    raise RuntimeError("threads are not allowed in a simulation")
