"""What a task may say about its own job instead of a result: returned or raised, it means the same."""

from __future__ import annotations

from typing import Any

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


class Failed(Verdict):
    """This attempt failed; the retry policy decides, as after any exception. `result` is kept if it was the last attempt. `wish` is how
    long the other side asks us to wait: granted, up to the policy's `max_delay`."""

    def __init__(self, reason: str, result: Any = None, wish: Duration | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.result = result
        self.wish: Micros | None = None if wish is None else duration.parse(wish, "wish")


class GiveUp(Verdict):
    """This attempt failed, and no other could go better: the job is dead at once, with this reason and result."""

    def __init__(self, reason: str, result: Any = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.result = result


class HandOver(Verdict):
    """Somebody else finishes this attempt and reports how it ended. Without a report within this time it has timed out."""

    def __init__(self, within: Duration) -> None:
        super().__init__(f"handed over, to be reported within {within}")
        self.within: Micros = duration.positive(within, "within")


class Cancel(Verdict):
    """There is nothing to do any more: the job ends as cancelled, with this reason."""

    def __init__(self, reason: str = "cancelled by the task") -> None:
        super().__init__(reason)
        self.reason = reason
