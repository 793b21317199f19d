"""What follows from an ending (I9): the whole table, and that nothing leads back from a final state."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.model.attempt import Ending, Outcome
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, Delivery, State
from duetime.model.retry import Retry
from duetime.model.settle import POISON_LOSSES, Settlement, settle

NOW = 1_000 * SECOND
RETRY = Retry(max_attempts=3, first_delay="10s", multiplier=2.0, max_delay="1m")
ONCE, AGAIN = Delivery.AT_MOST_ONCE, Delivery.AT_LEAST_ONCE


def job(failures: int = 0, losses: int = 0, cancel: bool = False, begun: bool = False) -> Claimed:
    return Claimed(
        UUID(int=7), 4, "task", b"{}", NOW - SECOND, "default", 5, NOW - SECOND, failures, losses, cancel, None, None, None, None, None,
        None, "default", begun,
    )  # fmt: skip


def decided(of: Claimed, ending: Ending, delivery: Delivery = AGAIN, started: bool = True, noise: float = 0.5) -> Settlement:
    return settle(of, Outcome(ending, error="why"), RETRY, delivery, NOW - 10 if started else None, NOW, noise)


@pytest.mark.parametrize(
    ("of", "ending", "delivery", "state", "failures", "losses"),
    [
        (job(), Ending.SUCCEEDED, AGAIN, State.SUCCEEDED, 0, 0),
        (job(), Ending.CANCELLED, AGAIN, State.CANCELLED, 0, 0),
        (job(failures=1), Ending.FAILED, AGAIN, State.PENDING, 2, 0),
        (job(failures=2), Ending.FAILED, AGAIN, State.DEAD, 3, 0),
        (job(failures=2), Ending.TIMED_OUT, AGAIN, State.DEAD, 3, 0),
        (job(), Ending.FAILED, ONCE, State.DEAD, 1, 0),
        (job(cancel=True), Ending.FAILED, AGAIN, State.CANCELLED, 1, 0),
        (job(failures=1, losses=1), Ending.RELEASED, AGAIN, State.PENDING, 1, 1),
        (job(), Ending.RELEASED, ONCE, State.DEAD, 0, 0),
        (job(), Ending.LOST, AGAIN, State.PENDING, 0, 1),
        (job(), Ending.LOST, ONCE, State.DEAD, 0, 1),
        (job(cancel=True), Ending.LOST, AGAIN, State.CANCELLED, 0, 1),
        (job(losses=POISON_LOSSES - 1, begun=True), Ending.LOST, AGAIN, State.DEAD, 0, POISON_LOSSES),
        (job(losses=POISON_LOSSES - 1), Ending.LOST, AGAIN, State.PENDING, 0, POISON_LOSSES - 1),
    ],
)
def test_the_table(of: Claimed, ending: Ending, delivery: Delivery, state: State, failures: int, losses: int) -> None:
    decision = decided(of, ending, delivery)
    assert (decision.state, decision.failures, decision.losses) == (state, failures, losses)
    assert (decision.id, decision.attempt) == (of.id, of.attempt)


def test_what_runs_at_most_once_may_wait_again_if_it_never_started() -> None:
    assert decided(job(), Ending.RELEASED, ONCE, started=False).state is State.PENDING


def test_a_poisonous_job_says_so() -> None:
    """A18: a job that takes its worker down is stopped."""
    decision = decided(job(losses=POISON_LOSSES - 1, begun=True), Ending.LOST)
    assert decision.error is not None
    assert decision.error.startswith("poison: ")


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 1))
def test_a_retry_waits_at_most_the_back_off(noise: float, failures: int) -> None:
    decision = decided(job(failures=failures), Ending.FAILED, noise=noise)
    assert NOW <= decision.due_at < NOW + (10 * SECOND << failures)


@pytest.mark.parametrize("ending", [Ending.RELEASED, Ending.LOST])
def test_what_was_not_the_task_s_fault_is_due_as_before(ending: Ending) -> None:
    assert decided(job(), ending).due_at == job().due_at
