"""Lists, ranges and numbers in plain English, exactly: two different sets never read the same."""

from __future__ import annotations

from collections.abc import Sequence

_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_FEWEST_IN_RUN = 3
_FEWEST_IN_PROGRESSION = 4


def joined(parts: Sequence[str], word: str = "and") -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def counted(count: int, unit: str) -> str:
    return f"{count} {unit}" + ("" if count == 1 else "s")


def ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else _ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"


def listed(values: Sequence[int], names: Sequence[str], word: str = "and") -> str:
    """The names of these values, three or more in a row as "Monday to Friday", also over the end: "November to February"."""
    turn = around(values, len(names))
    if turn is not None and len(values) >= _FEWEST_IN_RUN:
        return f"{names[turn[0]]} to {names[turn[1]]}"
    parts: list[str] = []
    for run in _runs(values):
        parts += [f"{names[run[0]]} to {names[run[-1]]}"] if len(run) >= _FEWEST_IN_RUN else [names[value] for value in run]
    return joined(parts, word)


def numbered(values: Sequence[int], size: int, unit: str) -> str:
    """ "minute 5", "minutes 0 to 10 and 30", "every 7th minute from 0 to 56"."""
    if len(values) == 1:
        return f"{unit} {values[0]}"
    step = values[1] - values[0]
    if len(values) >= _FEWEST_IN_PROGRESSION and step > 1 and list(values) == list(range(values[0], values[-1] + 1, step)):
        return f"every {ordinal(step)} {unit} from {values[0]} to {values[-1]}"
    return f"{unit}s {listed(values, [str(number) for number in range(size)])}"


def around(values: Sequence[int], size: int) -> tuple[int, int] | None:
    """First and last when the values are one run, which may go on over the end; None when they are not, or are all there are."""
    runs = _runs(values)
    if len(values) == size:
        return None
    if len(runs) == 1:
        return runs[0][0], runs[0][-1]
    return (runs[1][0], runs[0][-1]) if len(runs) == 2 and runs[0][0] == 0 and runs[1][-1] == size - 1 else None


def evenly(values: Sequence[int], size: int) -> int | None:
    """The step when the values go round evenly, as `*` and `*/5` do; None when they do not."""
    if len(values) < 2:
        return None
    step = values[1] - values[0]
    return step if size % step == 0 and list(values) == list(range(0, size, step)) else None


def _runs(values: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return runs
