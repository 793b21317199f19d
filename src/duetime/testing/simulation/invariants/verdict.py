"""The invariants by name, and the first violation. It ends the run, but is recorded instead of raised: the
engine catches exceptions of tasks, and a violation may be found inside a task."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Invariant(StrEnum):
    DURABILITY = "durability"  # acknowledged jobs and saved checkpoints are never lost
    PUNCTUALITY = "punctuality"  # without faults, jobs start when they are due
    SINGLE_OUTCOME = "single outcome"  # a job is stored once, a fire makes one job, a final state is final
    NEVER_EARLY = "never early"  # no job starts before it is due
    SINGLE_CLAIM = "single claim"  # a job has one attempt at a time, which starts once
    FENCING = "fencing"  # only the current attempt changes its job
    LEASES = "leases"  # only nodes with a valid lease hold jobs, and a lease has one holder
    LIVENESS = "liveness"  # nothing is stuck after faults end
    ACCOUNTING = "accounting"  # attempts, failures, losses and final states agree with what happened
    FIRES_COMPLETE = "fires complete"  # every fire is a job or a recorded skip
    ONLY_EXPECTED_WORK = "only expected work"  # nothing fires or starts without a reason
    FIRE_COMPARE_AND_SET = (
        "fire compare-and-set"  # only firings with the current version and cursor are applied
    )
    JUSTIFIED_EXPIRY = "justified expiry"  # a node loses its lease only because of a fault
    AT_MOST_ONCE = "at most once"  # such a job starts at most once
    OVERLAP = "overlap"  # jobs of a schedule do not run at the same time unless allowed
    VERSIONS = "versions"  # each change of a schedule increments its version
    UNIQUE_KEYS = "unique keys"  # a unique key has at most one live job
    SINGLE_EFFECTS = "single effects"  # once-marks and task transactions take effect once
    LIMITS = "limits"  # limits, rates and paused queues are respected
    NO_UNEXPECTED_ERRORS = "no unexpected errors"  # no engine loop fails for an unknown reason


class Violation(AssertionError):
    def __init__(self, invariant: Invariant, message: str) -> None:
        super().__init__(f"{invariant}: {message}")
        self.invariant = invariant


class Verdict:
    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self.violation: Violation | None = None

    def violate(self, invariant: Invariant, message: str) -> None:
        if self.violation is None:
            self.violation = Violation(invariant, message)
            self._stop()

    def require(self, holds: bool, invariant: Invariant, message: str) -> None:
        if not holds:
            self.violate(invariant, message)
