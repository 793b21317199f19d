"""One attempt as a straight pipe: open, invoke, classify, decide. No step knows who called it."""

from __future__ import annotations

import asyncio
import traceback
from enum import Enum
from typing import Any

from duetime.clock import Clock
from duetime.engine.failpoint import failpoint
from duetime.errors import DuetimeError, InvalidPayload
from duetime.invoker import Context, Handler, Policies
from duetime.model import duration
from duetime.model.attempt import Ending, Outcome
from duetime.model.codec import decode, encode
from duetime.model.instant import Micros
from duetime.model.job import Claimed, Delivery, State
from duetime.model.retry import Retry
from duetime.model.settle import Settlement, settle

LONGEST_ERROR = 8_000
LARGEST_RESULT = 256 * 1024
NULL = b"null"
# Looked up once: a member of an enum is found by a descriptor, and these are needed for every job.
_STATE_SUCCEEDED, _ENDED_WELL = State.SUCCEEDED, Ending.SUCCEEDED


class Stop(Enum):
    """Why a running attempt was told to stop."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    SHUTDOWN = "shutdown"
    FENCED = "fenced"


class Slot:
    """A place where one attempt at a time runs, and what is known of the one that runs there now."""

    __slots__ = ("job", "runner", "started_at", "stop")

    def __init__(self) -> None:
        self.job: Claimed | None = None
        self.started_at: Micros | None = None
        self.stop: Stop | None = None
        self.runner: asyncio.Task[None] | None = None


async def perform(job: Claimed, slot: Slot, handler: Handler, clock: Clock) -> Settlement:
    """Runs the attempt and decides what follows. Never raises, whatever the task does."""
    slot.started_at = started_at = clock.now()
    try:
        failpoint("worker.before_invoke")
        result = await handler.invoke(Context(job), decode(job.payload))
        failpoint("worker.after_invoke")
        data = NULL if result is None else _encode_result(result)
    except BaseException as problem:  # SystemExit and KeyboardInterrupt raised by a task are its failure, not ours
        return decide(job, classify(problem, slot.stop), handler.policies, started_at, clock)
    now = clock.now()
    return Settlement(job.id, job.attempt, _STATE_SUCCEEDED, job.due_at, job.failures, 0, _ENDED_WELL, started_at, now, data, None)


def classify(problem: BaseException, stop: Stop | None) -> Outcome:
    """What kind of end this was. A cancellation nobody here asked for is the task's own failure."""
    match stop:
        case None:
            return Outcome(Ending.FAILED, error=describe(problem))
        case Stop.TIMEOUT:
            return Outcome(Ending.TIMED_OUT, error="timed out")
        case Stop.CANCEL:
            return Outcome(Ending.CANCELLED, error="cancelled while running")
        case Stop.SHUTDOWN:
            return Outcome(Ending.RELEASED, error="interrupted by shutdown")
        case Stop.FENCED:
            return Outcome(Ending.LOST, error="the node lost its lease")


def decide(job: Claimed, outcome: Outcome, defaults: Policies, started_at: Micros | None, clock: Clock) -> Settlement:
    policies = effective(job, defaults)
    return settle(job, outcome, policies.retry, policies.delivery, started_at, clock.now(), clock.noise())


def effective(job: Claimed, defaults: Policies) -> Policies:
    """The job's own policies where it has any, the target's otherwise."""
    if job.policies is None:
        return defaults
    own = decode(job.policies)
    return Policies(
        retry=Retry.from_json(own["retry"]) if "retry" in own else defaults.retry,
        timeout=duration.parse(own["timeout"], "timeout") if "timeout" in own else defaults.timeout,
        delivery=Delivery(own["delivery"]) if "delivery" in own else defaults.delivery,
    )


def describe(problem: BaseException) -> str:
    """The error as its reader wants it: what, then where; bounded, and without the engine's own frames."""
    if isinstance(problem, DuetimeError):
        return f"{type(problem).__name__}: {problem}"[:LONGEST_ERROR]
    lines = traceback.format_exception(type(problem), problem, _task_frames(problem))
    text = "".join(lines).rstrip().replace("\0", "�")
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= LONGEST_ERROR else f"{text[: LONGEST_ERROR // 2]}\n... truncated ...\n{text[-LONGEST_ERROR // 2 :]}"


def _task_frames(problem: BaseException) -> Any:
    frames = problem.__traceback__
    while frames is not None and "duetime" in frames.tb_frame.f_globals.get("__name__", "").split(".")[0]:
        frames = frames.tb_next
    return frames or problem.__traceback__


def _encode_result(result: Any) -> bytes:
    try:
        data = encode(result)
    except (TypeError, ValueError, RecursionError, OverflowError) as problem:
        raise InvalidPayload("result", f"the task returned something that is not JSON ({problem})") from None
    if len(data) > LARGEST_RESULT:
        raise InvalidPayload(
            "result", f"{len(data):,} bytes is over the limit of {LARGEST_RESULT:,}: store it elsewhere and return a reference"
        )
    return data
