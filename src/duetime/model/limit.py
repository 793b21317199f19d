"""Limits: how many jobs run at once, how many start in a period, and who takes turns with whom."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.instant import Micros

MOST_AT_ONCE = 1_000_000
_RATE = re.compile(r"\s*(\d+)\s*/\s*(\S+)\s*")


class Rate(NamedTuple):
    """A bucket that holds `count` starts and fills evenly, `count` in a `period`: after a quiet time `count` may start at once, and over
    any longer time no more than `count` a period do."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks of a rate
    period: Micros

    @property
    def interval(self) -> Micros:
        """How long one start takes to be earned again."""
        return max(1, self.period // self.count)

    def allowed(self, spent_until: Micros, now: Micros) -> int:
        """How many may start now, when the starts so far are paid for until `spent_until`."""
        return max(0, min(self.count, (now + self.period - max(spent_until, now)) // self.interval))

    def spend(self, spent_until: Micros, now: Micros, starts: int) -> Micros:
        """Until when the starts so far and these are paid for."""
        return max(spent_until, now) + starts * self.interval

    def free_at(self, spent_until: Micros) -> Micros:
        """The instant from which one more may start."""
        return spent_until + self.interval - self.period


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `most` at once and at most `rate` ("100/1m"), for all jobs of a task or for each value of what `per` names: an argument of
    the task, or "owner" or "tenant". Neither number given, the values of `per` only take turns: one's flood does not hold up the others."""

    most: int | None = None
    per: str | None = None
    rate: str | None = None
    parsed_rate: Rate | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.most is not None and (isinstance(self.most, bool) or not isinstance(self.most, int) or not 1 <= self.most <= MOST_AT_ONCE):
            raise InvalidInput("limit.most", f"{self.most!r} must be a whole number from 1 to {MOST_AT_ONCE:,}")
        if self.most is None and self.per is None and self.rate is None:
            raise InvalidInput("limit", 'says nothing: give a number, a rate like "100/1m", or per="argument" for fair turns')
        if self.rate is not None:
            object.__setattr__(self, "parsed_rate", parse_rate(self.rate))


def parse_rate(text: str, field: str = "limit.rate") -> Rate:
    match = _RATE.fullmatch(text) if isinstance(text, str) else None
    if match is None or not 1 <= int(match[1]) <= MOST_AT_ONCE:
        raise InvalidInput(field, f'{text!r} is no rate: write "100/1m" for a hundred starts a minute')
    # "10/s" says the same as "10/1s".
    period = duration.positive(match[2] if match[2][0].isdigit() else f"1{match[2]}", field)
    return Rate(int(match[1]), period)


def show_rate(rate: Rate) -> str:
    return f"{rate.count}/{duration.show(rate.period)}"


class Bound(NamedTuple):
    """What a node's own code says about the gates of one target: a claim takes no more than this.

    `ahead`: how many more than `most` the node may hold of a gate of which nobody else holds any. Whoever asks for that starts no more than
    `most` of them at once, and asks for none where there is a rate, or where attempts are handed over to workers outside."""

    target: str
    most: int | None
    rate: Rate | None
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue and what its operator says about it."""

    name: str
    paused: bool = False
    pause_note: str | None = None
    paused_at: Micros | None = None
    most: int | None = None  # jobs of it running at once, over all nodes
    rate: Rate | None = None
