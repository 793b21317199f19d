"""Instants for people: in the local zone with its offset, and how far away they are."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

from duetime.clock import wall_micros
from duetime.model.instant import to_datetime

_STEPS = ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min"), (timedelta(seconds=1), "s"))


def local(moment: datetime, place: tzinfo | None = None) -> str:
    """As "2030-01-01 09:00:00+01:00", in this machine's zone unless another is given."""
    return moment.astimezone(place).isoformat(sep=" ", timespec="seconds")


def relative(moment: datetime, now: datetime) -> str:
    """As "in 5 min", "3 h ago" or "now"."""
    ahead = moment >= now
    distance = moment - now if ahead else now - moment
    for step, unit in _STEPS:
        if distance >= step:
            return f"in {distance // step} {unit}" if ahead else f"{distance // step} {unit} ago"
    return "now"


def full(moment: datetime | None, now: datetime, missing: str = "-") -> str:
    return missing if moment is None else f"{local(moment)} ({relative(moment, now)})"


def now_here() -> datetime:
    """By this machine's clock."""
    return to_datetime(wall_micros())
