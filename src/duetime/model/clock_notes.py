"""What changes of the clocks do to fires, in words: which local times do not exist or happen twice, and what comes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

from duetime.model import cron_search, rrule, zone
from duetime.model.instant import EPOCH, SECOND, Micros
from duetime.model.phrases import joined
from duetime.model.when import Cron, RRule, When, is_interval
from duetime.model.zone import DAY, ClockChange, Search, Zone

MOST_NAMED = 4
YEAR = 366 * DAY


class Wall(NamedTuple):
    """The local times of a `when`: what the wall shows when it fires."""

    zone: Zone
    search: Search
    fixed: bool  # has fixed times, as opposed to following real time
    sparse: bool  # one that a change of the clocks takes away or repeats is missed, or felt
    until: Micros | None


def wall_of(when: When) -> Wall | None:
    """None for one that has no local times, such as an interval."""
    match when:
        case Cron() if not is_interval(when):
            search = cron_search.compiled(when.expr, when.key)
            fixed = search.pattern.fixed_time
            return Wall(zone.load(when.tz), search, fixed, fixed or len(search.pattern.hours) < 24, None)
        case RRule():
            rule = rrule.compiled(when.text, when.tz)
            return Wall(rule.zone, rule.search, rule.fixed, rule.fixed, rule.until)
        case _:
            return None


def notes(when: When, fires: Sequence[Micros], after: Micros) -> dict[Micros, str]:
    """By fire, for those of `fires` (all there are after `after`, up to the last) that a change of the clocks has to do with."""
    wall = wall_of(when)
    if wall is None or not fires:
        return {}
    found: dict[Micros, str] = {}
    for change in wall.zone.changes(after // SECOND - 2 * DAY, fires[-1] // SECOND + 2 * DAY):
        text = sentence(wall, change)
        if text is not None:
            found.update((fire, text + more) for fire, more in _concerned(wall, change, fires, after))
    return found


def coming(when: When, after: Micros, end: Micros | None) -> list[str]:
    """A line for each change of the clocks within a year that a schedule will feel."""
    wall = wall_of(when)
    if wall is None or not wall.sparse:
        return []
    last = min(bound for bound in (after + YEAR * SECOND, end, wall.until) if bound is not None)
    told = ((change, sentence(wall, change)) for change in wall.zone.changes(after // SECOND, last // SECOND))
    return [f"on {_date(change.at + change.before)} {text}" for change, text in told if text is not None]


def sentence(wall: Wall, change: ClockChange) -> str | None:
    """None when no time of it is concerned."""
    old, new = change.at + change.before, change.at + change.before + change.shift
    times = list(_matching(wall.search, min(old, new), max(old, new)))
    if not times:
        return None
    dated = abs(change.shift) >= DAY
    before, after, named = _clock(old, dated), _clock(new, dated), _named(times, dated)
    one = len(times) == 1
    if change.shift < 0:
        rule = f"{'fires' if one else 'fire'} {'the first time only' if wall.fixed else 'both times'}"
        return f"the clock goes back from {before} to {after}: {named} {'happens' if one else 'happen'} twice, and {rule}"
    jump = f"the clock jumps from {before} to {after}: {named} {'does' if one else 'do'} not exist and"
    if not wall.fixed:
        return f"{jump} {'is' if one else 'are'} left out"
    together = wall.search(new) == new
    return (
        f"{jump} {'falls' if one else 'fall'} together with {after}"
        if together
        else f"{jump} {'fires' if one else 'fire once'} at {after} instead"
    )


def _concerned(wall: Wall, change: ClockChange, fires: Sequence[Micros], after: Micros) -> Iterator[tuple[Micros, str]]:
    at = change.at * SECOND
    if change.shift > 0:
        following = next((fire for fire in fires if fire >= at), None) if after < at else None
        if following is not None and (following == at or not wall.fixed):
            yield following, ""
        return
    for fire in fires:
        if at + change.shift * SECOND <= fire < at - change.shift * SECOND:
            first = fire < at
            if first or not wall.fixed:
                yield fire, "" if wall.fixed else f" (this is the {'first' if first else 'second'})"


def _matching(search: Search, start: int, end: int) -> Iterator[int]:
    """The first few local times in `start <= time < end`, and one more if there are more."""
    moment = search(start)
    for _ in range(MOST_NAMED + 1):
        if moment is None or moment >= end:
            return
        yield moment
        moment = search(moment + 1)


def _named(times: Sequence[int], dated: bool) -> str:
    shown = [_clock(time, dated) for time in times]
    return joined(shown if len(times) <= MOST_NAMED else [*shown[:MOST_NAMED], "more"])


def _clock(local: int, dated: bool) -> str:
    hours, rest = divmod(local % DAY, 3600)
    minutes, seconds = divmod(rest, 60)
    return (f"{_date(local)} " if dated else "") + f"{hours:02}:{minutes:02}" + (f":{seconds:02}" if seconds else "")


def _date(local: int) -> str:
    return f"{EPOCH + timedelta(seconds=local):%Y-%m-%d}"
