"""A test call to an HTTP target, made like the call of a job. Returns the response, or what is wrong with the
target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from duetime.clock import monotonic_micros
from duetime.errors import TargetNotAllowed
from duetime.invoker import AttemptWriter, Context, Handler
from duetime.model.ids import Ids
from duetime.model.instant import SECOND, Micros
from duetime.model.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, Claimed
from duetime.model.settle import AttemptFailed, GiveUp, NotHere
from duetime.model.target import HTTP, HttpTarget

MAX_TIMEOUT = 30 * SECOND  # the caller waits for the response
NO_DESK = cast(AttemptWriter, None)  # a test call saves no checkpoints


@dataclass(frozen=True, slots=True)
class Trial:
    lapse: Micros
    answer: dict[str, Any] | None  # its status, headers and body; None: none came
    code: str | None = None  # what is wrong; None: all is well
    detail: str | None = None


async def call_target(
    handler: Handler, ids: Ids, tenant: str, spec: bytes, payload: bytes, now: Micros
) -> Trial:
    """Signed and guarded like every call. The job id in it belongs to no job."""
    target = HttpTarget.from_spec(spec)
    bounded = replace(target, timeout=min(target.timeout, MAX_TIMEOUT), reports=False)
    job = Claimed(
        ids.new(now), 1, HTTP, payload, now, DEFAULT_QUEUE, DEFAULT_PRIORITY, now, 0, 0, False, None, None,
        None, None, bounded.to_spec(), None, tenant,
    )  # fmt: skip
    began = monotonic_micros()
    try:
        outcome = await handler.invoke(Context(job, NO_DESK), payload)
    except (AttemptFailed, GiveUp, NotHere) as verdict:
        outcome = verdict
    return _trial(outcome, monotonic_micros() - began)


def _trial(outcome: Any, lapse: Micros) -> Trial:
    if not isinstance(outcome, AttemptFailed | GiveUp | NotHere):
        return Trial(lapse, outcome)
    kept = outcome.result if isinstance(outcome.result, dict) else {}
    if kept.get("code") == TargetNotAllowed.code:
        return Trial(lapse, None, TargetNotAllowed.code, outcome.reason)
    if "status" in kept:
        return Trial(lapse, kept, "target_failed", outcome.reason)
    return Trial(lapse, None, "target_unreachable", outcome.reason)
