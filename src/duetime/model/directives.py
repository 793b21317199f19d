"""Directives: what a task can return or raise, instead of a result, to say what happens to its job."""

from __future__ import annotations

from typing import Any

from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import Micros


class Directive(Exception):
    """Not an error. It is an exception so that a task can raise it from any depth."""


class _Delay(Directive):
    text: str

    def __init__(self, delay: Duration, reason: str | None = None) -> None:
        super().__init__(reason or f"{self.text} {delay}")
        self.delay: Micros = duration.parse(delay, "delay")
        self.reason = reason


class Snooze(_Delay):
    """Run the job again after this time. This is not a failure, and the checkpoint is kept."""

    text = "snoozed for"


class RetryAfter(_Delay):
    """The attempt failed. Try again after this time, if the retry policy has attempts left."""

    text = "to be tried again after"


class AttemptFailed(Directive):
    """The attempt failed, and the retry policy decides, as after any exception. `result` is kept if it was
    the last attempt. `wish` is the delay that the target asked for; it is granted up to the policy's
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
