"""How long to wait and what is worth another attempt: each kind of policy, and what a job can carry of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.errors import InvalidInput
from duetime.model.instant import SECOND
from duetime.model.retry import MAX_ATTEMPTS, Retry

ALMOST_ONE = 1 - 2**-53


def waits(retry: Retry, count: int = 5, noise: float = 0.5) -> list[float]:
    return [retry.wait(failures, noise, ValueError()) / SECOND for failures in range(1, count + 1)]


@pytest.mark.parametrize(
    ("retry", "expected"),
    [
        (Retry(first_delay="10s", multiplier=3, max_delay="1m"), [5, 15, 30, 30, 30]),
        (Retry(first_delay="10s", jitter=False, max_delay="1m"), [10, 20, 40, 60, 60]),
        (Retry(first_delay="10s", backoff="linear", max_delay="40s"), [5, 10, 15, 20, 20]),
        (Retry(first_delay="10s", backoff="linear", jitter=False), [10, 20, 30, 40, 50]),
        (Retry(delays=["1s", timedelta(seconds=10), "1m"]), [1, 10, 60, 60, 60]),
        (Retry(delays=["1s", "10s"], jitter=True), [0.5, 5, 5, 5, 5]),
        (Retry(delay=lambda failures, error: f"{failures}s"), [1, 2, 3, 4, 5]),
        (Retry(delay=lambda failures, error: "1m" if isinstance(error, ValueError) else "1s"), [60] * 5),
        (Retry(delay=lambda failures, error: "10s", jitter=True), [5] * 5),
    ],
)
def test_waits(retry: Retry, expected: list[float]) -> None:
    assert waits(retry) == expected


@given(
    st.integers(1, MAX_ATTEMPTS),
    st.floats(0, ALMOST_ONE),
    st.sampled_from(["exponential", "linear"]),
    st.floats(1, 100),
)
def test_no_wait_is_longer_than_the_longest(
    failures: int, noise: float, backoff: str, multiplier: float
) -> None:
    factor = multiplier if backoff == "exponential" else 2.0
    retry = Retry(first_delay="1s", max_delay="1h", multiplier=factor, backoff=backoff)
    assert 0 <= retry.wait(failures, noise) <= 3_600 * SECOND


@pytest.mark.parametrize(
    ("retry", "problem", "worth_it"),
    [
        (Retry(), KeyError(), True),
        (Retry(retry_on=ConnectionError), ConnectionResetError(), True),
        (Retry(retry_on=[ConnectionError]), ValueError(), False),
        (Retry(give_up_on=[ValueError]), UnicodeError(), False),
        (Retry(give_up_on=[ValueError]), KeyError(), True),
        (Retry(retry_on=[Exception], give_up_on=[ValueError]), ValueError(), False),
        (Retry(retry_on=[ConnectionError]), ExceptionGroup("both", [KeyError(), ConnectionError()]), True),
        (Retry(give_up_on=[ConnectionError]), ExceptionGroup("both", [KeyError(), ConnectionError()]), False),
        (Retry(retry_on=[ConnectionError]), ExceptionGroup("one", [KeyError()]), False),
        (Retry(retry_on=[ConnectionError]), None, True),
        (Retry(retry_on=None), KeyError(), True),
        (Retry(retry_on=[]), KeyError(), False),
        (Retry(retry_on=()), ExceptionGroup("one", [KeyError()]), False),
    ],
)
def test_what_is_worth_another_attempt(retry: Retry, problem: BaseException | None, worth_it: bool) -> None:
    assert retry.accepts(problem) is worth_it


@pytest.mark.parametrize(
    "retry",
    [
        Retry(),
        Retry(max_attempts=1, first_delay=timedelta(milliseconds=250), multiplier=1.5, max_delay="1m"),
        Retry(backoff="linear", jitter=False, max_age="1d"),
        Retry(delays=["1s", "10s"]),
        Retry(max_losses=50),
    ],
)
def test_what_a_job_carries_waits_the_same(retry: Retry) -> None:
    read = Retry.from_json(retry.to_json())
    assert waits(read) == waits(retry)
    assert (read.max_attempts, read.last_attempt_at(0)) == (retry.max_attempts, retry.last_attempt_at(0))
    assert read.max_losses == retry.max_losses


def test_the_old_fields_are_always_there() -> None:
    assert Retry().to_json() == {"max_attempts": 5, "first_delay": "5s", "multiplier": 2.0, "max_delay": "1h"}


@pytest.mark.parametrize(
    ("retry", "field"),
    [
        (Retry(delay=lambda failures, error: "1s"), "retry.delay"),
        (Retry(retry_on=ValueError), "retry"),
        (Retry(give_up_on=ValueError), "retry"),
    ],
)
def test_what_only_a_task_can_say_is_not_stored(retry: Retry, field: str) -> None:
    with pytest.raises(InvalidInput, match="to the task") as refused:
        retry.to_json()
    assert refused.value.field == field


def test_a_job_s_own_policy_keeps_the_task_s_judgement() -> None:
    own = Retry(max_attempts=2).judging_as(Retry(give_up_on=[ValueError]))
    assert own.max_attempts == 2
    assert not own.accepts(ValueError())


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_attempts": 0}, "retry.max_attempts"),
        ({"max_attempts": True}, "retry.max_attempts"),
        ({"multiplier": 0.5}, "retry.multiplier"),
        ({"first_delay": "soon"}, "retry.first_delay"),
        ({"max_delay": 5}, "retry.max_delay"),
        ({"backoff": "cubic"}, "retry.backoff"),
        ({"jitter": "yes"}, "retry.jitter"),
        ({"delays": []}, "retry.delays"),
        ({"delays": "1s"}, "retry.delays"),
        ({"delays": 5}, "retry.delays"),
        ({"delays": ["1s", "never"]}, "retry.delays"),
        ({"delay": "1s"}, "retry.delay"),
        ({"delay": lambda failures, error: "1s", "delays": ["1s"]}, "retry.delay"),
        ({"retry_on": [ValueError()]}, "retry.retry_on"),
        ({"retry_on": "ValueError"}, "retry.retry_on"),
        ({"give_up_on": [int]}, "retry.give_up_on"),
        ({"give_up_on": 5}, "retry.give_up_on"),
        ({"max_age": "0s"}, "retry.max_age"),
        ({"delays": ["1s"], "first_delay": "2s"}, "retry.first_delay"),
        ({"delays": ["1s"], "max_delay": timedelta(minutes=5)}, "retry.max_delay"),
        ({"delays": ["1s"], "multiplier": 3}, "retry.multiplier"),
        ({"delays": ["1s"], "backoff": "linear"}, "retry.backoff"),
        ({"backoff": "linear", "multiplier": 3.0}, "retry.multiplier"),
    ],
)
def test_nonsense_is_refused_by_name(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Retry(**options)
    assert refused.value.field == field


def test_defaults_written_out_next_to_delays_are_accepted() -> None:
    """A policy that was read is sent back whole."""
    retry = Retry(delays=["1s"], first_delay="5000ms", multiplier=2, max_delay=timedelta(hours=1))
    assert Retry.from_json(retry.to_json()).to_json() == retry.to_json()


def test_stored_settings_without_effect_are_read_as_defaults() -> None:
    old = {"max_attempts": 3, "first_delay": "7s", "multiplier": 3.0, "max_delay": "1m", "backoff": "linear"}
    assert Retry.restore({**old, "delays": ["1s"]}) == Retry(max_attempts=3, delays=["1s"])
    assert Retry.restore(old) == Retry(max_attempts=3, first_delay="7s", max_delay="1m", backoff="linear")


@pytest.mark.parametrize("value", [[], {"max_attempts": 3, "attempts": 3}, {"retry_on": []}, {"delay": "1s"}])
def test_nonsense_in_stored_policies_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match="must be an object"):
        Retry.from_json(value)


def test_an_empty_list_of_errors_is_shown_and_not_stored_with_a_job() -> None:
    none = Retry(retry_on=[])
    assert none.described()["retry_on"] == []
    assert "retry_on" not in Retry().described()
    with pytest.raises(InvalidInput, match="give retry_on and give_up_on to the task"):
        none.to_json()
    assert Retry(max_attempts=9).judging_as(none).retry_on == ()
