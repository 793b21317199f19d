"""Validators of single values from callers. Each error names the field and says what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, TypeVar
from uuid import UUID

from duetime.errors import InvalidInput, JobNotFound, UnknownOption
from duetime.model.codec import encode_payload
from duetime.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY, Delivery, Overlap, State, error_text
from duetime.model.retry import Retry
from duetime.model.schedule import Missed

Choice = TypeVar("Choice", bound=StrEnum)
Item = TypeVar("Item")
Kind = TypeVar("Kind")
MAX_NAME_LENGTH = 128
MAX_SHOWN = 80  # characters of a value that is too long
MAX_KEY_LENGTH = 512
MAX_NOTE_LENGTH = 500
MAX_COUNT = 1_000_000_000


def refuse_unknown(options: Mapping[str, Any], known: Iterable[str]) -> None:
    for name in options:
        if name not in known:
            close = get_close_matches(name, known := list(known), 1)
            raise UnknownOption(
                name,
                "no such option: "
                f"{f'did you mean {close[0]!r}?' if close else 'known are ' + ', '.join(known)}",
            )


def check_name(value: Any, field: str, max_length: int = MAX_NAME_LENGTH) -> str:
    if (
        not isinstance(value, str)
        or not value
        or len(value) > max_length
        or not value.isprintable()
        or value != value.strip()
    ):
        shown = repr(value) if len(repr(value)) <= MAX_SHOWN else f"{repr(value)[:MAX_SHOWN]}..."
        raise InvalidInput(
            field, f"{shown} must be 1 to {max_length} printable characters without blanks at the ends"
        )
    if value == "*" or value.startswith("@"):
        raise InvalidInput(
            field, f"{value!r} is reserved: choose a name that is not '*' and does not begin with '@'"
        )
    return value


def check_key(value: Any) -> str:
    if not isinstance(value, str) or not value or len(value) > MAX_KEY_LENGTH or not value.isprintable():
        raise InvalidInput("unique_key", f"must be 1 to {MAX_KEY_LENGTH} printable characters")
    return value


def check_priority(value: Any) -> int:
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not LOWEST_PRIORITY <= value <= HIGHEST_PRIORITY
    ):
        raise InvalidInput(
            "priority",
            f"{value!r} must be a whole number from {LOWEST_PRIORITY} (last) to {HIGHEST_PRIORITY} "
            "(most urgent)",
        )
    return value


def check_list(values: Iterable[Item], kind: type, field: str, form: str) -> list[Item]:
    """Whatever can be read once. One item in place of a list is a common mistake."""
    if isinstance(values, kind | str) or not isinstance(values, Iterable):
        raise InvalidInput(field, f"{values!r} is not a list: write [{form}]")
    return list(values)


def check_choice(value: Any, choices: type[Choice], field: str) -> Choice:
    try:
        return choices(value)
    except ValueError:
        raise InvalidInput(field, f"{value!r} is not one of {', '.join(choices)}") from None


def check_delivery(value: Any) -> Delivery:
    return check_choice(value, Delivery, "delivery")


def check_type(value: Any, kind: type[Kind], field: str, example: str) -> Kind:
    if not isinstance(value, kind):
        raise InvalidInput(field, f"{value!r} is not a {kind.__name__}: write {example}")
    return value


def check_retry(value: Any) -> Retry:
    return check_type(value, Retry, "retry", "dt.Retry(max_attempts=5)")


def check_missed(value: Any) -> Missed:
    if isinstance(value, str):
        return Missed(value)  # type: ignore[arg-type]  # Missed itself refuses unknown policies
    missed = check_type(value, Missed, "missed", 'dt.Missed("latest", within="6h")')
    return Missed.from_json(
        missed.to_json()
    )  # as a store returns it: the same declaration must compare equal


def check_overlap(value: Any) -> str | None:
    overlap = check_choice(value, Overlap, "overlap")
    return None if overlap is Overlap.ALLOW else str(overlap)


def check_max_runs(value: Any) -> int | None:
    return None if value is None else check_count(value, "max_runs")


def encode_labels(labels: Any) -> bytes:
    if not isinstance(labels, Mapping) or not all(
        isinstance(part, str) for pair in labels.items() for part in pair
    ):
        raise InvalidInput("labels", "must be a mapping of text to text")
    return encode_payload(dict(labels), "labels")


def check_count(value: Any, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_COUNT:
        raise InvalidInput(field, f"{value!r} must be a whole number from 1 to {MAX_COUNT:,}")
    return value


def check_state(value: str) -> State:
    return check_choice(value, State, "state")


def check_id(value: UUID | str) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise JobNotFound(
            f"{value!r} is not a job id: ids look like 01935c2e-7b3a-7000-8000-000000000000"
        ) from None


def check_note(value: Any) -> str | None:
    if value is not None and (
        not isinstance(value, str) or len(value) > MAX_NOTE_LENGTH or error_text(value) != value
    ):
        raise InvalidInput("note", f"must be text of at most {MAX_NOTE_LENGTH} characters, without NUL")
    return value


def check_arguments(field: str, wanted: Iterable[str], known: frozenset[str] | None) -> None:
    """Refuse names that are not arguments of the task; `known` is None if it takes any."""
    for name in wanted:
        if known is not None and name not in known:
            close = get_close_matches(str(name), sorted(known), 1)
            remedy = (
                f"did you mean {close[0]!r}?"
                if close
                else f"it takes {', '.join(sorted(known)) or 'no arguments'}"
            )
            raise InvalidInput(field, f"the task has no argument {name!r}: {remedy}")
