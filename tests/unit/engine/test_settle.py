"""What follows from an ending (I9): the whole table, and that nothing leads back from a final state."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.model.instant import SECOND
from duetime.model.job import Attempt, Claimed, Delivery, Ending, Outcome, State
from duetime.model.retry import Retry
from duetime.model.settle import (
    LOSS_MEMORY,
    MAX_ELSEWHERE_WAIT,
    QUARANTINE_LOSSES,
    QUARANTINE_SPREAD,
    Settlement,
    poisoned,
    recent_losses,
    settle,
)

NOW = 1_000 * SECOND
RETRY = Retry(max_attempts=3, first_delay="10s", multiplier=2.0, max_delay="1m")
ONCE, AGAIN = Delivery.AT_MOST_ONCE, Delivery.AT_LEAST_ONCE


def job(failures: int = 0, losses: int = 0, cancel: bool = False, begun: bool = False) -> Claimed:
    return Claimed(
        UUID(int=7), 4, "task", b"{}", NOW - SECOND, "default", 5, NOW - SECOND, failures, losses, cancel, None, None, None, None, None,
        None, "default", begun,
    )  # fmt: skip


@pytest.mark.parametrize("delivery", [ONCE, AGAIN])
def test_job_of_a_node_that_may_not_run_it_waits_for_another(delivery: Delivery) -> None:
    not_here = Outcome(Ending.RELEASED, error="why", not_here=True)

    def waits(attempt: int, noise: float, failures: int = 2) -> int:
        one = job(failures=failures, losses=1)._replace(attempt=attempt)
        made = settle(one, not_here, RETRY, delivery, NOW - 10, NOW, noise)
        assert (made.state, made.failures, made.losses) == (State.PENDING, failures, 1)
        return made.due_at - NOW

    assert [waits(attempt, 1.0) // SECOND for attempt in (3, 4, 5, 6)] == [1, 2, 4, 8]
    assert waits(3, 0.0) == SECOND // 2
    assert waits(1_000, 1.0) == waits(1_000_000, 1.0) == MAX_ELSEWHERE_WAIT
    assert waits(1, 1.0, failures=5) == SECOND  # after an operator has set the number back
    cancelled = settle(job(cancel=True), not_here, RETRY, delivery, NOW - 10, NOW, 0.5)
    assert cancelled.state is State.CANCELLED


def decided(
    of: Claimed, ending: Ending, delivery: Delivery = AGAIN, started: bool = True, noise: float = 0.5
) -> Settlement:
    return settle(
        of, Outcome(ending, error="why"), RETRY, delivery, NOW - 10 if started else None, NOW, noise
    )


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
        (job(failures=2, losses=1), Ending.SNOOZED, AGAIN, State.PENDING, 2, 0),
        (job(), Ending.SNOOZED, ONCE, State.PENDING, 0, 0),
        (job(cancel=True), Ending.SNOOZED, AGAIN, State.CANCELLED, 0, 0),
        (job(losses=1, begun=True), Ending.LOST, AGAIN, State.PENDING, 0, 2),
        (job(losses=1), Ending.LOST, AGAIN, State.PENDING, 0, 1),
        (job(losses=6, begun=True), Ending.LOST, AGAIN, State.PENDING, 0, 7),
    ],
)
def test_the_table(
    of: Claimed, ending: Ending, delivery: Delivery, state: State, failures: int, losses: int
) -> None:
    decision = decided(of, ending, delivery)
    assert (decision.state, decision.failures, decision.losses) == (state, failures, losses)
    assert (decision.id, decision.attempt) == (of.id, of.attempt)


def test_what_runs_at_most_once_may_wait_again_if_it_never_started() -> None:
    assert decided(job(), Ending.RELEASED, ONCE, started=False).state is State.PENDING


def test_only_losses_in_quarantine_make_a_job_poison() -> None:
    retry = Retry(max_losses=3)
    assert [poisoned(job(losses=losses), retry, NOW) for losses in range(QUARANTINE_LOSSES + 3)] == [None] * 5
    dead = poisoned(job(losses=5), retry, NOW)
    assert dead is not None
    assert (dead.state, dead.ending, dead.failures, dead.losses) == (State.DEAD, Ending.LOST, 0, 5)
    assert dead.error == "poison: lost 5 times with its worker or the store, 3 of them in quarantine"


def test_lost_job_is_due_immediately_unless_it_was_in_quarantine() -> None:
    """Delays of the policy, as after failures: 10 s, then 20 s; half of it with this noise."""
    of = [job(losses=losses, begun=True) for losses in range(5)]
    waits = [decided(one, Ending.LOST).due_at - NOW for one in of]
    assert waits == [-SECOND, QUARANTINE_SPREAD // 2, 5 * SECOND, 10 * SECOND, 20 * SECOND]


@pytest.mark.parametrize("of", [job(losses=1, begun=True), job(losses=3)], ids=["first time", "not started"])
def test_jobs_in_quarantine_do_not_become_due_together(of: Claimed) -> None:
    """Otherwise the first node to claim holds all of them, and they are lost together if it dies."""
    due = [decided(of, Ending.LOST, noise=number / 10).due_at - NOW for number in range(10)]
    assert due == [QUARANTINE_SPREAD * number // 10 for number in range(10)]


def test_lost_job_that_was_due_later_is_not_due_earlier() -> None:
    later = NOW + QUARANTINE_SPREAD * 2
    assert decided(job(losses=3)._replace(due_at=later), Ending.LOST).due_at == later


def test_old_losses_expire() -> None:
    def ended(number: int, ending: Ending, age: int) -> Attempt:
        return Attempt(UUID(int=7), number, 1, ending, None, NOW - age, "why")

    old, recent = LOSS_MEMORY, LOSS_MEMORY - 1
    attempts = [ended(1, Ending.LOST, old), ended(2, Ending.LOST, recent), ended(3, Ending.FAILED, 1)]
    assert recent_losses(job(losses=2), attempts, NOW) == 1
    attempts.append(ended(4, Ending.LOST, 0))
    assert recent_losses(job(losses=2), attempts, NOW) == 2
    assert recent_losses(job(losses=1), attempts, NOW) == 1, "it failed in between: those before do not count"


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 1))
def test_a_retry_waits_at_most_the_back_off(noise: float, failures: int) -> None:
    decision = decided(job(failures=failures), Ending.FAILED, noise=noise)
    assert NOW <= decision.due_at < NOW + (10 * SECOND << failures)


@pytest.mark.parametrize("ending", [Ending.RELEASED, Ending.LOST])
def test_what_was_not_the_task_s_fault_is_due_as_before(ending: Ending) -> None:
    assert decided(job(), ending).due_at == job().due_at


BAD = ValueError("bad")


def after(outcome: Outcome, retry: Retry, of: Claimed | None = None, noise: float = 0.5) -> Settlement:
    return settle(of or job(), outcome, retry, AGAIN, NOW - 10, NOW, noise)


def failed(delay: int | None = None, hopeless: bool = False) -> Outcome:
    return Outcome(Ending.FAILED, error="ValueError: bad", problem=BAD, delay=delay, hopeless=hopeless)


@pytest.mark.parametrize(
    ("outcome", "retry", "state", "wait"),
    [
        (failed(), Retry(delays=["7s"]), State.PENDING, 7),
        (failed(delay=3 * SECOND), Retry(delays=["7s"]), State.PENDING, 3),
        (failed(delay=3 * SECOND), Retry(max_attempts=1), State.DEAD, None),
        (failed(delay=3 * SECOND), Retry(give_up_on=[ValueError]), State.PENDING, 3),
        (failed(), Retry(give_up_on=[ValueError]), State.DEAD, None),
        (failed(), Retry(retry_on=[ConnectionError]), State.DEAD, None),
        (failed(), Retry(retry_on=[ValueError], delays=["1s"]), State.PENDING, 1),
        (failed(hopeless=True), Retry(), State.DEAD, None),
        (failed(), Retry(delays=["10s"], max_age="12s"), State.PENDING, 10),
        (failed(), Retry(delays=["10s"], max_age="10s"), State.DEAD, None),
        (failed(delay=10 * SECOND), Retry(max_age="10s"), State.DEAD, None),
        (
            Outcome(Ending.TIMED_OUT, problem=TimeoutError()),
            Retry(give_up_on=[TimeoutError]),
            State.DEAD,
            None,
        ),
        (Outcome(Ending.SNOOZED, delay=60 * SECOND), Retry(max_attempts=1, max_age="1s"), State.PENDING, 60),
    ],
)
def test_the_retry_policy_decides(outcome: Outcome, retry: Retry, state: State, wait: int | None) -> None:
    """The job is one second old: fire_time is NOW - 1 s."""
    decision = after(outcome, retry)
    assert decision.state is state
    if wait is not None:
        assert decision.due_at == NOW + wait * SECOND


@pytest.mark.parametrize(
    ("retry", "first_line"),
    [
        (Retry(give_up_on=[ValueError]), "not tried again: the retry policy gives up on this"),
        (Retry(delays=["1h"], max_age="1m"), "not tried again: older than 1m"),
    ],
)
def test_giving_up_early_says_why_and_ends_with_the_error(retry: Retry, first_line: str) -> None:
    assert (after(failed(), retry).error or "").splitlines() == [first_line, "ValueError: bad"]


@pytest.mark.parametrize("answer", [None, "soon", -1])
def test_a_delay_function_that_fails_costs_the_job_nothing(answer: object) -> None:
    def broken(failures: int, error: BaseException) -> str:
        if answer is None:
            raise KeyError("oops")
        return answer  # type: ignore[return-value]  # on purpose

    decision = after(failed(), Retry(delay=broken, first_delay="10s"))
    assert (decision.state, decision.failures) == (State.PENDING, 1)
    assert decision.due_at == NOW + 5 * SECOND
    assert (decision.error or "").startswith("retry.delay failed with ")


@given(
    st.sampled_from(list(Ending)), st.sampled_from(list(Delivery)), st.integers(0, 6), st.integers(0, 3), st.booleans(), st.booleans(),
    st.booleans(), st.none() | st.integers(0, 10**9), st.booleans(),
)  # fmt: skip
def test_whatever_happens_the_numbers_are_right(
    ending: Ending,
    delivery: Delivery,
    failures: int,
    losses: int,
    cancel: bool,
    begun: bool,
    started: bool,
    delay: int | None,
    dull: bool,
) -> None:
    """Only the task's own failures are counted as such; what is at most once never waits again after it
    began; all is bounded."""
    of = job(failures, losses, cancel, begun)
    outcome = Outcome(ending, error="why", problem=BAD, delay=delay, hopeless=dull)
    decision = settle(of, outcome, RETRY, delivery, NOW - 10 if started else None, NOW, 0.5)
    own_fault = ending in (Ending.FAILED, Ending.TIMED_OUT)
    assert decision.failures == failures + own_fault
    if decision.state is State.PENDING:
        assert decision.failures < RETRY.max_attempts or not own_fault
        assert decision.losses <= of.losses + 1
        never_began = ending is Ending.RELEASED and not started
        assert delivery is AGAIN or never_began or ending is Ending.SNOOZED
    elif decision.state is State.RUNNING:
        assert ending is Ending.HANDED_OVER
        assert not cancel
    else:
        assert decision.state.final
