"""The start log: the no-op job appends its number and the wall clock, 16 bytes in one O_APPEND write. A
job that takes some time also appends its end, under the number -2 - n."""

from __future__ import annotations

import os
import struct
import time
from collections import Counter
from pathlib import Path

RECORD = struct.Struct("=qd")
# How the measuring process passes the place of work to the program.
STORE_VARIABLE = "BENCH_STORE"
STARTS_VARIABLE = "BENCH_STARTS"
SLOTS_VARIABLE = "BENCH_SLOTS"
QUEUE_VARIABLE = "BENCH_QUEUE"
ROLES_VARIABLE = "BENCH_ROLES"
TRACES_VARIABLE = "BENCH_TRACES"
SAMPLING_VARIABLE = "BENCH_SAMPLING"
PROBE_EVERY = 100  # of a flood, this many jobs have one probe in the log
PROBE = -1  # the number of a job that only shows that the worker runs


class StartWriter:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def record(self, number: int) -> None:
        os.write(self._file, RECORD.pack(number, time.time()))

    def record_end(self, number: int) -> None:
        self.record(-2 - number)


class StartLog:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def __len__(self) -> int:
        """Starts so far, probes included, without reading the file."""
        return self.path.stat().st_size // RECORD.size

    def read(self) -> list[tuple[int, float]]:
        """(number, wall clock) of every start except probes."""
        return [start for start in self._all() if start[0] >= 0]

    def at_once(self, kinds: int) -> int:
        """The highest number of jobs of one kind (number modulo `kinds`) that ran at the same time."""
        running, most = Counter[int](), 0
        for number, _ in sorted(self._all(), key=lambda entry: entry[1]):
            kind, change = (number, 1) if number >= 0 else (-2 - number, -1)
            running[kind % kinds] += change
            most = max(most, running[kind % kinds])
        return most

    def last_probe(self) -> float:
        content = self.path.read_bytes()
        whole = content[: len(content) // RECORD.size * RECORD.size]
        return max((moment for number, moment in RECORD.iter_unpack(whole) if number == PROBE), default=0.0)

    def _all(self) -> list[tuple[int, float]]:
        content = self.path.read_bytes()
        whole = content[: len(content) // RECORD.size * RECORD.size]
        return [(number, moment) for number, moment in RECORD.iter_unpack(whole) if number != PROBE]

    def clear(self) -> None:
        os.truncate(self.path, 0)
