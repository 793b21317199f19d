"""Checks of what a caller wrote, one value at a time: each error names the field and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any
from uuid import UUID

from duetime.errors import InvalidInput, JobNotFound, UnknownOption
from duetime.model.attempt import error_text
from duetime.model.codec import encode_payload
from duetime.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY, Delivery, Overlap, State
from duetime.model.retry import Retry
from duetime.model.schedule import Missed

LONGEST_NAME = 128
LONGEST_KEY = 512
LONGEST_NOTE = 500
LARGEST_COUNT = 1_000_000_000


def refuse_unknown(options: Mapping[str, Any], known: Iterable[str]) -> None:
    for name in options:
        if name not in known:
            close = get_close_matches(name, known := list(known), 1)
            raise UnknownOption(name, f"no such option: {f'did you mean {close[0]!r}?' if close else 'known are ' + ', '.join(known)}")


def check_name(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value or len(value) > LONGEST_NAME or not value.isprintable() or value != value.strip():
        raise InvalidInput(field, f"{value!r} must be 1 to {LONGEST_NAME} printable characters without blanks at the ends")
    if value == "*" or value.startswith("@"):
        raise InvalidInput(field, f"{value!r} is reserved: choose a name that is not '*' and does not begin with '@'")
    return value


def check_key(value: Any) -> str:
    if not isinstance(value, str) or not value or len(value) > LONGEST_KEY or not value.isprintable():
        raise InvalidInput("unique_key", f"must be 1 to {LONGEST_KEY} printable characters")
    return value


def check_priority(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not LOWEST_PRIORITY <= value <= HIGHEST_PRIORITY:
        raise InvalidInput(
            "priority", f"{value!r} must be a whole number from {LOWEST_PRIORITY} (last) to {HIGHEST_PRIORITY} (most urgent)"
        )
    return value


def check_delivery(value: Any) -> Delivery:
    if value not in list(Delivery):
        raise InvalidInput("delivery", f"{value!r} is not one of {', '.join(Delivery)}")
    return Delivery(value)


def check_retry(value: Any) -> Retry:
    if not isinstance(value, Retry):
        raise InvalidInput("retry", f"{value!r} is not a Retry: write dt.Retry(max_attempts=5)")
    return value


def check_missed(value: Any) -> Missed:
    if isinstance(value, str):
        return Missed(value)  # type: ignore[arg-type]  # Missed itself refuses what is no policy
    if not isinstance(value, Missed):
        raise InvalidInput("missed", f'{value!r} is not a Missed: write dt.Missed("latest", within="6h")')
    return Missed.from_json(value.to_json())  # as a store gives it back: declared again it must compare equal


def check_overlap(value: Any) -> str | None:
    if value not in list(Overlap):
        raise InvalidInput("overlap", f"{value!r} is not one of {', '.join(Overlap)}")
    return None if value == Overlap.ALLOW else str(value)


def check_max_runs(value: Any) -> int | None:
    return None if value is None else check_count(value, "max_runs")


def encode_labels(labels: Any) -> bytes:
    if not isinstance(labels, Mapping) or not all(isinstance(part, str) for pair in labels.items() for part in pair):
        raise InvalidInput("labels", "must be a mapping of text to text")
    return encode_payload(dict(labels), "labels")


def check_count(value: Any, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_COUNT:
        raise InvalidInput(field, f"{value!r} must be a whole number from 1 to {LARGEST_COUNT:,}")
    return value


def check_state(value: str) -> State:
    try:
        return State(value)
    except ValueError:
        raise InvalidInput("state", f"{value!r} is not one of {', '.join(State)}") from None


def check_id(value: UUID | str) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise JobNotFound(f"{value!r} is no job id: ids look like 01935c2e-7b3a-7000-8000-000000000000") from None


def check_note(value: Any) -> str | None:
    if value is not None and (not isinstance(value, str) or len(value) > LONGEST_NOTE or error_text(value) != value):
        raise InvalidInput("note", f"must be text of at most {LONGEST_NOTE} whole characters, and none of them NUL")
    return value


def check_arguments(field: str, wanted: Iterable[str], known: frozenset[str] | None) -> None:
    """Refuses names that are no arguments of the task; `known` is None when it takes any."""
    for name in wanted:
        if known is not None and name not in known:
            close = get_close_matches(str(name), sorted(known), 1)
            remedy = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(sorted(known)) or 'no arguments'}"
            raise InvalidInput(field, f"the task has no argument {name!r}: {remedy}")
