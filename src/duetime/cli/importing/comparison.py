"""Compares the fires of shadow schedules with what another system ran."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise


class Timing(StrEnum):
    SAME = "same"
    EARLY = "early"  # Duetime before the old system
    LATE = "late"
    MISSING = "missing"  # only the old system ran it
    EXTRA = "extra"  # only Duetime would have run it


@dataclass(frozen=True, slots=True)
class TimingDifference:
    timing: Timing
    fire: datetime | None
    run: datetime | None


@dataclass(slots=True)
class Comparison:
    """Of one schedule, or of several that run the same command."""

    names: str
    same: int = 0
    others: list[TimingDifference] = field(default_factory=list)

    def count(self, timing: Timing) -> int:
        return self.same if timing is Timing.SAME else sum(one.timing is timing for one in self.others)


@dataclass(frozen=True, slots=True)
class Window:
    """What is compared: from `start` to `end`, both included. `same` is the largest difference that counts as
    the same time, `near` the largest that counts as the same run."""

    start: datetime
    end: datetime
    same: timedelta
    near: timedelta

    def __contains__(self, moment: datetime) -> bool:
        return self.start <= moment <= self.end


def compare(names: str, fires: Iterable[datetime], runs: Iterable[datetime], window: Window) -> Comparison:
    made = Comparison(names)
    left, right = sorted(set(fires)), sorted(one for one in runs if one in window)
    near = _near(left, window)
    while left or right:
        fire, run = left[0] if left else None, right[0] if right else None
        if fire is not None and run is not None and abs(fire - run) <= near:
            _pair(made, left.pop(0), right.pop(0), window)
        elif run is None or (fire is not None and fire < run):
            # Near an end of the window the run may just not be in the log.
            if left.pop(0) in window:
                made.others.append(TimingDifference(Timing.EXTRA, fire, None))
        else:
            made.others.append(TimingDifference(Timing.MISSING, None, right.pop(0)))
    return made


def _pair(made: Comparison, fire: datetime, run: datetime, window: Window) -> None:
    if abs(fire - run) <= window.same:
        made.same += 1
    else:
        timing = Timing.EARLY if fire < run else Timing.LATE
        made.others.append(TimingDifference(timing, fire, run))


def _near(fires: Sequence[datetime], window: Window) -> timedelta:
    """At most half of the shortest time between two fires: otherwise one missing run moves all others."""
    gaps = [later - earlier for earlier, later in pairwise(fires)]
    return max(window.same, min([window.near, *(gap / 2 for gap in gaps)]))
