"""Retry policies: how often and when a failed job is tried again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import Micros

MAX_ATTEMPTS = 1_000
MAX_LOSSES, DEFAULT_LOSSES = 1_000, 5
Problems = type[BaseException] | Iterable[type[BaseException]]
CustomDelay = Callable[[int, BaseException], Duration]


class Backoff(StrEnum):
    EXPONENTIAL = "exponential"
    LINEAR = "linear"


@dataclass(frozen=True, slots=True)
class Retry:
    """How many attempts may fail, which failures are retried, and how long to wait.

    `max_attempts` counts failed attempts, so 1 means "never retry". Attempts that were lost with their
    worker do not count; `max_losses` bounds those during which the job was in quarantine. The n-th wait is
    `first_delay * multiplier ** (n - 1)`, or `first_delay * n` if `backoff` is "linear", and at most
    `max_delay`. Or it is the n-th of `delays`, whose last one is repeated. Or it is the result of the
    function `delay(failures, error)`. With `jitter` the wait is a random time from zero to that. This is the
    default, except with `delays` and `delay`, which are exact. `retry_on`: only these exceptions are
    retried; None for all, an empty list for none. `give_up_on`: these are never retried, even if `retry_on`
    lists them. A timeout counts as TimeoutError. An exception group counts if it contains one of them.
    `max_age`: no retry is due later than this after the job's fire_time, and a job that has not started by
    then is skipped.
    """

    max_attempts: int = 5
    first_delay: Duration = "5s"
    multiplier: float = 2.0
    max_delay: Duration = "1h"
    backoff: str = Backoff.EXPONENTIAL.value
    jitter: bool | None = None
    delays: Iterable[Duration] | None = None
    delay: CustomDelay | None = None
    retry_on: Problems | None = None
    give_up_on: Problems = ()
    max_age: Duration | None = None
    max_losses: int = DEFAULT_LOSSES

    def __post_init__(self) -> None:
        _check_count(self.max_attempts, MAX_ATTEMPTS, "retry.max_attempts")
        _check_count(self.max_losses, MAX_LOSSES, "retry.max_losses")
        if (
            isinstance(self.multiplier, bool)
            or not isinstance(self.multiplier, int | float)
            or not 1 <= self.multiplier <= 100
        ):
            raise InvalidInput("retry.multiplier", f"{self.multiplier!r} must be a number from 1 to 100")
        duration.parse(self.first_delay, "retry.first_delay")
        duration.parse(self.max_delay, "retry.max_delay")
        if self.max_age is not None:
            duration.positive(self.max_age, "retry.max_age")
        if self.jitter is not None and not isinstance(self.jitter, bool):
            raise InvalidInput("retry.jitter", f"{self.jitter!r} must be True or False")
        self._check_waits()
        if self.retry_on is not None:
            object.__setattr__(self, "retry_on", _types(self.retry_on, "retry.retry_on"))
        object.__setattr__(self, "give_up_on", _types(self.give_up_on, "retry.give_up_on"))

    def _check_waits(self) -> None:
        if self.backoff not in list(Backoff):
            raise InvalidInput("retry.backoff", f"{self.backoff!r} is not one of {', '.join(Backoff)}")
        object.__setattr__(self, "backoff", str(self.backoff))
        if self.delays is not None:
            object.__setattr__(self, "delays", _delays(self.delays))
        if self.delay is not None and not callable(self.delay):
            raise InvalidInput(
                "retry.delay",
                f"{self.delay!r} must be a function of (failures, error) that returns a duration",
            )
        if self.delay is not None and self.delays is not None:
            raise InvalidInput("retry.delay", "give either `delays` or `delay`, not both")
        self._refuse_without_effect()

    def _refuse_without_effect(self) -> None:
        written = {name: getattr(self, name) for name in STORED}
        cause = "delays" if self.delays is not None else "backoff='linear'"
        for name in _without_effect(written):
            if not _is_default(name, written[name]):
                raise InvalidInput(f"retry.{name}", f"has no effect with {cause}: leave one of them out")

    def accepts(self, problem: BaseException | None) -> bool:
        """Whether a failure of this kind is retried."""
        if problem is None:
            return True
        if _is(problem, self.give_up_on):
            return False
        return self.retry_on is None or _is(problem, self.retry_on)

    def wait(self, failures: int, noise: float, problem: BaseException | None = None) -> Micros:
        """The wait after this number of failures. `noise` from [0, 1) spreads simultaneous retries."""
        ceiling = self._ceiling(failures, problem)
        exact = self.delays is not None or self.delay is not None if self.jitter is None else not self.jitter
        return ceiling if exact else int(ceiling * noise)

    def _ceiling(self, failures: int, problem: BaseException | None) -> Micros:
        if self.delay is not None and problem is not None:
            return duration.parse(self.delay(failures, problem), "retry.delay")
        if isinstance(self.delays, tuple):
            return duration.parse(self.delays[min(failures, len(self.delays)) - 1], "retry.delays")
        first = duration.parse(self.first_delay, "retry.first_delay")
        longest = duration.parse(self.max_delay, "retry.max_delay")
        # The exponent is capped because 100 ** 1000 does not fit a float; by then max_delay applies anyway.
        factor = failures if self.backoff == Backoff.LINEAR else self.multiplier ** min(failures - 1, 150)
        return int(min(first * factor, longest))

    def last_attempt_at(self, fire_time: Micros) -> Micros | None:
        """No attempt of a job with this fire_time may be due later."""
        return None if self.max_age is None else fire_time + duration.parse(self.max_age, "retry.max_age")

    def judging_as(self, task: Retry) -> Retry:
        """This policy with the exception types of the task, which cannot be stored with a job."""
        return replace(self, retry_on=task.retry_on, give_up_on=task.give_up_on)

    def to_json(self) -> dict[str, Any]:
        if self.delay is not None:
            raise InvalidInput(
                "retry.delay", "a function cannot be stored with a job: give it to the task, or use `delays`"
            )
        if self.retry_on is not None or self.give_up_on:
            raise InvalidInput(
                "retry",
                "exception types cannot be stored with a job: give retry_on and give_up_on to the task",
            )
        stored: dict[str, Any] = {
            "max_attempts": self.max_attempts,
            "first_delay": _text(self.first_delay),
            "multiplier": self.multiplier,
            "max_delay": _text(self.max_delay),
        }
        if self.backoff != Backoff.EXPONENTIAL:
            stored["backoff"] = self.backoff
        if self.jitter is not None:
            stored["jitter"] = self.jitter
        if self.delays is not None:
            stored["delays"] = [_text(delay) for delay in self.delays]
        if self.max_age is not None:
            stored["max_age"] = _text(self.max_age)
        if self.max_losses != DEFAULT_LOSSES:
            stored["max_losses"] = self.max_losses
        return stored

    def described(self) -> dict[str, Any]:
        """For readers: with the names of the function and the exception types, which cannot be stored."""
        named: dict[str, Any] = {
            "delay": getattr(self.delay, "__name__", None),
            "retry_on": None if self.retry_on is None else _names(self.retry_on),
            "give_up_on": _names(self.give_up_on) or None,
        }
        stored = replace(self, delay=None, retry_on=None, give_up_on=()).to_json()
        return stored | {name: value for name, value in named.items() if value is not None}

    @staticmethod
    def from_json(value: Any, field: str = "retry") -> Retry:
        if not isinstance(value, dict) or not set(value) <= STORED:
            raise InvalidInput(field, f"must be an object with any of {', '.join(sorted(STORED))}")
        return Retry(**value)

    @staticmethod
    def restore(value: Any) -> Retry:
        """A stored policy. Older versions stored settings that have no effect next to the others."""
        return Retry.from_json(effective_retry(value) if isinstance(value, Mapping) else value)


STORED = frozenset(
    {
        "max_attempts",
        "first_delay",
        "multiplier",
        "max_delay",
        "backoff",
        "jitter",
        "delays",
        "max_age",
        "max_losses",
    }
)


DEFAULTS: Mapping[str, Any] = {one.name: one.default for one in fields(Retry)}


def _without_effect(stored: Mapping[str, Any]) -> tuple[str, ...]:
    """The settings that have no effect next to the others."""
    if stored.get("delays") is not None:
        return ("first_delay", "multiplier", "max_delay", "backoff")
    return ("multiplier",) if stored.get("backoff") == Backoff.LINEAR else ()


def effective_retry(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The same policy, with the defaults for settings that have no effect."""
    idle = stored.keys() & set(_without_effect(stored))
    return {name: DEFAULTS[name] if name in idle else value for name, value in stored.items()}


def _is_default(name: str, value: Any) -> bool:
    """A duration may be written in another way: `60m` is `1h`."""
    default = DEFAULTS[name]
    if name.endswith("_delay"):
        return duration.parse(value, name) == duration.parse(default, name)
    return bool(value == default)


def _check_count(value: Any, most: int, field: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidInput(field, f"{value!r} must be a whole number from 1 to {most}")


def _delays(value: Any) -> tuple[Duration, ...]:
    delays = () if isinstance(value, str | timedelta) or not isinstance(value, Iterable) else tuple(value)
    if not delays:
        raise InvalidInput("retry.delays", 'must be a list of durations: write delays=["1s", "10s", "1m"]')
    for delay in delays:
        duration.parse(delay, "retry.delays")
    return delays


def _types(value: Any, field: str) -> tuple[type[BaseException], ...]:
    types = (
        (value,)
        if isinstance(value, type | str)
        else tuple(value)
        if isinstance(value, Iterable)
        else (value,)
    )
    for one in types:
        if not isinstance(one, type) or not issubclass(one, BaseException):
            raise InvalidInput(
                field, f"{one!r} is not an exception type: write {field.partition('.')[2]}=[ConnectionError]"
            )
    return types


def _names(types: Problems) -> list[str]:
    return [kind.__name__ for kind in _types(types, "retry")]


def _is(problem: BaseException, types: Any) -> bool:
    return isinstance(problem, types) or (
        isinstance(problem, BaseExceptionGroup) and bool(types) and problem.subgroup(types) is not None
    )


def _text(value: Duration) -> str:
    return duration.show(value // timedelta(microseconds=1)) if isinstance(value, timedelta) else value
