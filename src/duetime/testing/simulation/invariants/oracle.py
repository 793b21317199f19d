"""When a schedule must fire, by simple arithmetic that shares no code with the engine."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from duetime.model.instant import EPOCH, SECOND, Micros
from duetime.model.when import At, Cron, Every, When

MINUTE = 60 * SECOND
_MICROSECOND = timedelta(microseconds=1)


def is_fire(when: When, moment: Micros) -> bool:
    match when:
        case Every(interval=interval, anchor=anchor):
            return (moment - (anchor - EPOCH) // _MICROSECOND) % (interval // _MICROSECOND) == 0
        case Cron(expr=expression):
            return moment % SECOND == 0 and (moment % MINUTE // SECOND) % _step(expression) == 0
        case At(moment=instant):
            return moment == (instant - EPOCH) // _MICROSECOND
    raise TypeError(f"the oracle does not support {when!r}")


def fires(when: When, start: Micros, end: Micros) -> Iterator[Micros]:
    """Fire times in [start, end)."""
    grain = _grain(when)
    first = start if grain == 0 else start + (_phase(when) - start) % grain
    if grain == 0:
        instant = _instant(when)
        yield from (moment for moment in (instant,) if start <= moment < end)
        return
    yield from (moment for moment in range(first, end, grain) if is_fire(when, moment))


def first_after(when: When, moment: Micros) -> Micros | None:
    """The next fire within a day, which is longer than any run."""
    return next(fires(when, moment + 1, moment + 86_400 * SECOND), None)


def _grain(when: When) -> Micros:
    """The distance between possible fires; zero for a single instant."""
    match when:
        case Every(interval=interval):
            return interval // _MICROSECOND
        case Cron():
            return SECOND
    return 0


def _phase(when: When) -> Micros:
    return (when.anchor - EPOCH) // _MICROSECOND if isinstance(when, Every) else 0


def _instant(when: When) -> Micros:
    assert isinstance(when, At)
    return (when.moment - EPOCH) // _MICROSECOND


def _step(expression: str) -> int:
    """The step of the seconds field, which is "*" or "*/n" here; all other fields are "*"."""
    seconds, _, rest = expression.partition(" ")
    if rest.replace(" ", "") != "*****":
        raise ValueError(f"the oracle reads only a seconds field, not {expression!r}")
    return int(seconds.partition("/")[2] or 1)
