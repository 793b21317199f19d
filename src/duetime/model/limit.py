"""Limits: how many jobs run at the same time, how many start in a period, and which jobs take turns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import add
from typing import NamedTuple

from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.instant import Micros

MAX_RUNNING = 1_000_000
MAX_QUEUES = 100  # that are counted by name
OTHER = "other"  # the name of all queues beyond those
_RATE = re.compile(r"\s{0,9}(\d{1,9})\s{0,9}/\s{0,9}(\S{1,32})\s{0,9}", re.ASCII)


class Rate(NamedTuple):
    """A bucket that holds `count` starts and fills evenly, `count` in a `period`: after a quiet time `count`
    jobs may start together, and over a longer time no more than `count` a period."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which a rate does not need
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
    """At most `max_running` jobs at the same time and at most `rate` ("100/1m") starts, for all jobs of a
    task, or for each value of `per`: an argument of the task, "owner" or "tenant". With `per` alone the
    values only take turns: a flood of one value does not delay the others."""

    max_running: int | None = None
    per: str | None = None
    rate: str | None = None
    parsed_rate: Rate | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        check_max_running(self.max_running, "limit.max_running")
        if self.max_running is None and self.per is None and self.rate is None:
            raise InvalidInput(
                "limit",
                'is empty: give max_running, a rate such as "100/1m", or per="argument" for fair turns',
            )
        if self.rate is not None:
            object.__setattr__(self, "parsed_rate", parse_rate(self.rate, "limit.rate"))


def check_max_running(number: int | None, field: str) -> int | None:
    if number is not None and (
        isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MAX_RUNNING
    ):
        raise InvalidInput(field, f"{number!r} must be a whole number from 1 to {MAX_RUNNING:,}")
    return number


def parse_rate(text: str, field: str) -> Rate:
    match = _RATE.fullmatch(text) if isinstance(text, str) else None
    if match is None or not 1 <= int(match[1]) <= MAX_RUNNING:
        raise InvalidInput(
            field, f'{str(text)[:40]!r} is not a rate; use a count and a period, for example "100/1m"'
        )
    # "10/s" says the same as "10/1s".
    period = duration.positive(match[2] if match[2][0].isdigit() else f"1{match[2]}", field)
    return Rate(int(match[1]), period)


def show_rate(rate: Rate) -> str:
    return f"{rate.count}/{duration.show(rate.period)}"


class TaskLimit(NamedTuple):
    """The limit of a target, as the code of the node that started last states it. It holds for each limit key
    of the target."""

    target: str
    max_running: int | None = None
    rate: Rate | None = None


UNLIMITED = TaskLimit("")


class QueueCounts(NamedTuple):
    """The live jobs of a queue."""

    pending: int = 0
    due: int = 0  # of the pending ones
    running: int = 0


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue and what its operator set for it."""

    name: str
    paused: bool = False
    pause_note: str | None = None
    paused_at: Micros | None = None
    max_running: int | None = None  # jobs of it that run at the same time, over all nodes
    rate: Rate | None = None
    counts: QueueCounts | None = None  # only where they were asked for
    # Priority and tenant of its lanes that have pending jobs; only where they were asked for
    lanes: tuple[tuple[int, str], ...] = ()

    @property
    def restricted(self) -> bool:
        return self.paused or self.max_running is not None or self.rate is not None


class Quotas(NamedTuple):
    """How much one tenant may use. None: as much as it likes."""

    queues: int | None = 1_000  # names of queues
    pending: int | None = None  # jobs
    pending_per_queue: int | None = None  # jobs


DEFAULT_QUOTAS = Quotas()


class QueueFilter(NamedTuple):
    """Which queues to list."""

    restricted: bool = False  # only those that are paused or have limits
    tenant: str | None = None  # only those under which this tenant stored jobs
    name: str | None = None
    after: str = ""  # the last name already seen
    limit: int | None = None
    # What workers look for: restricted queues, and of the others those whose jobs do not all wait for a
    # permit, each with its lanes. The limit holds for these.
    for_workers: bool = False


ALL_QUEUES = QueueFilter()


def with_lanes(restricted: Iterable[Queue], lanes: Iterable[tuple[str, int, str]]) -> list[Queue]:
    """Queues for workers, from those that are restricted and the lanes (queue, priority, tenant) found."""
    by_queue: dict[str, list[tuple[int, str]]] = {}
    for name, priority, tenant in lanes:
        by_queue.setdefault(name, []).append((priority, tenant))
    known = {name: Queue(name) for name in by_queue} | {queue.name: queue for queue in restricted}
    return [replace(queue, lanes=tuple(by_queue.get(name, ()))) for name, queue in sorted(known.items())]


def largest(queues: Iterable[Queue]) -> dict[str, QueueCounts]:
    """The counts of the largest queues with jobs, by name, the largest first. The others count together."""
    counted = [
        (queue.name, queue.counts) for queue in queues if queue.counts is not None and any(queue.counts)
    ]
    counted.sort(key=lambda one: (-one[1].pending - one[1].running, one[0]))
    found = dict(counted[:MAX_QUEUES])
    for _, counts in counted[MAX_QUEUES:]:
        found[OTHER] = QueueCounts(*map(add, found.get(OTHER, QueueCounts()), counts))
    return found
