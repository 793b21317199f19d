"""The output of an attempt: lines that a task logs and a child process prints. The first and the last lines
are kept; what does not fit in between is left out.

Every line has a number, also a line that is left out: a gap in the numbers shows how many are missing. Lines
are stored in parts, each a small record that is written again until it is full. The last parts take turns
in a few places, so an attempt has at most `PLACES` records however much it prints."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from threading import Lock
from typing import NamedTuple
from uuid import UUID

from duetime.model.codec import decode, encode
from duetime.model.instant import Micros
from duetime.model.masking import without_secrets
from duetime.model.stored import Record

KIND = "output"  # of the records
MAX_FIRST = MAX_LAST = 32 * 1024  # bytes of the first lines and of the last lines that are kept
PART_BYTES = 8 * 1024
FIRST_PARTS = MAX_FIRST // PART_BYTES
LAST_PARTS = MAX_LAST // PART_BYTES + 1  # one of them is being filled
PLACES = FIRST_PARTS + LAST_PARTS
MAX_LINE_BYTES = 8_000
MAX_RAW_LINE = 64 * 1024  # characters that are looked at: secrets are masked before a line is cut
LINE_BYTES = 24  # what a line costs in addition to its text
CUT = " [cut]"


class Stream(StrEnum):
    """Where a line came from."""

    LOG = "log"
    STDOUT = "stdout"
    STDERR = "stderr"


class Line(NamedTuple):
    number: int  # from 1
    at: Micros
    stream: str
    level: str  # of a log record: debug, info, warning, error, critical
    text: str


class KeptOutput(NamedTuple):
    """What is known of the output of one attempt."""

    lines: list[Line]  # by number
    total: int  # of lines, also those left out

    @property
    def left_out(self) -> int:
        return self.total - len(self.lines)


class OutputBuffer:
    """Lines of one attempt that are not stored yet, and the part that is being filled. Any thread may add."""

    def __init__(self, stored: Sequence[Record] = ()) -> None:
        """`stored`: what earlier writers have stored, to go on from there."""
        self._lock = Lock()
        self._first: list[Line] = []
        self._last: deque[Line] = deque()
        self._last_bytes = 0
        self._first_left = MAX_FIRST
        self._total = 0
        self._part = 0  # that is being filled, counted from the first
        self._parts: dict[int, list[Line]] = {0: []}  # by place: what has to be written
        self._part_bytes = 0
        self._changed: set[int] = set()
        if stored:
            self._resume(stored)

    def add(self, at: Micros, stream: str, level: str, text: str) -> None:
        """Cheap: most lines of a task that prints a lot are dropped again before they are stored."""
        with self._lock:
            self._total += 1
            line = Line(self._total, at, stream, level, text[:MAX_RAW_LINE])
            size = len(line.text) + LINE_BYTES
            if self._first_left > 0:
                self._first_left -= size
                self._first.append(line)
                return
            self._last.append(line)
            self._last_bytes += size
            while self._last_bytes > MAX_LAST and len(self._last) > 1:
                self._last_bytes -= len(self._last.popleft().text) + LINE_BYTES

    def leave_out(self, lines: int) -> None:
        """So many lines were dropped before they came here."""
        with self._lock:
            self._total += lines
            self._changed.add(_place(self._part))

    @property
    def waiting(self) -> bool:
        return bool(self._first or self._last or self._changed)

    def take(self) -> list[tuple[int, bytes]]:
        """The parts to write, by place. A part whose write fails is given back with `put_back`."""
        with self._lock:
            lines = [*self._first, *self._last]
            self._first, self._last, self._last_bytes = [], deque(), 0
            for line in lines:
                self._keep(line._replace(text=shown(line.text)))
            parts = [(place, self._parts[place]) for place in sorted(self._changed)]
            self._changed.clear()
            total = self._total
        return [(place, encode({"total": total, "lines": kept})) for place, kept in parts]

    def drain(self) -> tuple[list[Line], int]:
        """All lines, for a process that passes them on, and how many were left out before and between them.
        It begins again."""
        with self._lock:
            lines = [*self._first, *self._last]
            left_out = self._total - len(lines)
            self._first, self._last, self._last_bytes = [], deque(), 0
            self._first_left, self._total = MAX_FIRST, 0
            self._changed.clear()
        return lines, left_out

    def written(self, places: Iterable[int]) -> None:
        """These parts are stored: only the one that is being filled is needed again."""
        with self._lock:
            for place in places:
                if place not in self._changed and place != _place(self._part):
                    self._parts.pop(place, None)

    def put_back(self, places: Iterable[int]) -> None:
        with self._lock:
            self._changed.update(place for place in places if place in self._parts)

    def _keep(self, line: Line) -> None:
        size = len(line.text.encode()) + LINE_BYTES
        if self._part_bytes and self._part_bytes + size > PART_BYTES:
            self._part += 1
            self._part_bytes = 0
            self._parts[_place(self._part)] = []
        self._part_bytes += size
        self._parts[_place(self._part)].append(line)
        self._changed.add(_place(self._part))

    def _resume(self, stored: Sequence[Record]) -> None:
        known = read_output(stored)
        self._total = known.total
        places = {int(record.key[-1]): _lines(record) for record in stored}
        newest = max(places, key=lambda place: places[place][-1].number if places[place] else 0)
        # Of the last parts only their order counts; any whole number of rounds may have passed.
        self._part = newest
        self._parts = {newest: places[newest]}
        self._part_bytes = sum(len(line.text.encode()) + LINE_BYTES for line in places[newest])
        if newest >= FIRST_PARTS:
            self._first_left = 0
        else:
            self._first_left = MAX_FIRST - newest * PART_BYTES - self._part_bytes


def shown(text: str) -> str:
    """The text without secrets, then cut, and such that every store can keep it."""
    clean = without_secrets(text).encode("utf-8", "replace")
    if len(clean) <= MAX_LINE_BYTES:
        return clean.decode()
    return clean[:MAX_LINE_BYTES].decode("utf-8", "ignore") + CUT


def record_key(job_id: UUID, attempt: int, place: int) -> str:
    return f"{key_prefix(job_id, attempt)}{place}"


def key_prefix(job_id: UUID, attempt: int) -> str:
    return f"{job_id}/{attempt:010d}/"


def read_output(records: Sequence[Record]) -> KeptOutput:
    contents = [decode(record.value) for record in records]
    lines = sorted(Line(*line) for content in contents for line in content["lines"])
    return KeptOutput(lines, max((content["total"] for content in contents), default=0))


def gaps(lines: Iterable[Line], total: int, after: int = 0) -> Iterator[tuple[Line | None, int]]:
    """Each line with how many were left out before it; last, without a line, those after all of them."""
    for line in lines:
        yield line, line.number - after - 1
        after = line.number
    yield None, total - after


def level_name(level: int) -> str:
    """Of the standard levels, the one that this level reaches."""
    for known in (logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO):
        if level >= known:
            return logging.getLevelName(known).lower()
    return "debug"


def _place(part: int) -> int:
    return part if part < FIRST_PARTS else FIRST_PARTS + (part - FIRST_PARTS) % LAST_PARTS


def _lines(record: Record) -> list[Line]:
    return [Line(*line) for line in decode(record.value)["lines"]]
