"""Until when a job must start: `expires`, and the maximum age of its retry policy."""

from __future__ import annotations

from datetime import datetime

from duetime.errors import InvalidInput
from duetime.model import duration, instant
from duetime.model.duration import Duration
from duetime.model.instant import Micros
from duetime.model.retry import Retry


def show(value: Duration | datetime, field: str = "expires") -> str:
    """The stored form: a duration after the due time, or an instant in UTC."""
    if isinstance(value, datetime):
        return instant.to_iso(instant.read(value, field))
    if isinstance(value, str) and (moment := _instant(value)) is not None:
        return instant.to_iso(instant.read(moment, field))
    try:
        return duration.show(duration.positive(value, field))
    except InvalidInput as problem:
        raise InvalidInput(
            field, f"{problem.reason}; or give an instant, for example 2030-01-01T09:00:00Z"
        ) from None


def expires_at(shown: str, due_at: Micros) -> Micros:
    moment = _instant(shown)
    return due_at + duration.parse(shown, "expires") if moment is None else instant.to_micros(moment)


def expired(shown: str | None, retry: Retry, due_at: Micros, now: Micros) -> str | None:
    """Why a job with this due time does not start now for the first time; None if it starts."""
    if shown is not None and now > expires_at(shown, due_at):
        return f"expired: not started {'within' if _instant(shown) is None else 'before'} {shown}"
    last = retry.last_attempt_at(due_at)
    return None if last is None or now <= last else f"expired: not started within {retry.max_age} (max_age)"


def _instant(text: str) -> datetime | None:
    """None if it is not an instant: only an instant begins with a year and a hyphen."""
    try:
        return datetime.fromisoformat(text) if text[4:5] == "-" else None
    except ValueError:
        return None
