"""The counts and the state that each ending must lead to: a second implementation of the documented rules."""

from __future__ import annotations

from duetime.model.codec import decode
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Delivery, Ending, JobDraft, State
from duetime.model.retry import Retry
from duetime.model.settle import Settlement
from duetime.testing.simulation.invariants.verdict import Invariant, Verdict
from duetime.testing.simulation.tasks import KINDS

FREE_LOSSES = 2  # before the quarantine
MAX_RETRY_DELAY: Micros = SECOND  # tasks.RETRY.max_delay

Counts = tuple[int, int]  # failures, losses


def delivery_of(draft: JobDraft) -> Delivery:
    own = {} if draft.policies is None else decode(draft.policies)
    return Delivery(own.get("delivery", KINDS[draft.target].policies.delivery))


def retry_of(draft: JobDraft) -> Retry:
    own = {} if draft.policies is None else decode(draft.policies)
    return Retry(**own["retry"]) if "retry" in own else KINDS[draft.target].policies.retry


def check_settlement(
    verdict: Verdict,
    draft: JobDraft,
    before: Counts,
    cancel_requested: bool,
    blamed: bool,
    decision: Settlement,
) -> None:
    """`blamed`: if the worker died, this job may have caused it."""
    counts = _counts_after(before, decision.ending, blamed)
    verdict.require(
        decision.failures == counts[0],
        Invariant.ACCOUNTING,
        f"job {decision.id} had {before[0]} failures, {decision.ending}: now {decision.failures}",
    )
    if decision.ending is Ending.LOST:
        verdict.require(
            decision.losses == counts[1],
            Invariant.ACCOUNTING,
            f"job {decision.id} had {before[1]} losses, now {decision.losses}",
        )
    allowed = _states_after(draft, counts, cancel_requested, decision)
    verdict.require(
        decision.state in allowed,
        Invariant.ACCOUNTING,
        f"job {decision.id} {decision.ending} ({counts}) and became {decision.state}",
    )
    if decision.state is State.PENDING and decision.ending in (Ending.FAILED, Ending.TIMED_OUT):
        wait = decision.due_at - decision.finished_at
        verdict.require(
            0 <= wait <= MAX_RETRY_DELAY,
            Invariant.ACCOUNTING,
            f"job {decision.id} is tried again after {wait} microseconds",
        )


def _counts_after(before: Counts, ending: Ending, blamed: bool) -> Counts:
    failures, losses = before
    match ending:
        case Ending.FAILED | Ending.TIMED_OUT:
            return failures + 1, losses
        case Ending.LOST:
            return failures, losses + blamed
    return before


def _states_after(
    draft: JobDraft, counts: Counts, cancel_requested: bool, decision: Settlement
) -> set[State]:
    ending, once = decision.ending, delivery_of(draft) is Delivery.AT_MOST_ONCE
    match ending:
        case Ending.SUCCEEDED:
            return {State.SUCCEEDED}
        case Ending.CANCELLED:
            return {State.CANCELLED} if cancel_requested else set()
        case Ending.SNOOZED:
            return {State.PENDING, State.CANCELLED} if cancel_requested else {State.PENDING}
        case Ending.RELEASED if decision.state is State.SKIPPED and decision.started_at is None:
            return {State.SKIPPED}  # whether its schedule allows it is checked with the fires
        case Ending.RELEASED if not once or decision.started_at is None:
            return {State.PENDING, State.CANCELLED} if cancel_requested else {State.PENDING}
    allowed = {State.CANCELLED} if cancel_requested else set()
    if ending is Ending.LOST and not once:
        # Only a worker that claims it may end it; if that worker dies first, it waits for the next.
        poison = counts[1] >= FREE_LOSSES + retry_of(draft).max_losses
        return allowed | ({State.PENDING, State.DEAD} if poison else {State.PENDING})
    return allowed | {State.DEAD if once or counts[0] >= retry_of(draft).max_attempts else State.PENDING}
