"""What clock changes do to fires, in words: which local times do not exist or happen twice, and what happens
to their fires."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice

from duetime.model.describe.text import joined
from duetime.model.instant import EPOCH, SECOND, Micros
from duetime.model.when import WallClock, When, wall_clock
from duetime.model.zone import DAY, ClockChange, matches

MAX_NAMED = 4
YEAR = 366 * DAY


def notes(when: When, fires: Sequence[Micros], after: Micros) -> dict[Micros, str]:
    """A note for each fire that a clock change affects. `fires` are all fires after `after`, up to the last
    of them."""
    wall = wall_clock(when)
    if wall is None or not fires:
        return {}
    found: dict[Micros, str] = {}
    for change in wall.zone.changes(after // SECOND - 2 * DAY, fires[-1] // SECOND + 2 * DAY):
        text = sentence(wall, change)
        if text is not None:
            found.update((fire, text + more) for fire, more in _affected(wall, change, fires, after))
    return found


def coming(when: When, after: Micros, end: Micros | None) -> list[str]:
    """A line for each clock change within a year that affects the schedule."""
    wall = wall_clock(when)
    if wall is None or not wall.sparse:
        return []
    last = min(bound for bound in (after + YEAR * SECOND, end, wall.until) if bound is not None)
    found = (
        (change, sentence(wall, change)) for change in wall.zone.changes(after // SECOND, last // SECOND)
    )
    return [f"on {_date(change.at + change.before)} {text}" for change, text in found if text is not None]


def sentence(wall: WallClock, change: ClockChange) -> str | None:
    """None if the change affects none of its times."""
    old, new = change.at + change.before, change.at + change.before + change.shift
    times = list(islice(matches(wall.search, min(old, new), max(old, new)), MAX_NAMED + 1))
    if not times:
        return None
    dated = abs(change.shift) >= DAY
    before, after, named = _clock(old, dated), _clock(new, dated), _named(times, dated)
    one = len(times) == 1
    if change.shift < 0:
        rule = f"{'fires' if one else 'fire'} {'the first time only' if wall.fixed else 'both times'}"
        twice = f"{named} {'happens' if one else 'happen'} twice"
        return f"the clock goes back from {before} to {after}: {twice}, and {rule}"
    jump = f"the clock jumps from {before} to {after}: {named} {'does' if one else 'do'} not exist and"
    if not wall.fixed:
        return f"{jump} {'is' if one else 'are'} left out"
    together = wall.search(new) == new
    return (
        f"{jump} {'falls' if one else 'fall'} together with {after}"
        if together
        else f"{jump} {'fires' if one else 'fire once'} at {after} instead"
    )


def _affected(
    wall: WallClock, change: ClockChange, fires: Sequence[Micros], after: Micros
) -> Iterator[tuple[Micros, str]]:
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


def _named(times: Sequence[int], dated: bool) -> str:
    shown = [_clock(time, dated) for time in times]
    return joined(shown if len(times) <= MAX_NAMED else [*shown[:MAX_NAMED], "more"])


def _clock(local: int, dated: bool) -> str:
    hours, rest = divmod(local % DAY, 3600)
    minutes, seconds = divmod(rest, 60)
    return (
        (f"{_date(local)} " if dated else "")
        + f"{hours:02}:{minutes:02}"
        + (f":{seconds:02}" if seconds else "")
    )


def _date(local: int) -> str:
    return f"{EPOCH + timedelta(seconds=local):%Y-%m-%d}"
