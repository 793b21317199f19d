"""What follows from the end of an attempt. Only this module decides it; stores only compare and set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Attempt, Claimed, Delivery, Ending, Outcome, State, error_text
from duetime.model.retry import Retry

# Directives: what a task can return or raise, instead of a result, to say what happens to its job.


class Directive(Exception):
    """Not an error. It is an exception so that a task can raise it from any depth."""


class _Delay(Directive):
    text: str

    def __init__(self, delay: Duration, reason: str | None = None) -> None:
        self.delay: Micros = duration.parse(delay, "delay")
        super().__init__(reason or f"{self.text} {duration.show(self.delay)}")
        self.reason = reason


class Snooze(_Delay):
    """Run the job again after this time. This is not a failure, and the checkpoint is kept."""

    text = "snoozed for"


class RetryAfter(_Delay):
    """The attempt failed. Try again after this time, if the retry policy has attempts left."""

    text = "to be tried again after"


class AttemptFailed(Directive):
    """The attempt failed, and the retry policy decides, as after any exception. `result` is kept with the
    attempt. `wish` is the delay that the target asked for; it is granted up to the policy's
    `max_delay`."""

    def __init__(self, reason: str, result: Any = None, wish: Duration | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.result = result
        self.wish: Micros | None = None if wish is None else duration.parse(wish, "wish")


class GiveUp(Directive):
    """The attempt failed, and no other can succeed: the job becomes a dead letter immediately, with this
    reason and result."""

    def __init__(self, reason: str, result: Any = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.result = result


class NotHere(Directive):
    """This node may not or cannot run the job, because of its own settings, and has not begun to. The job
    waits for a node that can. `result` is for a test call."""

    def __init__(self, reason: str, result: Any = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.result = result


class HandOver(Directive):
    """Another program finishes this attempt and reports how it ended. Without a report within this time, the
    attempt times out."""

    def __init__(self, within: Duration) -> None:
        super().__init__(f"handed over, to be reported within {within}")
        self.within: Micros = duration.positive(within, "within")


class Cancel(Directive):
    """The job ends as cancelled, with this reason."""

    def __init__(self, reason: str = "cancelled by the task") -> None:
        super().__init__(reason)
        self.reason = reason


# Many jobs run on a worker that dies, and any of them, or none, is the cause. A job that was lost this often
# in a row runs in quarantine: of such jobs a node runs one at a time. Only losses in quarantine are charged.
QUARANTINE_LOSSES = 2
# Jobs in quarantine become due one by one within this time. If they were due together, one node would claim
# all of them and hold those that wait for their turn; if it died, each of them would be lost once more.
QUARANTINE_SPREAD = 2 * SECOND
LOSS_MEMORY = 86_400 * SECOND  # older losses say nothing about the job
POISON = "poison"
# The error of an attempt that ended because its node may not run the job begins with this. Each time the job
# waits twice as long, so that nodes do not toss it about.
NOT_HERE = "cannot run on this node"
MIN_ELSEWHERE_WAIT, MAX_ELSEWHERE_WAIT = SECOND, 600 * SECOND
MAX_DOUBLINGS = 20


class Settlement(NamedTuple):
    """A decision that is written only if the job still runs under this attempt number."""

    id: UUID
    attempt: int
    state: State  # PENDING to try again, RUNNING after a hand-over, or a final state
    due_at: Micros  # for PENDING; for RUNNING, the deadline of the report
    failures: int
    losses: int
    ending: Ending  # anything but SUCCEEDED and HANDED_OVER leaves a row in attempts
    started_at: Micros | None
    finished_at: Micros
    result: bytes | None  # of the job if the state is final, and of the attempt if it leaves a row
    error: str | None


def settle(
    job: Claimed,
    outcome: Outcome,
    retry: Retry,
    delivery: Delivery,
    started_at: Micros | None,
    now: Micros,
    noise: float,
) -> Settlement:
    """The whole policy: success, retry with back-off, snooze, dead letter, cancellation, lost worker."""
    match outcome.ending:
        case Ending.SUCCEEDED | Ending.CANCELLED:
            state = State.SUCCEEDED if outcome.ending is Ending.SUCCEEDED else State.CANCELLED
            return _final(job, outcome, state, started_at, now)
        case Ending.FAILED | Ending.TIMED_OUT:
            return _after_failure(job, outcome, retry, delivery, started_at, now, noise)
        case Ending.RELEASED if outcome.not_here:
            return _elsewhere(job, outcome, started_at, now, noise)
        case Ending.RELEASED if delivery is Delivery.AT_MOST_ONCE and started_at is not None:
            return _final(job, outcome, State.DEAD, started_at, now)
        case Ending.RELEASED:
            return _again(job, outcome, started_at, now, due_at=job.due_at, losses=job.losses)
        case Ending.SNOOZED | Ending.HANDED_OVER if job.cancel_requested:
            return _final(job, outcome, State.CANCELLED, started_at, now)
        case Ending.SNOOZED:
            return _again(job, outcome, started_at, now, due_at=now + (outcome.delay or 0))
        case Ending.HANDED_OVER:
            waiting = _again(
                job, outcome, started_at, now, due_at=now + (outcome.delay or 0), losses=job.losses
            )
            return waiting._replace(state=State.RUNNING)
        case Ending.LOST:
            return _after_loss(job, outcome, retry, delivery, started_at, now, noise)


def skip(job: Claimed, reason: str, now: Micros) -> Settlement:
    """The job is too late to start. It leaves no attempt, because none started."""
    return _final(job, Outcome(Ending.RELEASED, error=reason), State.SKIPPED, None, now)


def _after_failure(
    job: Claimed,
    outcome: Outcome,
    retry: Retry,
    delivery: Delivery,
    started_at: Micros | None,
    now: Micros,
    noise: float,
) -> Settlement:
    failures = job.failures + 1
    if job.cancel_requested:
        return _final(job, outcome, State.CANCELLED, started_at, now, failures=failures)
    if delivery is Delivery.AT_MOST_ONCE or failures >= retry.max_attempts or outcome.hopeless:
        return _final(job, outcome, State.DEAD, started_at, now, failures=failures)
    # A task that says when to try again wants the retry.
    if outcome.delay is None and not retry.accepts(outcome.problem):
        return _final(
            job,
            _noted(outcome, "not tried again: the retry policy gives up on this"),
            State.DEAD,
            started_at,
            now,
            failures,
        )
    wait, outcome = _wait(outcome, retry, failures, noise)
    last = retry.last_attempt_at(job.fire_time)
    if last is not None and now + wait > last:
        return _final(
            job,
            _noted(outcome, f"not tried again: older than {retry.max_age}"),
            State.DEAD,
            started_at,
            now,
            failures,
        )
    return _again(job, outcome, started_at, now, due_at=now + wait, failures=failures)


def _wait(outcome: Outcome, retry: Retry, failures: int, noise: float) -> tuple[Micros, Outcome]:
    if outcome.delay is not None:
        return outcome.delay, outcome
    if outcome.wish:
        return min(outcome.wish, duration.parse(retry.max_delay, "retry.max_delay")), outcome
    try:
        return retry.wait(failures, noise, outcome.problem), outcome
    except Exception as problem:  # the user's own function: its error must not cost the job
        return replace(retry, delay=None).wait(failures, noise), _noted(
            outcome, error_text(f"retry.delay failed with {problem!r}")
        )


def _noted(outcome: Outcome, note: str) -> Outcome:
    """The note comes first, because the last line of an error says what went wrong."""
    return replace(outcome, error=note if outcome.error is None else f"{note}\n{outcome.error}")


def was_not_here(attempt: Attempt) -> bool:
    """Whether it ended because its node may not run the job."""
    return attempt.ending is Ending.RELEASED and (attempt.error or "").startswith(NOT_HERE)


def _elsewhere(
    job: Claimed, outcome: Outcome, started_at: Micros | None, now: Micros, noise: float
) -> Settlement:
    if job.cancel_requested:
        return _final(job, outcome, State.CANCELLED, started_at, now)
    before = min(job.attempt - job.failures, MAX_DOUBLINGS) - 1
    wait = min(MIN_ELSEWHERE_WAIT << max(before, 0), MAX_ELSEWHERE_WAIT)
    due_at = now + int(wait * (1 + noise) / 2)  # spread, so that the same node does not always come first
    return _again(job, outcome, started_at, now, due_at, losses=job.losses)


def recent_losses(job: Claimed, attempts: Sequence[Attempt], now: Micros) -> int:
    """The losses of a job without those that have expired."""
    lost = [one for one in attempts if one.ending is Ending.LOST and one.finished_at > now - LOSS_MEMORY]
    return min(job.losses, len(lost))


def poisoned(job: Claimed, retry: Retry, now: Micros) -> Settlement | None:
    """The end of a job that is charged with too many losses, if it is. Its next worker decides it,
    because only a worker is sure to know the retry policy of the task."""
    if _charged(job.losses) < retry.max_losses:
        return None
    error = (
        f"{POISON}: lost {job.losses} times with its worker or the store, {_charged(job.losses)} of them in "
        "quarantine"
    )
    return _final(job, Outcome(Ending.LOST, error=error), State.DEAD, None, now)


def _charged(losses: int) -> int:
    return losses - QUARANTINE_LOSSES


def _after_loss(
    job: Claimed,
    outcome: Outcome,
    retry: Retry,
    delivery: Delivery,
    started_at: Micros | None,
    now: Micros,
    noise: float,
) -> Settlement:
    # After the first crash all jobs on the worker are suspects; after that only those that had started.
    losses = job.losses + (job.losses == 0 or job.begun)
    if job.cancel_requested:
        return _final(job, outcome, State.CANCELLED, started_at, now, losses=losses)
    if delivery is Delivery.AT_MOST_ONCE:
        return _final(job, outcome, State.DEAD, started_at, now, losses=losses)
    # A charged job waits, so that a series of crashes with another cause can pass.
    waits = losses > job.losses and 0 < _charged(losses) < retry.max_losses
    due_at = job.due_at
    if waits:
        due_at = now + retry.wait(_charged(losses), noise)
    elif losses >= QUARANTINE_LOSSES:
        due_at = max(due_at, now + int(QUARANTINE_SPREAD * noise))
    return _again(job, outcome, started_at, now, due_at=due_at, losses=losses)


def _final(
    job: Claimed,
    outcome: Outcome,
    state: State,
    started_at: Micros | None,
    now: Micros,
    failures: int | None = None,
    losses: int | None = None,
) -> Settlement:
    return Settlement(
        job.id,
        job.attempt,
        state,
        job.due_at,
        job.failures if failures is None else failures,
        job.losses if losses is None else losses,
        outcome.ending,
        started_at,
        now,
        outcome.result,
        outcome.error,
    )


def _again(
    job: Claimed,
    outcome: Outcome,
    started_at: Micros | None,
    now: Micros,
    due_at: Micros,
    failures: int | None = None,
    losses: int = 0,
) -> Settlement:
    return Settlement(
        job.id,
        job.attempt,
        State.PENDING,
        due_at,
        job.failures if failures is None else failures,
        losses,
        outcome.ending,
        started_at,
        now,
        outcome.result,
        outcome.error,
    )
