"""Instants: integer microseconds since the epoch inside, aware UTC datetimes in the public API."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from duetime.errors import InvalidInput

Micros = int
SECOND = 1_000_000
MINUTE = 60 * SECOND
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = 253_370_764_800 * SECOND  # 9999-01-01: every store and language can represent it
_MICROSECOND = timedelta(microseconds=1)


def to_micros(moment: datetime) -> Micros:
    return (moment - EPOCH) // _MICROSECOND


def to_datetime(micros: Micros) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def to_iso(micros: Micros) -> str:
    return f"{to_datetime(micros).replace(tzinfo=None).isoformat()}Z"


def minute_key(minute: int) -> str:
    """The key of a record about this minute. It sorts as text like the number."""
    return f"{minute:010d}"


def minute_of(key: str) -> int:
    """The minute at the beginning of this key."""
    return int(key.partition(".")[0])


def read(moment: datetime, field: str) -> Micros:
    """The caller's instant. Rejects naive datetimes and instants that stores cannot hold."""
    if not isinstance(moment, datetime):
        raise InvalidInput(field, f"{moment!r} is not a datetime: give an aware datetime")
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidInput(
            field, f"{moment.isoformat()} has no time zone: use datetime.now(UTC) or set tzinfo"
        )
    micros = to_micros(moment)
    if not 0 <= micros < LATEST:
        raise InvalidInput(field, f"{moment.isoformat()} is out of range: use a date from 1970 up to 9998")
    return micros
