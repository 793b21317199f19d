"""One attempt, step by step: open, invoke, commit, classify, decide."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from enum import Enum
from types import TracebackType
from typing import Any, TypeVar

from duetime.clock import Clock
from duetime.engine.failpoint import failpoint
from duetime.engine.run.checkpoints import CheckpointWriter
from duetime.engine.run.commit import commit, rollback, shielded
from duetime.errors import DuetimeError, Fenced, InvalidInput, InvalidPayload, StoreUnavailable
from duetime.invoker import Context, Handler, Policies
from duetime.model import duration
from duetime.model.codec import decode, encode_result
from duetime.model.instant import Micros
from duetime.model.job import Claimed, Delivery, Ending, Outcome, State, error_text, trace
from duetime.model.retry import Retry
from duetime.model.settle import (
    NOT_HERE,
    AttemptFailed,
    Cancel,
    Directive,
    GiveUp,
    HandOver,
    NotHere,
    RetryAfter,
    Settlement,
    Snooze,
    settle,
)
from duetime.model.trace import is_only_origin

NULL = b"null"
Own = TypeVar("Own")
# Looked up once: access to an enum member is slow, and every job needs these
_STATE_SUCCEEDED, _ENDED_WELL = State.SUCCEEDED, Ending.SUCCEEDED


class Stop(Enum):
    """Why a running attempt was told to stop."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    SHUTDOWN = "shutdown"
    FENCED = "fenced"


class Slot:
    """Runs one attempt at a time; describes the one that runs in it now."""

    __slots__ = ("job", "runner", "started_at", "stop")

    def __init__(self) -> None:
        self.job: Claimed | None = None
        self.started_at: Micros | None = None
        self.stop: Stop | None = None
        self.runner: asyncio.Task[None] | None = None


async def perform(
    job: Claimed, slot: Slot, handler: Handler, clock: Clock, checkpoints: CheckpointWriter
) -> Settlement:
    """Runs the attempt and decides what follows. Never raises, whatever the task does."""
    slot.started_at = started_at = clock.now()
    context = Context(job, checkpoints)
    try:
        failpoint("worker.before_invoke")
        result = await handler.invoke(context, job.payload)
        failpoint("worker.after_invoke")
        data = NULL if result is None else _stored(context, result)
    except BaseException as problem:  # SystemExit and KeyboardInterrupt raised by a task are its failure
        context.over = True
        intact = not context.used or await shielded(rollback(context, checkpoints))
        outcome = _blame(classify(problem, slot.stop), context, intact)
        return decide(job, outcome, handler.policies, started_at, clock)
    context.over = True
    now = clock.now()
    settlement = Settlement(
        job.id,
        job.attempt,
        _STATE_SUCCEEDED,
        job.due_at,
        job.failures,
        0,
        _ENDED_WELL,
        started_at,
        now,
        data,
        None,
    )
    return (
        settlement
        if not context.used
        else await _committed(job, context, checkpoints, settlement, handler.policies, clock)
    )


async def _committed(
    job: Claimed,
    context: Context,
    checkpoints: CheckpointWriter,
    settlement: Settlement,
    policies: Policies,
    clock: Clock,
) -> Settlement:
    """The settlement of a successful attempt that wrote something. A request to stop comes too late."""
    if context.unstored is not None:
        settlement = settlement._replace(error=error_text(context.unstored))
    try:
        await shielded(commit(context, checkpoints, settlement))
        return settlement
    except StoreUnavailable as problem:
        # If it was committed after all, the store refuses this settlement
        outcome = Outcome(
            Ending.RELEASED, error=f"the store went away while the task's writes were committed: {problem}"
        )
    except BaseException as problem:
        outcome = _judge(problem)
    return decide(job, outcome, policies, settlement.started_at, clock)


def classify(problem: BaseException, stop: Stop | None) -> Outcome:
    """How the attempt ended. A cancellation that this node did not ask for is a failure of the task."""
    match stop:
        case None:
            return _judge(problem)
        case Stop.TIMEOUT:
            return Outcome(Ending.TIMED_OUT, error="timed out", problem=TimeoutError("timed out"))
        case Stop.CANCEL:
            return Outcome(Ending.CANCELLED, error="cancelled while running")
        case Stop.SHUTDOWN:
            return Outcome(Ending.RELEASED, error="interrupted by shutdown")
        case Stop.FENCED:
            return Outcome(Ending.LOST, error="the node lost its lease")


def _judge(problem: BaseException) -> Outcome:
    match problem:
        case Snooze():
            return Outcome(Ending.SNOOZED, error=error_text(problem), delay=problem.delay)
        case RetryAfter():
            return Outcome(Ending.FAILED, error=error_text(problem), problem=problem, delay=problem.delay)
        case AttemptFailed():
            return Outcome(
                Ending.FAILED, _kept(problem.result), error_text(problem.reason), problem, wish=problem.wish
            )
        case GiveUp():
            return Outcome(Ending.FAILED, _kept(problem.result), error_text(problem.reason), hopeless=True)
        case NotHere():
            error = error_text(f"{NOT_HERE}: {problem.reason}")
            return Outcome(Ending.RELEASED, _kept(problem.result), error, not_here=True)
        case HandOver():
            return Outcome(Ending.HANDED_OVER, delay=problem.within)
        case Cancel():
            return Outcome(Ending.CANCELLED, error=error_text(problem.reason))
        case Fenced():
            return Outcome(Ending.LOST, error=problem.message)
        case InvalidPayload() if not _has_task_frames(problem):
            return Outcome(Ending.FAILED, error=describe(problem), hopeless=True)
        case _:
            return Outcome(Ending.FAILED, error=describe(problem), problem=problem)


def _blame(outcome: Outcome, context: Context, intact: bool) -> Outcome:
    """The store's failure is not a failure of the task. The task's statement may be what killed the server:
    such an attempt is lost, as one whose worker died, because a job cannot be lost without end."""
    own = outcome.ending is not Ending.FAILED or outcome.hopeless or isinstance(outcome.problem, Directive)
    if own or (intact and not context.store_away):
        return outcome
    if intact:
        return Outcome(Ending.RELEASED, error=f"the store could not be reached\n{outcome.error}")
    return Outcome(Ending.LOST, error=f"the store ended the session of ctx.connection\n{outcome.error}")


def decide(
    job: Claimed, outcome: Outcome, defaults: Policies, started_at: Micros | None, clock: Clock
) -> Settlement:
    policies = effective(job, defaults)
    settlement = settle(
        job, outcome, policies.retry, policies.delivery, started_at, clock.now(), clock.noise()
    )
    return settlement if settlement.error is None else settlement._replace(error=error_text(settlement.error))


def effective(job: Claimed, defaults: Policies) -> Policies:
    """The job's own policies where it has any, the target's otherwise."""
    if job.policies is None or is_only_origin(job.policies):
        return defaults
    own = decode(job.policies)
    return Policies(
        retry=_own(
            own, "retry", lambda retry: Retry.restore(retry).judging_as(defaults.retry), defaults.retry
        ),
        timeout=_own(own, "timeout", lambda timeout: duration.parse(timeout, "timeout"), defaults.timeout),
        delivery=_own(own, "delivery", Delivery, defaults.delivery),
        expires=own.get("expires"),
    )


def _own(own: Mapping[str, Any], name: str, read: Callable[[Any], Own], otherwise: Own) -> Own:
    """A policy that this version cannot read, because a newer one wrote it, is ignored: the job must run."""
    try:
        return read(own[name]) if name in own else otherwise
    except ValueError:
        return otherwise


def describe(problem: BaseException) -> str:
    """The error for people: what, then where; bounded, and without the frames of the engine."""
    if isinstance(problem, DuetimeError):
        return error_text(f"{type(problem).__name__}: {problem}")
    return error_text(trace(problem, _task_frames(problem)))


def _task_frames(problem: BaseException) -> TracebackType | None:
    return _first_of_task(problem) or problem.__traceback__


def _has_task_frames(problem: BaseException) -> bool:
    """Whether the task's own code raised it, and not the handler that could not call the task."""
    return _first_of_task(problem) is not None


def _first_of_task(problem: BaseException) -> TracebackType | None:
    frames = problem.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "").split(".")[0] == "duetime":
        frames = frames.tb_next
    return frames


def _kept(result: Any) -> bytes | None:
    """The result that goes with a failure, if it can be stored; the failure matters more."""
    try:
        return None if result is None else encode_result(result)
    except InvalidInput:
        return None


def _stored(context: Context, result: Any) -> bytes:
    """A result that cannot be stored does not repeat the work: the task has done it."""
    if isinstance(result, Directive):
        raise result
    try:
        return encode_result(result)
    except InvalidInput as problem:
        context.lose_result(str(problem))
        return NULL
