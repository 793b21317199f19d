"""What the importers of Python schedulers share: arguments by name, values of crontab fields, rules that ask
for a day of the month and a day of the week."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.codec import encode_payload

WEEKDAYS = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")


def arguments(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[dict[str, Any], str | None]:
    """The payload, and why it is not complete. Positional arguments get the names that the function gives
    them."""
    named, problem = dict(kwargs), None
    if args:
        names = _names(function)
        if len(names) < len(args):
            problem = f"the arguments {list(args)!r} have no names: write them in payload, then remove paused"
        else:
            named = {**dict(zip(names, args, strict=False)), **named}
    try:
        encode_payload(named)
    except InvalidInput as reason:
        return {}, f"the arguments are not JSON ({reason.reason}): write them in payload, then remove paused"
    return named, problem


def span(value: Any) -> str | None:
    """Seconds or a timedelta as a duration; None if it is neither."""
    if isinstance(value, timedelta):
        return duration.show(value // timedelta(microseconds=1))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return duration.show(int(value * 1_000_000))
    return None


def on_both_days(
    minutes: Iterable[int],
    hours: Iterable[int],
    days: Iterable[int],
    months: Iterable[int],
    weekdays: Iterable[int],
    seconds: Iterable[int] = (0,),
) -> str:
    """A rule for days that match both; cron takes those that match either. Weekdays count from Sunday = 0."""
    parts = {
        "BYMONTH": months,
        "BYMONTHDAY": days,
        "BYHOUR": hours,
        "BYMINUTE": minutes,
        "BYSECOND": seconds,
    }
    listed = [f"{name}={','.join(map(str, sorted(values)))}" for name, values in parts.items()]
    names = ",".join(WEEKDAYS[number % 7] for number in sorted(set(weekdays)))
    return ";".join(["FREQ=MONTHLY", f"BYDAY={names}", *listed])


def _names(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
