"""Times in which nothing is told: quiet times of a channel, which repeat, and mutes, which end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from duetime.errors import InvalidInput, UnknownZone
from duetime.model import zone
from duetime.model.instant import Micros

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)


@dataclass(frozen=True, slots=True)
class QuietTime:
    """From one time of day to another, in a time zone, on these days. One that does not end after it begins
    goes on into the next day."""

    start: str
    end: str
    tz: str = "UTC"
    days: tuple[str, ...] = DAYS

    def covers(self, now: Micros) -> bool:
        local = zone.load(self.tz).wall_time(now)
        minute, today = local.hour * 60 + local.minute, local.weekday()
        first, last = _minute(self.start), _minute(self.end)
        if first < last:
            return DAYS[today] in self.days and first <= minute < last
        return (DAYS[today] in self.days and minute >= first) or (
            DAYS[today - 1] in self.days and minute < last
        )

    def to_json(self) -> dict[str, Any]:
        return {"start": self.start, "end": self.end, "tz": self.tz, "days": list(self.days)}

    @staticmethod
    def from_json(value: Any, place: str = "quiet") -> QuietTime:
        """`place` names it in an error."""
        if not isinstance(value, Mapping) or not set(value) <= {"start", "end", "tz", "days"}:
            raise InvalidInput(place, 'must be like {"start": "22:00", "end": "07:00", "tz": "UTC"}')
        for field in ("start", "end"):
            if not isinstance(value.get(field), str) or not _TIME.fullmatch(value[field]):
                raise InvalidInput(f"{place}.{field}", f"{value.get(field)!r} is not a time such as 22:00")
        try:
            zone.load(value.get("tz", "UTC"))
        except UnknownZone as problem:
            raise UnknownZone(f"{place}.tz", problem.reason) from None
        days = value.get("days", DAYS)
        if not isinstance(days, list | tuple) or not days or not all(day in DAYS for day in days):
            raise InvalidInput(f"{place}.days", f"must be a list of {', '.join(DAYS)}")
        return QuietTime(value["start"], value["end"], value.get("tz", "UTC"), tuple(days))


def _minute(text: str) -> int:
    return int(text[:2]) * 60 + int(text[3:])


@dataclass(frozen=True, slots=True)
class Mute:
    """A snooze or a maintenance window: alerts that match are not told between two instants. What is still
    wrong at its end is told then. None matches everything; a subject may have `*`."""

    id: str
    start: Micros
    until: Micros
    condition: str | None = None
    subject: str | None = None
    note: str | None = None
    author: str | None = None

    def covers(self, condition: str, subject: str, now: Micros) -> bool:
        return (
            self.start <= now < self.until
            and self.condition in (None, condition)
            and (self.subject is None or fnmatchcase(subject, self.subject.replace("[", "[[]")))
        )
