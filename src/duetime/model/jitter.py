"""Jitter: a delay that spreads jobs which would be due together. Written as its maximum, "30s", or as a
range, "1s..5s"."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from uuid import UUID

from duetime.errors import InvalidInput
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import Micros

NO_JITTER = "0s"


def normalized(value: Duration, field: str = "jitter") -> str:
    """The stored form, in which equal jitters are equal texts."""
    if not isinstance(value, str) or ".." not in value:
        return duration.show(duration.parse(value, field))
    low, _, high = value.partition("..")
    shortest, longest = duration.parse(low, field), duration.parse(high, field)
    if shortest > longest:
        raise InvalidInput(field, f'{value!r} ends before it begins: write it like "1s..5s"')
    return f"{duration.show(shortest)}..{duration.show(longest)}" if shortest else duration.show(longest)


def delay(identity: UUID, jitter: str) -> Micros:
    """The delay of this job. From a hash, so that every node computes the same due time for a fire."""
    if jitter == NO_JITTER:
        return 0
    low, high = bounds(jitter)
    return low + int.from_bytes(blake2b(identity.bytes, digest_size=8).digest(), "big") % (high - low + 1)


@lru_cache(maxsize=1_000)
def bounds(jitter: str) -> tuple[Micros, Micros]:
    low, separator, high = jitter.partition("..")
    return (
        (duration.parse(low, "jitter"), duration.parse(high, "jitter"))
        if separator
        else (0, duration.parse(low, "jitter"))
    )
