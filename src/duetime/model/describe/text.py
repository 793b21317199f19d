"""Lists, ranges, numbers and dates in plain English, exactly: two different sets never read the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice

from duetime.model.instant import EPOCH, SECOND, Micros
from duetime.model.when import WallClock, When, wall_clock
from duetime.model.zone import DAY, ClockChange, matches

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_MIN_RUN = 3
_MIN_PROGRESSION = 4


def joined(parts: Sequence[str], word: str = "and") -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def counted(count: int, unit: str) -> str:
    return f"{count} {unit}" + ("" if count == 1 else "s")


def ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else _ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"


def listed(values: Sequence[int], names: Sequence[str], word: str = "and") -> str:
    """The names of these values. Three or more in a row read "Monday to Friday", also across the end:
    "November to February"."""
    turn = around(values, len(names))
    if turn is not None and len(values) >= _MIN_RUN:
        return f"{names[turn[0]]} to {names[turn[1]]}"
    parts: list[str] = []
    for run in _runs(values):
        parts += (
            [f"{names[run[0]]} to {names[run[-1]]}"]
            if len(run) >= _MIN_RUN
            else [names[value] for value in run]
        )
    return joined(parts, word)


def numbered(values: Sequence[int], size: int, unit: str) -> str:
    """ "minute 5", "minutes 0 to 10 and 30", "every 7th minute from 0 to 56"."""
    if len(values) == 1:
        return f"{unit} {values[0]}"
    step = values[1] - values[0]
    if (
        len(values) >= _MIN_PROGRESSION
        and step > 1
        and list(values) == list(range(values[0], values[-1] + 1, step))
    ):
        return f"every {ordinal(step)} {unit} from {values[0]} to {values[-1]}"
    return f"{unit}s {listed(values, [str(number) for number in range(size)])}"


def around(values: Sequence[int], size: int) -> tuple[int, int] | None:
    """The first and last value of a single run, which may continue past the end. None for several runs or for
    all values."""
    runs = _runs(values)
    if len(values) == size:
        return None
    if len(runs) == 1:
        return runs[0][0], runs[0][-1]
    return (
        (runs[1][0], runs[0][-1]) if len(runs) == 2 and runs[0][0] == 0 and runs[1][-1] == size - 1 else None
    )


def evenly(values: Sequence[int], size: int) -> int | None:
    """The step between evenly spaced values, as in `*` and `*/5`; None if they are not even."""
    if len(values) < 2:
        return None
    step = values[1] - values[0]
    return step if size % step == 0 and list(values) == list(range(0, size, step)) else None


def before_last(offset: int, unit: str) -> str:
    """ "the last day", "the 3rd last day"."""
    return f"the last {unit}" if offset == 0 else f"the {ordinal(offset + 1)} last {unit}"


def of_instant(moment: datetime) -> str:
    return f"{moment.replace(tzinfo=None).isoformat(' ')} UTC"


def of_zone(tz: str) -> str:
    return "UTC" if tz == "UTC" else f"{tz} time"


def of_months(months: Sequence[int]) -> str:
    numbers = [month - 1 for month in months]
    if len(numbers) in (0, 12):
        return ""
    return f"{'in' if around(numbers, 12) is None or len(numbers) < 3 else 'from'} {listed(numbers, MONTHS)}"


def _runs(values: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return runs


# What clock changes do to fires, in words: which local times do not exist or happen twice, and what happens
# to their fires.


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
