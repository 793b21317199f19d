"""How often and how late a failed job is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import Micros

MOST_ATTEMPTS = 1_000


@dataclass(frozen=True, slots=True)
class Retry:
    """Exponential back-off with full jitter: the n-th wait is drawn from zero to first_delay * multiplier^(n-1).

    `max_attempts` counts attempts that failed, so 1 means "never again". Attempts lost to a dying worker are not counted.
    """

    max_attempts: int = 5
    first_delay: Duration = "5s"
    multiplier: float = 2.0
    max_delay: Duration = "1h"

    def __post_init__(self) -> None:
        if isinstance(self.max_attempts, bool) or not isinstance(self.max_attempts, int) or not 1 <= self.max_attempts <= MOST_ATTEMPTS:
            raise InvalidInput("retry.max_attempts", f"{self.max_attempts!r} must be a whole number from 1 to {MOST_ATTEMPTS}")
        if isinstance(self.multiplier, bool) or not isinstance(self.multiplier, int | float) or not 1 <= self.multiplier <= 100:
            raise InvalidInput("retry.multiplier", f"{self.multiplier!r} must be a number from 1 to 100")
        duration.parse(self.first_delay, "retry.first_delay")
        duration.parse(self.max_delay, "retry.max_delay")

    def delay(self, failures: int, noise: float) -> Micros:
        """The wait after the failures-th failure; `noise` from [0, 1) spreads a herd of failures."""
        first = duration.parse(self.first_delay, "retry.first_delay")
        longest = duration.parse(self.max_delay, "retry.max_delay")
        # The exponent is capped: 100 ** 1000 would not fit a float, and max_delay has long decided by then.
        ceiling = min(first * self.multiplier ** min(failures - 1, 150), longest)
        return int(ceiling * noise)

    def to_json(self) -> dict[str, Any]:
        return {
            "max_attempts": self.max_attempts,
            "first_delay": _text(self.first_delay),
            "multiplier": self.multiplier,
            "max_delay": _text(self.max_delay),
        }

    @staticmethod
    def from_json(value: Any, field: str = "retry") -> Retry:
        known = {"max_attempts", "first_delay", "multiplier", "max_delay"}
        if not isinstance(value, dict) or not set(value) <= known:
            raise InvalidInput(field, f"must be an object with any of {', '.join(sorted(known))}")
        return Retry(**value)


def _text(value: Duration) -> str:
    return duration.show(value // timedelta(microseconds=1)) if isinstance(value, timedelta) else value
