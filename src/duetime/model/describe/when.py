"""One line of plain English for any `when`."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache

from duetime.model import rrule
from duetime.model.describe.cron import of_cron
from duetime.model.describe.rrule import of_rule
from duetime.model.describe.text import counted, joined, of_instant
from duetime.model.instant import EPOCH
from duetime.model.when import At, Cron, Every, RRule, Unreadable, When, interval_part

_UNITS = (
    ("week", 604_800_000_000),
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
    ("microsecond", 1),
)


@lru_cache(maxsize=4096)  # listings show the same ones again and again
def describe(when: When) -> str:
    """For example "at 02:30, Monday to Friday, Europe/Berlin time". Two that read the same fire at the same
    instants."""
    match when:
        case Cron():
            every = interval_part(when.expr)
            return of_cron(when.expr, when.tz, when.key) if every is None else describe(Every(every))
        case Every():
            return _of_interval(when.interval, when.anchor)
        case At():
            return f"once, at {of_instant(when.moment)}"
        case RRule():
            return of_rule(rrule.compiled(when.text, when.tz))
        case Unreadable():
            return f"cannot be read here: {when.problem}"


def _of_interval(interval: timedelta, anchor: datetime) -> str:
    """In whole units: "every 5 minutes", "every hour and 30 minutes"."""
    left, parts = interval // timedelta(microseconds=1), []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(counted(count, unit))
    since = "" if (anchor - EPOCH) % interval == timedelta(0) else f", counted from {of_instant(anchor)}"
    return f"every {joined(parts).removeprefix('1 ')}{since}"
