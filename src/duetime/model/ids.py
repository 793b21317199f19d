"""Ids that sort by fire time. The id of a fire follows from its schedule and instant, so a fire cannot be
stored twice."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import blake2b
from uuid import UUID, SafeUUID

from duetime.errors import InvalidInput
from duetime.model.instant import Micros

SEGMENTS = 64
EVERY_SEGMENT = tuple(range(SEGMENTS))
MIN_ID_PART = 4
SHORT_ID = 8  # the last digits, which the UI shows
_RANDOM_VERSION = 7 << 76 | 2 << 62
_FIRE_VERSION = 8 << 76 | 2 << 62
_UNKNOWN_SAFETY = SafeUUID.unknown  # looking up a member of an enum is slower than the rest of making an id
_set_number, _set_safety = (
    vars(UUID)["int"].__set__,
    vars(UUID)["is_safe"].__set__,
)  # a UUID blocks normal assignment
_PAYLOAD_BITS = ~(0xF << 76 | 3 << 62) & (1 << 80) - 1


class Ids:
    """Makes ids from a source of random bytes. Tests and the simulation pass their own source."""

    def __init__(self, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self._random_bytes = random_bytes

    def new(self, fire_time: Micros) -> UUID:
        return _uuid(fire_time, _RANDOM_VERSION, self._random_bytes(10))

    def new_many(self, fire_times: list[Micros]) -> list[UUID]:
        """One read of the random source for the whole batch."""
        noise = self._random_bytes(10 * len(fire_times))
        return [
            _uuid(moment, _RANDOM_VERSION, noise[at : at + 10])
            for at, moment in zip(range(0, len(noise), 10), fire_times, strict=True)
        ]


class RepeatedIds(Ids):
    """Makes the same ids in the same order for the same seed."""

    def __init__(self, seed: bytes) -> None:
        super().__init__(self._next_bytes)
        self._seed = seed
        self._given = 0

    def _next_bytes(self, count: int) -> bytes:
        begin, self._given = self._given, self._given + count
        first, last = begin // 64, (self._given - 1) // 64
        stream = b"".join(
            blake2b(number.to_bytes(8, "big"), key=self._seed).digest() for number in range(first, last + 1)
        )
        return stream[begin - first * 64 :][:count]


def random_bytes(count: int) -> bytes:
    """For keys and nonces, which must not be guessable."""
    return os.urandom(count)


def fire_id(schedule_id: UUID, fire_time: Micros) -> UUID:
    """The only id this fire can have: a second row for it violates the primary key."""
    digest = blake2b(schedule_id.bytes + fire_time.to_bytes(8, "big"), digest_size=10).digest()
    return _uuid(fire_time, _FIRE_VERSION, digest)


def read_id_part(text: str) -> tuple[str, bool]:
    """The digits of a part of an id, and whether they are surely its last: "01935c2e-7b" or "…8f3a01c2"."""
    is_ending = text.startswith(("…", "..."))
    digits = text.lstrip("….").replace("-", "").lower()
    enough = len(digits) == SHORT_ID if is_ending else MIN_ID_PART <= len(digits) <= 32
    if not enough or not set(digits) <= set("0123456789abcdef"):
        raise InvalidInput(
            "id", f"{text!r} is not part of an id: give at least {MIN_ID_PART} of its first digits, or its "
            f"last {SHORT_ID}"
        )  # fmt: skip
    return digits, is_ending


def fire_times_of(digits: str) -> tuple[Micros, Micros]:
    """Ids that begin with these digits have fire times from the first instant until before the second."""
    low, high = (int(digits[:12].ljust(12, filler), 16) for filler in "0f")
    return low * 1_000, (high + 1) * 1_000


def segment_of(some_id: UUID) -> int:
    """The segment of this schedule or job. Planners and dispatchers share the work by segments."""
    return some_id.int % SEGMENTS


def _uuid(fire_time: Micros, version: int, tail: bytes) -> UUID:
    # uuid.UUID(int=...) checks values that are correct here, and takes five times as long.
    made = object.__new__(UUID)
    _set_number(made, fire_time // 1_000 << 80 | int.from_bytes(tail, "big") & _PAYLOAD_BITS | version)
    _set_safety(made, _UNKNOWN_SAFETY)
    return made
