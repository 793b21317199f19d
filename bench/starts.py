"""The start log: what the no-op job does is append its number and the wall clock, 16 bytes in one O_APPEND write."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

RECORD = struct.Struct("=qd")
# How the measuring process tells the program where to work.
STORE_VARIABLE = "BENCH_STORE"
STARTS_VARIABLE = "BENCH_STARTS"
PROBE = -1  # the number of a job that only shows that the worker works


class StartWriter:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def record(self, number: int) -> None:
        os.write(self._file, RECORD.pack(number, time.time()))


class StartLog:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def __len__(self) -> int:
        """Starts so far, probes included, without reading the file."""
        return self.path.stat().st_size // RECORD.size

    def read(self) -> list[tuple[int, float]]:
        """(number, wall clock) of every start but the probes."""
        content = self.path.read_bytes()
        whole = content[: len(content) // RECORD.size * RECORD.size]
        return [start for start in RECORD.iter_unpack(whole) if start[0] != PROBE]

    def clear(self) -> None:
        os.truncate(self.path, 0)
