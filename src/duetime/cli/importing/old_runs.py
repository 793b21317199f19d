"""What another system ran, from its log: lines of cron in syslog, or CSV with a time and a name."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from duetime.cli.importing.crontab import shell_line
from duetime.errors import InvalidInput

# "Nov 17 02:30:01 host CRON[123]: (root) CMD (backup)", also with an ISO time, also of cronie.
_CRON = re.compile(
    r"(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\S+) \S+ "
    r"\S*?crond?\[\d+\]: \((?P<user>[^)]*)\) CMD \((?P<command>.*)\)\s*",
    re.IGNORECASE,
)
FORMATS = ("cron", "csv")


class OldRun(NamedTuple):
    at: datetime
    name: str  # of a cron log: the line for a shell


def read_runs(text: str, form: str | None, place: tzinfo, now: datetime) -> list[OldRun]:
    """In order of time. `place` is the zone of times without an offset; `now` tells the year of those without
    a year. Without a `form`, a log with lines of cron is one of cron."""
    lines = text.splitlines()
    if form is None:
        form = "cron" if any(_CRON.fullmatch(line) for line in lines) else "csv"
    if form not in FORMATS:
        raise InvalidInput("format", f"{form!r} is not one of {', '.join(FORMATS)}")
    found = _of_cron(lines, place, now) if form == "cron" else _of_csv(lines, place)
    return sorted(found, key=lambda run: run.at)


def _of_cron(lines: Iterable[str], place: tzinfo, now: datetime) -> Iterator[OldRun]:
    last: datetime | None = None
    for line in lines:
        if (found := _CRON.fullmatch(line)) is None:
            continue
        wall = _cron_time(found["time"], place, now)
        first, second = wall.astimezone(UTC), wall.replace(fold=1).astimezone(UTC)
        # The log is in order: of a local time that comes twice it is the second if it would go back.
        last = second if last is not None and first < last <= second else first
        yield OldRun(last, shell_line(found["command"]))


def _cron_time(text: str, place: tzinfo, now: datetime) -> datetime:
    if text[0].isdigit():
        return _iso(text, place)
    # Years are tried so that February 29 is read, too; a log is not from the future.
    for year in range(now.year + 1, now.year - 8, -1):
        try:
            found = datetime.strptime(f"{year} {text}", "%Y %b %d %H:%M:%S").replace(tzinfo=place)
        except ValueError:
            continue
        if found <= now + timedelta(days=1):
            return found
    raise InvalidInput("log", f"{text!r} is not a time")


def _of_csv(lines: Iterable[str], place: tzinfo) -> Iterator[OldRun]:
    for number, row in enumerate(csv.reader(lines), 1):
        if not row or (number == 1 and row[0].strip().lower() in ("time", "timestamp", "at")):
            continue
        if len(row) < 2:
            raise InvalidInput("log", f"line {number} must have a time and a name, separated by a comma")
        try:
            yield OldRun(_iso(row[0].strip(), place).astimezone(UTC), row[1].strip())
        except ValueError:
            raise InvalidInput(
                "log", f"line {number}: {row[0]!r} is not an ISO 8601 time: write 2030-01-01T09:00:00Z"
            ) from None


def _iso(text: str, place: tzinfo) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=place) if moment.tzinfo is None else moment
