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
# A UUID of version 7: milliseconds (48 bits), version (4), microseconds (10), whether it is a fire (1), 0,
# variant (2), noise (62).
_TIME_SHIFT, _MICROS_SHIFT = 80, 66
_LAST_FIRE_TIME = (1 << 48) * 1_000 - 1  # that an id can hold, in the year 10889
_VERSION = 7 << 76
_RANDOM = _VERSION | 2 << 62
_FIRE_BIT = 1 << 65
_FIRE = _RANDOM | _FIRE_BIT
_NOISE_SHIFT, _NOISE, _LAST_BYTE = 14, (1 << 62) - 1 & ~0xFF, 0xFF
_UNKNOWN_SAFETY = SafeUUID.unknown  # looking up a member of an enum is slower than the rest of making an id
_set_number, _set_safety = (
    vars(UUID)["int"].__set__,
    vars(UUID)["is_safe"].__set__,
)  # a UUID blocks normal assignment


class Ids:
    """Makes ids from a source of random bytes. Tests and the simulation pass their own source."""

    def __init__(self, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self._random_bytes = random_bytes

    def new(self, fire_time: Micros) -> UUID:
        return _uuid(_begin(fire_time) | _RANDOM, self._random_bytes(10))

    def new_many(self, fire_times: list[Micros]) -> list[UUID]:
        """One read of the random source for the whole batch."""
        noise = self._random_bytes(10 * len(fire_times))
        begins = {moment: _begin(moment) | _RANDOM for moment in set(fire_times)}
        return [
            _uuid(begins[moment], noise[at : at + 10])
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
    return _uuid(_begin(fire_time) | _FIRE, digest)


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


def is_fire_id(some_id: UUID) -> bool:
    return bool(some_id.int & _FIRE_BIT)


def first_id(fire_time: Micros) -> UUID:
    """The ids of jobs that fire at this instant or later are not smaller."""
    return UUID(int=_begin(min(max(0, fire_time), _LAST_FIRE_TIME)) | _VERSION)


def _begin(fire_time: Micros) -> int:
    return fire_time // 1_000 << _TIME_SHIFT | fire_time % 1_000 << _MICROS_SHIFT


def _uuid(begin: int, tail: bytes) -> UUID:
    # Of 80 bits the first and the last stay: ids made from a seed keep their order and their segments.
    noise = int.from_bytes(tail, "big")
    # uuid.UUID(int=...) checks values that are correct here, and takes five times as long.
    made = object.__new__(UUID)
    _set_number(made, begin | noise >> _NOISE_SHIFT & _NOISE | noise & _LAST_BYTE)
    _set_safety(made, _UNKNOWN_SAFETY)
    return made
