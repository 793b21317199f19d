"""What a task may say about its own job instead of a result: returned or raised, it means the same."""

from __future__ import annotations

from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import Micros


class Verdict(Exception):
    """Not an error: an exception only so that it can be raised from deep inside a task."""


class Snooze(Verdict):
    """Run me again after this time. No failure: nothing is counted, the checkpoint is kept."""

    def __init__(self, delay: Duration, reason: str | None = None) -> None:
        super().__init__(reason or f"snoozed for {delay}")
        self.delay: Micros = duration.parse(delay, "delay")
        self.reason = reason


class RetryAfter(Verdict):
    """This attempt failed; try again after this time, if the retry policy has attempts left."""

    def __init__(self, delay: Duration, reason: str | None = None) -> None:
        super().__init__(reason or f"to be tried again after {delay}")
        self.delay: Micros = duration.parse(delay, "delay")
        self.reason = reason


class Cancel(Verdict):
    """There is nothing to do any more: the job ends as cancelled, with this reason."""

    def __init__(self, reason: str = "cancelled by the task") -> None:
        super().__init__(reason)
        self.reason = reason
