"""The tasks of the simulated program: quick, slow, longer than a lease, failing, uncancellable, deadly. All
report to the recorder."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

from duetime.invoker import Context, Policies
from duetime.invokers.task import Signature, TaskHandler
from duetime.model.instant import SECOND
from duetime.model.job import Delivery
from duetime.model.limit import Limit
from duetime.model.retry import Retry
from duetime.model.settle import Snooze
from duetime.testing.simulation.recorder import Recorder

Body = Callable[[Context, dict[str, Any]], Awaitable[Any]]

RETRY = Retry(max_attempts=3, first_delay="400ms", multiplier=2.0, max_delay="1s", max_losses=1)
TIMEOUT = SECOND // 2
STEPS = 4
BRIEF_DIVISOR = 40
MAX_RUN_TIME = 3 * SECOND  # of a task that is not disturbed
_leaked: ContextVar[str] = ContextVar("leaked")


@dataclass(frozen=True, slots=True)
class Kind:
    """The properties of a task that client and invariants know."""

    name: str
    policies: Policies
    always_fails: bool = False
    deadly: bool = False
    quick: bool = False  # suitable for a schedule with overlap `queue`
    long: bool = False  # may run longer than a lease
    limit: Limit | None = None


def _policies(timeout: int | None = None, delivery: Delivery = Delivery.AT_LEAST_ONCE) -> Policies:
    return Policies(RETRY, timeout, delivery)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("instant", _policies(), quick=True),
        Kind("sleeper", _policies(), quick=True),
        Kind("long", _policies(), long=True),
        Kind("flaky", _policies(), quick=True),
        Kind("failing", _policies(), always_fails=True),
        Kind("stubborn", _policies(), long=True),
        Kind("slow", _policies(timeout=TIMEOUT)),
        Kind("exiting", _policies(), quick=True),
        Kind("cancelling", _policies(), quick=True),
        Kind("leaky", _policies(), quick=True),
        Kind("once", _policies(delivery=Delivery.AT_MOST_ONCE)),
        Kind("deadly", _policies(), deadly=True),
        Kind("gated", _policies(), quick=True, limit=Limit(2, per="customer")),
        Kind("brief", _policies(), quick=True, limit=Limit(1, per="customer")),
        Kind("rated", _policies(), quick=True, limit=Limit(rate="4/1s", per="customer")),
        Kind("steps", _policies(), long=True),
        Kind("marked", _policies(), long=True),
        Kind("banking", _policies(), long=True),
        Kind("snoozing", _policies(), quick=True),
    )
}
WRITING_KINDS = ("steps", "marked", "banking")  # they write while they run
LIMITED_KINDS = tuple(name for name, kind in KINDS.items() if kind.limit is not None)
PERMIT_KINDS = ("gated", "brief")  # so many at the same time, without a rate
SAFE_KINDS = tuple(name for name, kind in KINDS.items() if not kind.deadly)


def handlers(recorder: Recorder, die: Callable[[], None], names: tuple[str, ...]) -> dict[str, TaskHandler]:
    """The handlers of one node. All tasks are async, because sync functions need threads."""
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

    return TaskHandler(body, _signature(kind.name), kind.policies, _no_threads, limit=kind.limit)


@cache
def _signature(name: str) -> Signature:
    """Cached: a run starts many nodes, and each would inspect all its tasks."""

    async def body(context: Context, **payload: Any) -> None: ...

    return Signature(name, body)


async def _act(
    name: str, context: Context, payload: dict[str, Any], recorder: Recorder, die: Callable[[], None]
) -> Any:
    seconds = float(payload.get("seconds", 0.0))
    match name:
        case "instant":
            return {"attempt": context.attempt}
        case "sleeper" | "long" | "once" | "gated" | "rated":
            await asyncio.sleep(seconds)
        case "brief":
            await asyncio.sleep(seconds / BRIEF_DIVISOR)
        case "stubborn":
            await _ignore_cancellation(seconds)
        case "slow":
            await asyncio.sleep(2 * TIMEOUT / SECOND)
        case "leaky":
            _leaked.set(str(context.job_id))
        case "deadly":
            await asyncio.sleep(seconds)
            die()
        case "steps":
            await _run_steps(context, seconds, recorder)
        case _:
            return await _act_with_failures(name, context, payload, recorder)
    return None


async def _act_with_failures(name: str, context: Context, payload: dict[str, Any], recorder: Recorder) -> Any:
    """Tasks that fail or snooze before they succeed."""
    seconds, bad = (
        float(payload.get("seconds", 0.0)),
        recorder.starts_of(context.job_id) <= int(payload.get("failures", 0)),
    )
    match name:
        case "flaky":
            await asyncio.sleep(seconds)
            _fail(ValueError("not yet"), bad)
        case "failing":
            _fail(ValueError("never"))
        case "exiting":
            _fail(SystemExit(3), bad)
        case "cancelling":
            _fail(asyncio.CancelledError(), bad)
        case "marked":
            await asyncio.sleep(seconds)
            if await context.once("mail"):
                recorder.did_once(context.job_id, "mail")
            _fail(ValueError("after the mail"), bad)
        case "banking":
            await context.connection.execute("add", 1)
            await asyncio.sleep(seconds)
            _fail(ValueError("rolled back"), bad)
        case "snoozing" if bad:
            return Snooze("200ms")
    return None


async def _run_steps(context: Context, seconds: float, recorder: Recorder) -> None:
    """Continue after the last checkpoint."""
    done = int(context.last_checkpoint or 0)
    recorder.resumed(context.job_id, done)
    for step in range(done + 1, STEPS + 1):
        await asyncio.sleep(seconds / STEPS)
        await context.progress(step, STEPS)
        await context.checkpoint(step)
        recorder.checkpointed(context.job_id, step)


def _fail(problem: BaseException, really: bool = True) -> None:
    if really:
        raise problem


async def _ignore_cancellation(seconds: float) -> None:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        await asyncio.sleep(seconds)


def _no_threads() -> NoReturn:
    raise RuntimeError("threads are not allowed in a simulation")
